"""A measurement for people: each line as planned and as found, then what else was seen."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from kvplan.measured_plan import MeasuredLine, MeasuredPlan
from kvplan.reports.text_console import items, lay_out, spaced, table
from kvplan.units import format_bytes

_OUTCOMES = {
    "close": "close",
    "within_range": "within its range",
    "off": "off",
    "not_measured": "not measured",
}


def measured_text(
    measured: MeasuredPlan, *, width: int, color: bool, ascii_only: bool = False
) -> str:
    """The verdict, the table, the other figures and the remarks.

    Args:
        measured: What is reported.
        width: Columns.
        color: ANSI colours.
        ascii_only: No character beyond ASCII.
    """
    parts = _parts(measured, ascii_only=ascii_only)
    return lay_out(parts, width=width, color=color, ascii_only=ascii_only)


def _parts(measured: MeasuredPlan, *, ascii_only: bool) -> Iterator[RenderableType]:
    yield Text(_verdict(measured), style="bold")
    made = table(
        words=("line", "result"), numbers=("planned", "measured", "off by"), ascii_only=ascii_only
    )
    for line in measured.lines:
        made.add_row(line.name, _result(line), *_numbers(line))
    yield spaced(made)
    figures = (
        Text(f"{name.replace('_', ' ')}: {format_bytes(size)}")
        for name, size in measured.figures.items()
    )
    yield spaced(items("Also seen", figures))
    if measured.remarks:
        yield spaced(items("Remarks", (Text(remark) for remark in measured.remarks)))


def _verdict(measured: MeasuredPlan) -> str:
    judged = [line for line in measured.lines if line.outcome != "not_measured"]
    wrong = [line for line in judged if line.outcome == "off"]
    where = f"{measured.model} on {measured.device}"
    if not judged:
        return f"{where}: nothing could be measured."
    if not wrong:
        return f"{where}: all {len(judged)} measured lines agree with the plan."
    names = ", ".join(line.name for line in wrong)
    are = "is" if len(wrong) == 1 else "are"
    return f"{where}: {len(wrong)} of {len(judged)} measured lines {are} off: {names}."


def _result(line: MeasuredLine) -> str:
    said = _OUTCOMES[line.outcome]
    return f"{said}: {line.note}" if line.note else said


def _numbers(line: MeasuredLine) -> tuple[str, str, str]:
    if line.measured is None or line.off_by is None:
        return format_bytes(line.planned), "", ""
    sign = "+" if line.off_by > 0 else ""
    return (
        format_bytes(line.planned),
        format_bytes(line.measured),
        f"{sign}{format_bytes(line.off_by)}",
    )
