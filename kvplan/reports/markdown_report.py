"""A plan for a pull request: the verdict, what fits, what to change; the ledger folded away."""

from __future__ import annotations

from collections.abc import Iterable

from kvplan.ledger import total
from kvplan.plan import Advice, Plan
from kvplan.reports.capacity_rows import capacity_scopes
from kvplan.reports.changes import change_flags
from kvplan.reports.clean import markdown_code, markdown_text
from kvplan.reports.device_rows import HEADER, device_rows, device_word, fullest
from kvplan.reports.figures import assumed_settings, byte_range, counted, filled_in, share, size
from kvplan.reports.group_rows import group_rows
from kvplan.reports.headline import headline, subject
from kvplan.reports.ledger_rows import ledger_rows
from kvplan.reports.memory_bar import memory_parts
from kvplan.units import format_bytes


def markdown_report(plan: Plan, *, explain: bool) -> str:
    """GitHub-flavoured Markdown. ``explain`` adds formulas, numbers and sources."""
    blocks = [
        f"**{markdown_text(headline(plan))}**",
        markdown_text(subject(plan)),
        _memory(plan),
        _capacity(plan),
        _groups(plan),
        _table(("Devices", *(f">{name}" for name in HEADER)), device_rows(plan)),
        _advice(plan),
        _reasons(plan),
        _assumed(plan),
        _ledger(plan),
        _formulas(plan) if explain else "",
        f"Model: {markdown_text(plan.model.source)}. GPU: {markdown_text(plan.gpu.source)}.",
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _memory(plan: Plan) -> str:
    card = total(plan.ledger)
    rows = [
        (part.label, format_bytes(part.bytes), share(part.bytes, card))
        for part in memory_parts(plan)
    ]
    title = f"Memory of one {markdown_text(fullest(plan))}"
    return _table((title, ">Bytes", ">Share"), rows)


def _capacity(plan: Plan) -> str:
    rows = [
        (scope.title, figure.label, figure.value, figure.interval, figure.remark)
        for scope in capacity_scopes(plan)
        for figure in scope.figures
    ]
    return _table(("Counts", "Capacity", ">Value", ">Range", "Remark"), rows)


def _groups(plan: Plan) -> str:
    if plan.capacity is None or len(plan.capacity.groups) < 2:
        return ""
    rows = [
        (
            markdown_text(row.kind if row.groups == 1 else f"{row.groups} × {row.kind}"),
            row.layers,
            row.page,
            row.block_size,
            row.held,
            row.padding,
        )
        for row in group_rows(plan.capacity)
    ]
    header = (
        "Cache groups",
        "Layers",
        ">Page",
        ">Tokens a block",
        ">Blocks a request",
        ">Unused of a block",
    )
    return _table(header, rows)


def _advice(plan: Plan) -> str:
    rows = []
    for advice in plan.advice:
        flags = " ".join(change_flags(advice.change))
        rows.append(
            (
                markdown_text(advice.action),
                markdown_code(flags) if flags else "",
                _gain(advice),
                "<br>".join(markdown_text(part) for part in (advice.cost, advice.note) if part),
            )
        )
    return _table(("What to change", "Flags", ">Requests / tokens", "Cost"), rows)


def _gain(advice: Advice) -> str:
    """Requests, and tokens unless fewer are kept than before."""
    requests, tokens = advice.gain.requests, advice.gain.tokens
    return f"{requests:+,} / {tokens:+,}" if tokens >= 0 else f"{requests:+,} / –"


def _reasons(plan: Plan) -> str:
    lines = []
    for reason in plan.reasons:
        hint = f" Hint: {markdown_text(reason.hint)}" if reason.hint else ""
        lines.append(f"- {markdown_text(reason.message)}{hint}")
    return "\n".join(lines)


def _assumed(plan: Plan) -> str:
    settings = [markdown_code(setting) for setting in assumed_settings(plan.engine)]
    return f"Assumed, because not given: {', '.join(settings)}." if settings else ""


def _ledger(plan: Plan) -> str:
    whole = total(plan.ledger)
    rows = []
    for row in ledger_rows(plan.ledger):
        label = markdown_text(row.label)
        rows.append(
            (
                "&nbsp;" * 4 * row.depth + (label if row.depth else f"**{label}**"),
                size(row.bytes),
                share(row.bytes, whole),
                byte_range(row.low, row.high),
                row.confidence,
            )
        )
    table = _table(("Line", ">Bytes", ">Share", ">Range", "Confidence"), rows)
    title = f"Ledger of one {device_word(plan)}, {counted(len(plan.ledger), 'line')}"
    return _folded(title, table)


def _formulas(plan: Plan) -> str:
    rows = [
        (
            markdown_text(line.name),
            markdown_code(line.formula),
            markdown_code(filled_in(line)),
            markdown_text(line.source),
        )
        for line in plan.ledger
    ]
    return _folded(
        "How each line is computed", _table(("Line", "Formula", "Numbers", "Source"), rows)
    )


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>" if body else ""


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table; a header that starts with ``>`` makes its column right-aligned."""
    body = [f"| {' | '.join(row)} |" for row in rows]
    if not body:
        return ""
    names = [name.removeprefix(">") for name in header]
    rules = ["---:" if name.startswith(">") else "---" for name in header]
    return "\n".join([f"| {' | '.join(names)} |", f"| {' | '.join(rules)} |", *body])
