"""What other loads would take, from half of today's requests to ten times as many."""

from __future__ import annotations

from kvplan.plan_book import PlanBook
from kvplan.reports.workbook import real_traffic
from kvplan.reports.workbook.money import gpus_for, rent
from kvplan.reports.workbook.sheet import Book, Formula, Sheet, judge

_COLUMNS = (
    "Times the requests of Inputs", "Requests at once", "GPUs", "Enough with today's?",
    "Cost a month",
)  # fmt: skip
_NOTE = (
    "All held at once. Real lengths are mixed: give the lengths or a trace, and this sheet has the"
    " day and its risk (kvplan export --traffic FILE, or --lengths)."
)
FACTORS = (0.5, 1, 1.5, 2, 3, 5, 10)


def write(book: Book, plans: PlanBook) -> None:
    """Writes the sheet."""
    sheet = book.sheet("Traffic", (34, 18, 18, 20, 18, 14))
    if plans.traffic is not None:
        real_traffic.write(sheet, plans, plans.traffic)
    sheet.title("If every request is as long as on the sheet Inputs", _NOTE)
    sheet.head(*_COLUMNS, right=(1, 2, 4))
    for factor in FACTORS:
        _row(sheet, plans, factor)
        sheet.row += 1


def _row(sheet: Sheet, plans: PlanBook, factor: float) -> None:
    held = plans.plan.capacity.requests if plans.plan.capacity else 0
    asked = -int(-plans.concurrency * factor // 1)
    first = sheet.put(0, factor, "times")
    load = sheet.put(1, Formula(f"-INT(-concurrency*{first})", asked), "count")
    gpus = gpus_for(plans, load, asked)
    cell = sheet.put(2, gpus, "count")
    enough = Formula(f'IF(requests>={load},"yes","no")', "yes" if held >= asked else "no")
    judge(sheet, sheet.put(3, enough, "unit"))
    sheet.put(4, rent(plans, cell, gpus.value), "money")
