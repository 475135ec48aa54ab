"""A sweep as a workbook: a row a configuration, and what a load takes of it as live formulas."""

from __future__ import annotations

from io import BytesIO
from itertools import islice
from typing import Any

from kvplan.errors import UsageError
from kvplan.fit_prices import HOURS_PER_MONTH
from kvplan.reports.sweep_rows import Line, fixed, headline, lines, reasons, value
from kvplan.reports.sweep_series import Curves, curves
from kvplan.reports.workbook import charts
from kvplan.reports.workbook.money import NO_PRICE, NONE
from kvplan.reports.workbook.render import xlsxwriter_module
from kvplan.reports.workbook.sheet import Book, Formula, Sheet, Value, judge
from kvplan.sweep_result import CONCURRENCY, Sweep
from kvplan.units import GIB

MOST_ROWS, MOST_CURVES = 20_000, 12
_WHOLE = {"validate": "integer", "criteria": ">=", "value": 0}
_ANY = {"validate": "decimal", "criteria": ">=", "value": 0}
_FIGURES = ("Requests held", "GPUs", "Tokens a replica", "Longest request", "KV cache a GPU, GiB")
_LIVE = ("Enough?", "GPUs for the load", "Cost a month")


def sweep_workbook(sweep: Sweep) -> bytes:
    """An .xlsx file of a sweep.

    Raises:
        UsageError: XlsxWriter is not installed, or there are too many rows for a sheet.
    """
    found = tuple(islice(lines(sweep), MOST_ROWS + 1))
    if len(found) > MOST_ROWS:
        raise UsageError(
            f"A workbook takes {MOST_ROWS:,} configurations.",
            hint="Vary less, or write .csv or .parquet.",
        )
    xlsxwriter = xlsxwriter_module()
    out = BytesIO()
    with xlsxwriter.Workbook(out, {"in_memory": True, "strings_to_urls": False}) as file:
        book = Book(file)
        _table(book, sweep, found)
        drawn = curves(sweep)
        if drawn is not None and len(drawn.xs) > 1 and drawn.series:
            _curves(book, drawn)
        _why(book, sweep)
    return out.getvalue()


def _table(book: Book, sweep: Sweep, found: tuple[Line, ...]) -> None:
    names = [axis.name for axis in sweep.grid.without(CONCURRENCY).axes]
    columns = (*names, *_FIGURES, "Verdict", *_LIVE)
    wide = {"model": 40, "gpu": 22, "engine": 18}
    widths = (*(wide.get(name, 14) for name in names), 12, 8, 14, 14, 14, 14, 12, 17, 16)
    sheet = book.sheet("Sweep", widths)
    sheet.title(headline(sweep), fixed(sweep))
    asked = max(sweep.asked() or [int(dict(sweep.inputs).get(CONCURRENCY) or 1)])
    for name, given, what in (
        ("concurrency", asked, "requests at once: the last three columns follow"),
        ("price_per_gpu_hour", None, "what one GPU costs an hour; one price for all of them"),
        ("hours_per_month", HOURS_PER_MONTH, "hours that are paid for"),
    ):
        sheet.put(0, name.replace("_", " ").capitalize().replace("gpu", "GPU"))
        sheet.put(1, given, "count" if name != "price_per_gpu_hour" else "money", name=name,
                  yellow=True)  # fmt: skip
        sheet.put(2, what)
        accepted = _ANY if name == "price_per_gpu_hour" else _WHOLE
        sheet.page.data_validation(sheet.row, 1, sheet.row, 1, accepted)
        sheet.row += 1
    sheet.row += 1
    head, first = len(names), sheet.row
    sheet.head(*columns, right=(*range(head, head + 5), head + 7, head + 8))
    sheet.page.freeze_panes(sheet.row, 0)
    for line in found:
        _row(sheet, names, line, asked)
    if found:
        for column in (head + 5, head + 6):
            judge(sheet, sheet.below(column, first + 1, sheet.row - 1))
    sheet.page.autofilter(first, 0, max(first, sheet.row - 1), len(columns) - 1)


