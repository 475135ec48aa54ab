"""The ledger with live formulas, and the sheet of its formulas' inputs."""

from __future__ import annotations

from itertools import groupby

from kvplan.ledger import LedgerLine
from kvplan.plan_book import PlanBook
from kvplan.reports.ledger_rows import TITLES
from kvplan.reports.workbook import charts
from kvplan.reports.workbook.budget import LiveBudget, input_name
from kvplan.reports.workbook.excel import cell_name, in_cells
from kvplan.reports.workbook.inputs import UTILIZATION
from kvplan.reports.workbook.sheet import Book, Formula, Sheet, Style
from kvplan.units import GIB

_COLUMNS = ("Line", "Where", "GiB", "Bytes", "Low", "High", "How sure", "Formula")


def write(book: Book, plans: PlanBook, budget: LiveBudget | None) -> None:
    """Writes both sheets."""
    lines = plans.plan.ledger
    sheet = book.sheet("Ledger", (24, 19, 10, 18, 18, 18, 12, 62))
    sheet.title(
        "Every byte of one GPU",
        "Bytes are computed from the inputs on the next sheet. Low and high are those of the plan.",
    )
    if plans.rule is None and plans.plan.workload.context is not None:
        _of_planned(sheet, plans.plan.workload.context)
    sheet.head(*_COLUMNS, right=(2, 3, 4, 5))
    sheet.freeze()
    first = sheet.row
    for line in lines:
        _line(sheet, line)
    last = sheet.row - 1
    _total(sheet, lines, first, last)
    _map(sheet, lines)
    _inputs(book, plans, budget)


def _of_planned(sheet: Sheet, context: int) -> None:
    """Says that the bytes stay those of the planned length, where the reader enters another."""
    said = f"These bytes are those of {context:,} tokens, not of the length on the sheet Inputs."
    sheet.put(0, Formula(f'IF(context={context},"","{said}")', ""), "warning")
    sheet.row += 1


def ledger_cell(line: LedgerLine) -> str:
    """The name of the cell that holds a line's bytes."""
    return cell_name("ledger", line.name)


def input_cell(line: LedgerLine, name: str) -> str:
    """The name of the cell that holds an input of a line."""
    return cell_name("in", line.name, name)


def _line(sheet: Sheet, line: LedgerLine) -> None:
    cells = {name: input_cell(line, name) for name in line.inputs}
    sheet.put(0, line.name)
    sheet.put(1, TITLES[line.section])
    sheet.put(2, Formula(f"{ledger_cell(line)}/2^30", line.bytes / GIB), "gib")
    formula = Formula(in_cells(line.formula, cells), line.bytes)
    sheet.put(3, formula, "count", name=ledger_cell(line))
    sheet.put(4, line.low, "count")
    sheet.put(5, line.high, "count")
    sheet.put(6, line.confidence, "unit")
    sheet.put(7, line.formula, "formula")
    sheet.row += 1


def _total(sheet: Sheet, lines: tuple[LedgerLine, ...], first: int, last: int) -> None:
    total = sum(line.bytes for line in lines)
    cells = sheet.below(3, first, last)
    sheet.put(0, "Total", "bold")
    sheet.put(2, Formula(f"SUM({cells})/2^30", total / GIB), "gib")
    sheet.put(3, Formula(f"SUM({cells})", total), "count", name="ledger_total_bytes")
    sheet.row += 2


def _map(sheet: Sheet, lines: tuple[LedgerLine, ...]) -> None:
    """Sums of kindred lines, and their picture."""
    sheet.head("Memory map", "", "GiB", right=(2,))
    first = sheet.row
    key = lambda line: (list(TITLES).index(line.section), line.name.partition(".")[0])  # noqa: E731
    for (_, head), members in groupby(sorted(lines, key=key), key=key):
        group = tuple(members)
        cells = "+".join(ledger_cell(line) for line in group)
        sheet.put(0, head)
        sheet.put(1, TITLES[group[0].section])
        sheet.put(2, Formula(f"({cells})/2^30", sum(each.bytes for each in group) / GIB), "gib")
        sheet.row += 1
    chart = sheet.book.file.add_chart({"type": "bar"})
    chart.add_series(
        {
            "name": "GiB on one GPU",
            "categories": f"={sheet.below(0, first, sheet.row - 1)}",
            "values": f"={sheet.below(2, first, sheet.row - 1)}",
            "data_labels": {"value": True, "num_format": "0.00", "font": {"size": 9}},
            "fill": {"color": charts.BLUE},
            "gap": 40,
        }
    )
    chart.set_y_axis(charts.axis(grid=False, more={"reverse": True}))
    chart.set_x_axis(charts.axis("GiB", more={"num_format": "#,##0", "label_position": "high"}))
    height = 100 + 24 * (sheet.row - first)
    charts.finish(chart, "Where the memory of one GPU goes", size=(760, height))
    sheet.page.insert_chart(first - 1, 3, chart)


def _inputs(book: Book, plans: PlanBook, budget: LiveBudget | None) -> None:
    sheet = book.sheet("Ledger inputs", (28, 26, 22, 80))
    sheet.title("What the ledger's formulas are computed from")
    sheet.head("Line", "Input", "Value", "Where the value comes from", right=(2,))
    sheet.freeze()
    for line in plans.plan.ledger:
        for name, value in line.inputs.items():
            cell, note = _value(plans, budget, line, name)
            sheet.put(0, line.name)
            sheet.put(1, name)
            style: Style = "count" if isinstance(value, int) else "number"
            shown = Formula(cell, value) if cell else value
            sheet.put(2, shown, style, name=input_cell(line, name))
            sheet.put(3, note, "note")
            sheet.row += 1


def _value(
    plans: PlanBook, budget: LiveBudget | None, line: LedgerLine, name: str
) -> tuple[str | None, str]:
    """The formula of an input's cell, or None for a plain number; and what to say of it."""
    other = next((one for one in plans.plan.ledger if input_name(one) == name), None)
    if other is not None and other is not line and other.bytes == line.inputs[name]:
        return ledger_cell(other), f"the line {other.name}"
    if budget is not None and name in (UTILIZATION, "blocks", "bytes_per_block"):
        return name, "the sheet Inputs" if name == UTILIZATION else "the sheet Capacity"
    moving = next((m for m in plans.moving if (m.line, m.name) == (line.name, name)), None)
    if moving is None:
        return None, ""
    if moving.per_token is None:
        return None, "of the planned length; it is another for other lengths"
    planned = plans.plan.workload.context
    step = f"{moving.per_token}*(context-{planned})"
    return f"{line.inputs[name]}+{step}", "follows the length of a request"
