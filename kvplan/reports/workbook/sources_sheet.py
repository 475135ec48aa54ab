"""Where everything is from, what was assumed, and what a reader has to know."""

from __future__ import annotations

from kvplan.plan import Plan
from kvplan.plan_book import PlanBook
from kvplan.reports.headline import headline, subject
from kvplan.reports.workbook.sheet import Book, Sheet


def write(book: Book, plans: PlanBook) -> None:
    """Writes the sheet."""
    plan = plans.plan
    sheet = book.sheet("Sources", (30, 130))
    sheet.title(headline(plan), subject(plan))
    _planned(sheet, plan)
    sheet.row += 1
    sheet.head("To know", "")
    for reason in plan.reasons:
        _pair(sheet, reason.code, f"{reason.message} {reason.hint or ''}".strip())
    if plan.engine.assumed:
        assumed = ", ".join(plan.engine.assumed)
        _pair(sheet, "assumed", f"Nobody gave these, the engine's defaults were taken: {assumed}.")
    sheet.row += 1
    sheet.head("Ledger line", "Source")
    for line in plan.ledger:
        _pair(sheet, line.name, line.source)
    _money(sheet, plans)


def _planned(sheet: Sheet, plan: Plan) -> None:
    sheet.head("What", "As planned")
    _pair(sheet, "kvplan", plan.kvplan_version)
    _pair(sheet, "model", f"{plan.model.id}; facts from {plan.model.source}")
    if plan.model.revision:
        _pair(sheet, "revision", plan.model.revision)
    _pair(sheet, "GPU", f"{plan.gpu.id}; memory from {plan.gpu.source}")
    _pair(sheet, "engine", f"{plan.engine.name} {plan.engine.version}")
    for name, value in plan.engine.options.items():
        _pair(sheet, f"option {name}", str(value))
    for name, size in plan.parallelism.model_dump().items():
        _pair(sheet, name, str(size))


def _money(sheet: Sheet, plans: PlanBook) -> None:
    money = plans.economics
    if money.source:
        _pair(sheet, "price of a GPU", money.source)
    if money.power_source:
        _pair(sheet, "power of a GPU", money.power_source)


def _pair(sheet: Sheet, what: str, text: str) -> None:
    sheet.put(0, what, "wrapped")
    sheet.put(1, text, "wrapped")
    sheet.row += 1
