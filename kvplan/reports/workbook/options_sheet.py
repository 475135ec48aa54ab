"""The plan beside each change that it advises; each was planned in full."""

from __future__ import annotations

from kvplan.plan import Plan
from kvplan.plan_book import PlanBook
from kvplan.reports.workbook.money import rent
from kvplan.reports.workbook.sheet import Book, Formula, Sheet
from kvplan.units import GIB

_COLUMNS = (
    "Option", "Holds what is asked?", "Requests", "Tokens a replica", "Longest request",
    "KV cache a GPU, GiB", "GPUs", "Cost a month", "Beside money it costs",
)  # fmt: skip


def write(book: Book, plans: PlanBook) -> None:
    """Writes the sheet."""
    sheet = book.sheet("Options compared", (52, 20, 12, 16, 16, 20, 8, 16, 80))
    sheet.title(
        "What could be changed",
        "For the length that was planned. Prices follow the sheet Inputs: one price for a GPU of"
        " any kind.",
    )
    sheet.head(*_COLUMNS)
    _row(sheet, plans, "As planned", "", plans.plan)
    for other in plans.alternatives:
        _row(sheet, plans, other.action, other.cost, other.plan)


def _row(sheet: Sheet, plans: PlanBook, action: str, cost: str, plan: Plan) -> None:
    capacity, kv = plan.capacity, plan.kv
    held = capacity.requests if capacity else 0
    sheet.put(0, action, "wrapped")
    requests = sheet.reference(sheet.row, 2)
    enough = "yes" if held >= max(1, plans.concurrency) else "no"
    sheet.put(1, Formula(f'IF({requests}>=MAX(1,concurrency),"yes","no")', enough))
    sheet.put(2, held, "count")
    sheet.put(3, capacity.tokens if capacity else None, "count")
    sheet.put(4, capacity.max_context if capacity else None, "count")
    sheet.put(5, kv.budget_bytes / GIB if kv else None, "gib")
    gpus = sheet.put(6, plan.gpu.count, "count")
    sheet.put(7, rent(plans, gpus, plan.gpu.count), "money")
    sheet.put(8, cost, "wrapped")
    sheet.row += 1
