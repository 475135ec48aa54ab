"""A plan for a terminal: the verdict first, then the picture, then every number."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kvplan.ledger import LedgerLine, total
from kvplan.plan import Plan, Reason
from kvplan.reports import text_bar, text_tables
from kvplan.reports.capacity_rows import capacity_scopes
from kvplan.reports.clean import clean
from kvplan.reports.device_rows import device_rows, device_word, fullest
from kvplan.reports.figures import assumed_settings, filled_in
from kvplan.reports.group_rows import group_rows, why_not_linear
from kvplan.reports.headline import headline, subject, taken_up
from kvplan.reports.text_console import INDENT, items, lay_out, spaced
from kvplan.units import format_bytes

_VERDICT_STYLES = {"fits": "bold green", "does_not_fit": "bold red", "refused": "bold yellow"}


def text_report(plan: Plan, *, explain: bool, width: int, color: bool, ascii_only: bool) -> str:
    """The whole report, no line wider than ``width``.

    Args:
        plan: What is reported.
        width: Columns, at least 60.
        explain: Add each line's formula, its numbers and its source.
        color: Write ANSI colours. Nothing depends on them.
        ascii_only: Use no character beyond ASCII.
    """
    parts = (
        *_answer(plan, width=width, ascii_only=ascii_only),
        *_tables(plan, explain=explain, width=width, ascii_only=ascii_only),
        *([_explanation(plan.ledger)] if explain and plan.ledger else []),
        *_notes(plan),
    )
    return lay_out(parts, width=width, color=color, ascii_only=ascii_only)


def _answer(plan: Plan, *, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    yield Text(clean(headline(plan)), style=_VERDICT_STYLES[plan.verdict])
    for reason in taken_up(plan):
        if reason.hint:
            yield _hint(reason.hint)
    yield Text(clean(subject(plan)))
    if plan.ledger:
        yield spaced(
            Group(
                Text(_picture_title(plan), style="bold"),
                text_bar.bar(plan, width=width, ascii_only=ascii_only),
                text_bar.legend(plan, ascii_only=ascii_only),
            )
        )


def _picture_title(plan: Plan) -> str:
    size = format_bytes(total(plan.ledger))
    if any(line.section == "budget" for line in plan.ledger):
        return f"Memory of one {device_word(plan)}: {clean(fullest(plan))}, {size}"
    return f"KV cache of one {device_word(plan)}: {size}, as given"


def _tables(plan: Plan, *, explain: bool, width: int, ascii_only: bool) -> Iterator[RenderableType]:
    if plan.ledger:
        yield spaced(text_tables.ledger_table(plan, width=width, ascii_only=ascii_only))
    scopes = capacity_scopes(plan)
    if scopes:
        yield spaced(text_tables.capacity_table(scopes, ascii_only=ascii_only))
    if plan.capacity and (explain or len(plan.capacity.groups) > 1):
        rows = group_rows(plan.capacity)
        yield spaced(text_tables.groups_table(rows, width=width, ascii_only=ascii_only))
        why = why_not_linear(plan.capacity, plan.workload.context) if explain else None
        if why:
            yield spaced(Text(clean(why)))
    devices = device_rows(plan)
    if devices:
        yield spaced(text_tables.devices_table(devices, width=width, ascii_only=ascii_only))
    if plan.advice:
        yield spaced(text_tables.advice_table(plan.advice, width=width, ascii_only=ascii_only))


def _explanation(lines: tuple[LedgerLine, ...]) -> RenderableType:
    blocks: list[RenderableType] = [Text("How each line is computed", style="bold")]
    margin = " " * 2 * INDENT
    for line in lines:
        title = f"{' ' * INDENT}{clean(line.name)}  {format_bytes(line.bytes)}"
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(f"{margin}formula", Text(clean(line.formula)))
        grid.add_row(f"{margin}numbers", Text(filled_in(line)))
        grid.add_row(f"{margin}source", Text(clean(line.source)))
        blocks += [Text(title, style="bold"), grid]
    return spaced(Group(*blocks))


def _notes(plan: Plan) -> Iterator[RenderableType]:
    said = taken_up(plan)
    notes = [_reason(reason) for reason in plan.reasons if reason not in said]
    if notes:
        yield spaced(items("Notes", notes))
    if plan.engine.assumed and plan.ledger:
        settings = Text(clean(", ".join(assumed_settings(plan.engine))))
        yield spaced(items("Assumed, because not given", [settings]))
    revision = f", revision {plan.model.revision}" if plan.model.revision else ""
    sources = (f"model: {plan.model.source}{revision}", f"GPU: {plan.gpu.source}")
    yield spaced(items("Sources", (Text(clean(source)) for source in sources)))


def _reason(reason: Reason) -> Text:
    message = Text(clean(reason.message))
    return Text("\n").join([message, _hint(reason.hint)] if reason.hint else [message])


def _hint(hint: str) -> Text:
    return Text(f"hint: {clean(hint)}", style="cyan")
