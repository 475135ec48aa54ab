"""A search for a terminal: the answer, the plans, why the others lost, the command."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kvplan.fit_result import FitPlan, FitResult
from kvplan.reports import fit_rows
from kvplan.reports.clean import clean
from kvplan.reports.fit_rows import PlanRow
from kvplan.reports.text_console import INDENT, items, lay_out, spaced, table

# From here on every figure has a column of its own.
_WIDE = 110
_MOST_GPUS = 8
_CONTINUED = " \\"


def fit_text(found: FitResult, *, width: int, color: bool, ascii_only: bool, top: int) -> str:
    """The whole report, no line wider than ``width``."""
    parts = _parts(found, width=width, ascii_only=ascii_only, top=top)
    return lay_out(parts, width=width, color=color, ascii_only=ascii_only)


def _parts(found: FitResult, *, width: int, ascii_only: bool, top: int) -> Iterator[RenderableType]:
    yield Text(clean(fit_rows.headline(found)), style="bold")
    yield Text(f"{clean(found.model)}. {clean(fit_rows.searched(found))}")
    for listing in fit_rows.listings(found, top):
        made = _table(listing.plans, wide=width >= _WIDE, ascii_only=ascii_only)
        head = (Text(listing.title, style="bold"),) if listing.title else ()
        yield spaced(Group(*head, made))
    plans = fit_rows.shown(found, top)
    yield from _beside(found, plans)
    lost = list(fit_rows.why_lost(found))
    if lost:
        yield spaced(Text("Why the others lost", style="bold"))
        yield from (_reason(sentence, parts) for sentence, parts in lost)
    for title, words in fit_rows.commands(found):
        yield spaced(Text(title, style="bold"))
        for line in _shell_lines(words, width - INDENT):
            yield Padding(Text(line, style="cyan", overflow="fold"), (0, 0, 0, INDENT))
    said = (*fit_rows.prices_said(plans), *found.assumed)
    yield spaced(items("To know", (Text(clean(text)) for text in said)))


def _shell_lines(words: Sequence[str], width: int) -> Iterator[str]:
    """The command for a shell, continued with backslashes so that it can be copied."""
    line = ""
    for word in map(shlex.quote, map(clean, words)):
        if line.strip() and len(f"{line} {word}{_CONTINUED}") > width:
            yield f"{line}{_CONTINUED}"
            line = f"{' ' * INDENT}{word}"
        else:
            line = f"{line} {word}" if line else word
    yield line


def _beside(found: FitResult, plans: Sequence[FitPlan]) -> Iterator[RenderableType]:
    notes = [
        Text.assemble((f"{plan.rank}", "bold"), f": {clean('; '.join(plan.remarks))}", style="")
        for plan in sorted(plans, key=lambda plan: plan.rank)
        if plan.remarks and plan.remarks != ("no price",)
    ]
    if notes:
        yield spaced(items("Remarks", notes))
    shown = {plan.gpu for plan in plans}
    others = [plan for plan in fit_rows.by_gpu(found) if plan.gpu not in shown][:_MOST_GPUS]
    if others:
        lines = (Text(clean(fit_rows.in_short(plan))) for plan in others)
        yield spaced(items("Other GPUs", lines))


def _table(plans: Sequence[FitPlan], *, wide: bool, ascii_only: bool) -> Table:
    rows = fit_rows.plan_rows(plans)
    priced = any(plan.per_hour is not None for plan in plans)
    price = ("Price/h",) if priced else ()
    if wide:
        made = table(
            words=(),
            numbers=(),
            ascii_only=ascii_only,
        )
        made.add_column("", justify="right", no_wrap=True)
        for word in ("GPUs", "Run as"):
            made.add_column(word, overflow="fold")
        for number in ("Holds", "Headroom", *price, "Token ≥", "Prompt ≥", "Tokens/s ≤"):
            made.add_column(number, justify="right", no_wrap=True)
    else:
        made = table(words=(), numbers=(), ascii_only=ascii_only)
        made.padding = (0, 1, 0, 0)
        made.add_column("", justify="right", no_wrap=True)
        for word in ("GPUs", "Run as"):
            made.add_column(word, overflow="fold")
        for number in ("Holds", *price, "Token ≥\nPrompt ≥"):
            made.add_column(number, justify="right", no_wrap=True)
    for row, plan in zip(rows, plans, strict=True):
        cells = _cells(row, plan, wide=wide, priced=priced)
        made.add_row(*cells, style="" if plan.frontier else "dim")
    return made


def _cells(row: PlanRow, plan: FitPlan, *, wide: bool, priced: bool) -> Iterator[Text]:
    crawls = "yellow" if plan.crawls else ""
    yield Text(row.rank)
    yield Text(_lines(row.hardware, row.bought))
    yield Text(_lines(row.run, row.formats))
    if wide:
        yield Text(row.holds)
        yield Text(row.headroom)
    else:
        yield Text(f"{row.holds}\n{row.headroom}")
    if priced:
        yield Text(row.price)
    if wide:
        yield Text(row.token, style=crawls)
        yield Text(row.first, style=crawls)
        yield Text(row.rate)
    else:
        yield Text(f"{row.token}\n{row.first}", style=crawls)


def _lines(first: str, second: str) -> str:
    return "\n".join(clean(part) for part in (first, second) if part)


def _reason(sentence: str, parts: Sequence[str]) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for part in parts:
        grid.add_row(" " * INDENT + "-", Text(clean(part)))
    return Group(Text(f"{clean(sentence)}:"), grid)
