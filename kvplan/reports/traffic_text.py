"""A traffic plan for a terminal: the answer, the figures, what was assumed."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvplan.reports import traffic_rows
from kvplan.reports.clean import clean
from kvplan.reports.text_console import INDENT, items, lay_out, spaced
from kvplan.traffic_plan import TrafficPlan

_STYLES = {"fits": "bold green", "does_not_fit": "bold red", "refused": "bold yellow"}


def traffic_text(plan: TrafficPlan, *, width: int, color: bool, ascii_only: bool) -> str:
    """The whole report, no line wider than ``width``."""
    parts = _parts(plan, ascii_only=ascii_only)
    return lay_out(parts, width=width, color=color, ascii_only=ascii_only)


def _parts(plan: TrafficPlan, *, ascii_only: bool) -> Iterator[RenderableType]:
    yield Text(clean(traffic_rows.headline(plan)), style=_STYLES[plan.verdict])
    where = f"{plan.gpu.count} × {plan.gpu.id}, {plan.engine.name} {plan.engine.version}"
    yield Text(clean(f"{plan.model.id} on {where}; traffic: {plan.traffic}"))
    for section in traffic_rows.sections(plan, ascii_only=ascii_only):
        yield spaced(_section(section))
    if plan.reasons:
        said = (Text(clean(f"{r.message} {r.hint or ''}".strip())) for r in plan.reasons)
        yield spaced(items("Note", said))
    yield spaced(items("Assumed", (Text(clean(text)) for text in plan.assumed)))


def _section(section: traffic_rows.Section) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold")
    for label, value in section.rows:
        grid.add_row(Text(" " * INDENT + clean(label)), Text(clean(value)))
    return Group(Text(section.title, style="bold"), grid)
