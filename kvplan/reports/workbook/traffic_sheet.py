"""What other loads would take, from half of today's requests to ten times as many."""

from __future__ import annotations

from kvplan.plan_book import PlanBook
from kvplan.reports.workbook.money import gpus_for, rent
from kvplan.reports.workbook.sheet import Book, Formula, Sheet

FACTORS = (0.5, 1, 1.5, 2, 3, 5, 10)


def write(book: Book, plans: PlanBook) -> None:
    """Writes the sheet."""
    sheet = book.sheet("Traffic", (18, 20, 18, 22, 22))
    sheet.title(
        "If traffic is another",
        "Requests of the length on the sheet Inputs, all held at once. Real lengths are mixed:"
        " kvplan traffic counts them.",
    )
    sheet.head("Times today's", "Requests at once", "GPUs", "Enough with today's?", "Cost a month")
    for factor in FACTORS:
        _row(sheet, plans, factor)
        sheet.row += 1


def _row(sheet: Sheet, plans: PlanBook, factor: float) -> None:
    held = plans.plan.capacity.requests if plans.plan.capacity else 0
    asked = -int(-plans.concurrency * factor // 1)
    first = sheet.put(0, factor, "number")
    load = sheet.put(1, Formula(f"-INT(-concurrency*{first})", asked), "count")
    gpus = gpus_for(plans, load, asked)
    cell = sheet.put(2, gpus, "count")
    enough = Formula(f'IF(requests>={load},"yes","no")', "yes" if held >= asked else "no")
    sheet.put(3, enough)
    sheet.put(4, rent(plans, cell, gpus.value), "money")
