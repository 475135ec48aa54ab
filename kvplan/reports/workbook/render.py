"""The workbook as bytes."""

from __future__ import annotations

from io import BytesIO
from types import ModuleType

from kvplan.errors import UsageError
from kvplan.plan_book import PlanBook
from kvplan.reports.workbook import (
    capacity_sheet,
    costs_sheet,
    inputs,
    ledger_sheet,
    options_sheet,
    sources_sheet,
    traffic_sheet,
)
from kvplan.reports.workbook.budget import live_budget
from kvplan.reports.workbook.sheet import Book


def workbook(plans: PlanBook) -> bytes:
    """An .xlsx file of a plan.

    Raises:
        UsageError: XlsxWriter is not installed, or the plan is a refusal.
    """
    if plans.plan.capacity is None:
        raise UsageError(
            "The plan is a refusal: there is nothing to compute in a workbook.",
            hint="kvplan size says why.",
        )
    xlsxwriter = xlsxwriter_module()
    out = BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True, "strings_to_urls": False}) as file:
        book = Book(file)
        budget = live_budget(plans)
        inputs.write(book, plans, live_budget=budget is not None)
        # Sheets stand in the order in which they are read; formulas may point forwards.
        capacity_sheet.write(book, plans, budget)
        ledger_sheet.write(book, plans, budget)
        traffic_sheet.write(book, plans)
        options_sheet.write(book, plans)
        costs_sheet.write(book, plans)
        sources_sheet.write(book, plans)
    return out.getvalue()


def xlsxwriter_module() -> ModuleType:
    """The library.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import xlsxwriter  # noqa: PLC0415  an extra
    except ImportError as error:
        raise UsageError(
            "Workbooks need XlsxWriter, which is not installed.",
            hint="pip install 'kvplan-sizer[xlsx]'",
        ) from error
    module: ModuleType = xlsxwriter
    return module