def _row(sheet: Sheet, names: list[str], line: Line, asked: int) -> None:
    for column, (name, given) in enumerate(zip(names, line.values, strict=True)):
        whole = isinstance(given, int) and not isinstance(given, bool)
        shown: Value = given if whole else value(name, given)
        sheet.put(column, shown, "number_left" if whole else "text")
    at, cell = len(names), line.cell
    gib = None if cell.kv_bytes is None else cell.kv_bytes / GIB
    held = sheet.put(at, cell.requests, "count")
    gpus = sheet.put(at + 1, cell.gpus, "count")
    for column, figure in enumerate((cell.tokens, cell.max_context), at + 2):
        sheet.put(column, figure, "count")
    sheet.put(at + 4, gib, "gib")
    words = {"fits": "fits", "does_not_fit": "does not fit", "refused": "refused"}
    sheet.put(at + 5, words[line.verdict], "unit")
    if cell.requests is not None and cell.gpus is not None:
        _live(sheet, at + 6, (held, gpus), (cell.requests, cell.gpus), asked)
    sheet.row += 1


def _live(
    sheet: Sheet, column: int, cells: tuple[str, str], now: tuple[int, int], asked: int
) -> None:
    """What follows from the yellow cells: copies of the configuration for the load, their price."""
    held, gpus = cells
    enough = "yes" if now[0] >= max(1, asked) else "no"
    rule = f'IF({held}>=MAX(1,concurrency),"yes","no")'
    sheet.put(column, Formula(rule, enough), "unit")
    needed: Any = -(-asked // now[0]) * now[1] if now[0] else NONE
    rule = f'IF({held}=0,"{NONE}",-INT(-concurrency/{held})*{gpus})'
    cell = sheet.put(column + 1, Formula(rule, needed), "count")
    cost = f"ROUND({cell}*price_per_gpu_hour*hours_per_month,2)"
    rule = f'IF(ISBLANK(price_per_gpu_hour),"{NO_PRICE}",IF(ISNUMBER({cell}),{cost},"{NONE}"))'
    sheet.put(column + 2, Formula(rule, NO_PRICE), "money")


def _curves(book: Book, drawn: Curves) -> None:
    shown = drawn.series[:MOST_CURVES]
    sheet = book.sheet("Curves", (16, *(18 for _ in shown)), pages=1)
    sheet.title(f"Requests held at once, by {drawn.name}", "Of the whole deployment.")
    chart = book.file.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
    sheet.row = head = sheet.row + 22
    sheet.head(drawn.name, *(one.label or "requests" for one in shown),
               right=tuple(range(len(shown) + 1)))  # fmt: skip
    first, last = sheet.row, sheet.row + len(drawn.xs) - 1
    held = [{point.x: point.y for point in one.points} for one in shown]
    for x in drawn.xs:
        sheet.put(0, x, "count" if x == int(x) else "number")
        for column, points in enumerate(held, 1):
            sheet.put(column, points.get(x), "count")
        sheet.row += 1
    for column, one in enumerate(shown, 1):
        color = charts.COLORS[(column - 1) % len(charts.COLORS)]
        chart.add_series(
            {
                "name": one.label or "requests",
                "categories": f"={sheet.below(0, first, last)}",
                "values": f"={sheet.below(column, first, last)}",
                "line": {"color": color, "width": 2},
                "marker": {"type": "circle", "size": 5, "fill": {"color": color},
                           "border": {"color": color}},
            }
        )  # fmt: skip
    wide = drawn.xs[0] > 0 and drawn.xs[-1] / drawn.xs[0] >= 8
    across: dict[str, Any] = {"num_format": "#,##0", "min": drawn.xs[0], "max": drawn.xs[-1]}
    if wide:
        across |= {"log_base": 2, "major_unit": 2}
    chart.set_x_axis(charts.axis(drawn.name, grid=False, more=across))
    chart.set_y_axis(charts.axis("requests held", more={"num_format": "#,##0", "log_base": 10}))
    charts.finish(chart, f"Requests held at once, by {drawn.name}", size=(860, 420), legend=True)
    sheet.page.insert_chart(head - 22, 0, chart)


def _why(book: Book, sweep: Sweep) -> None:
    sheet = book.sheet("Notes", (24, 120))
    sheet.title("To know", f"kvplan {sweep.kvplan_version}")
    sheet.head("Input", "The same for all")
    varied = {axis.name for axis in sweep.grid.axes}
    for name, given in sweep.inputs:
        if name not in varied:
            sheet.put(0, name)
            sheet.put(1, value(name, given), "wrapped")
            sheet.row += 1
    sheet.row += 1
    why = tuple(islice(reasons(sweep), 200))
    if why:
        sheet.head("Why not", "")
        for text in why:
            sheet.across(0, text)
            sheet.row += 1
