"""The plan beside each change that it advises; each was planned in full."""

from __future__ import annotations

from kvplan.plan_book import Alternative, PlanBook
from kvplan.reports.workbook import charts
from kvplan.reports.workbook.money import rent
from kvplan.reports.workbook.sheet import Book, Formula, Sheet, judge
from kvplan.units import GIB

_COLUMNS = (
    "Option", "Enough?", "Requests", "Tokens a replica", "Longest request",
    "KV cache a GPU, GiB", "GPUs", "Cost a month", "Beside money it costs",
)  # fmt: skip


OTHER_PRICE = "another price"


def write(book: Book, plans: PlanBook) -> None:
    """Writes the sheet."""
    sheet = book.sheet("Options compared", (46, 12, 12, 16, 14, 14, 8, 15, 56), pages=1)
    sheet.title(
        "What could be changed",
        "For the length that was planned. Prices follow the sheet Inputs; another kind of GPU has a"
        " price of its own (kvplan fit compares them).",
    )
    sheet.head(*_COLUMNS, right=(2, 3, 4, 5, 6, 7))
    sheet.freeze()
    first = sheet.row
    _row(sheet, plans, Alternative("As planned", "", plans.plan))
    for other in plans.alternatives:
        _row(sheet, plans, other)
    _picture(sheet, first)


def _row(sheet: Sheet, plans: PlanBook, option: Alternative) -> None:
    plan, held = option.plan, option.requests
    capacity, kv = plan.capacity, plan.kv
    sheet.put(0, option.action, "wrapped")
    requests = sheet.reference(sheet.row, 2)
    enough = "yes" if held >= max(1, plans.concurrency) else "no"
    rule = Formula(f'IF({requests}>=MAX(1,concurrency),"yes","no")', enough)
    judge(sheet, sheet.put(1, rule, "unit"))
    sheet.put(2, held, "count")
    sheet.put(3, capacity.tokens if capacity else None, "count")
    sheet.put(4, capacity.max_context if capacity else None, "count")
    sheet.put(5, kv.budget_bytes / GIB if kv else None, "gib")
    gpus = sheet.put(6, plan.gpu.count, "count")
    if plan.gpu.id == plans.plan.gpu.id:
        sheet.put(7, rent(plans, gpus, plan.gpu.count), "money")
    else:
        sheet.put(7, OTHER_PRICE, "answer")
    sheet.put(8, option.cost, "note")
    sheet.row += 1


def _picture(sheet: Sheet, first: int) -> None:
    chart = sheet.book.file.add_chart({"type": "bar"})
    chart.add_series(
        {
            "name": "Requests held",
            "categories": f"={sheet.below(0, first, sheet.row - 1)}",
            "values": f"={sheet.below(2, first, sheet.row - 1)}",
            "data_labels": {"value": True, "num_format": "#,##0", "font": {"size": 9}},
            "fill": {"color": charts.BLUE},
            "gap": 40,
        }
    )
    chart.set_y_axis(charts.axis(grid=False, more={"reverse": True}))
    chart.set_x_axis(
        charts.axis("requests", more={"num_format": "#,##0", "label_position": "high"})
    )
    height = 100 + 34 * (sheet.row - first)
    charts.finish(chart, "Requests that each option holds at once", size=(900, height))
    sheet.page.insert_chart(sheet.row + 1, 0, chart)
