"""The bar of one GPU's memory for a terminal: readable without colour, and in ASCII."""

from __future__ import annotations

from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from kvplan.ledger import total
from kvplan.plan import Plan
from kvplan.reports.figures import share
from kvplan.reports.memory_bar import Kind, Part, cells, memory_parts
from kvplan.units import format_bytes


class Look(NamedTuple):
    """How a kind of part is drawn: a glyph of its own, so that colour only helps."""

    glyph: str
    letter: str
    style: str


LOOKS: dict[Kind, Look] = {
    "weights": Look("█", "W", "blue"),
    "runtime": Look("▓", "R", "magenta"),
    "kv": Look("▒", "K", "green"),
    "kv_spare": Look("░", "k", "green"),
    "outside": Look("▞", "/", "yellow"),
    "free": Look("·", ".", "default"),
    "missing": Look("×", "!", "bold red"),
}
# What is missing may be many times the card; the card keeps at least this share of the bar.
_CARD_SHARE = 0.6


def bar(plan: Plan, *, width: int, ascii_only: bool) -> Text:
    """The bar, two rows high: the card between its edges, what it lacks beyond them."""
    parts = memory_parts(plan)
    card = total(plan.ledger)
    missing = sum(part.bytes for part in parts if part.kind == "missing")
    inner = width - 2
    card_width = _card_width(card, missing, inner)
    inside = _clipped(tuple(part for part in parts if part.kind != "missing"), card)
    edge = "|" if ascii_only else "┃"
    row = Text(edge, no_wrap=True)
    counts = cells(tuple(part.bytes for part in inside), card_width)
    for part, count in zip(inside, counts, strict=True):
        row.append_text(_stretch(part.kind, count, ascii_only=ascii_only))
    row.append(edge)
    if missing:
        row.append_text(_stretch("missing", inner - card_width, ascii_only=ascii_only))
    return Text("\n").join([row, row])


def legend(plan: Plan, *, ascii_only: bool) -> Table:
    """Each part with its mark, bytes and share of the card."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column()
    for _ in range(2):
        table.add_column(justify="right", no_wrap=True)
    card = total(plan.ledger)
    for part in memory_parts(plan):
        label = _stretch(part.kind, 2, ascii_only=ascii_only)
        style = LOOKS["missing"].style if part.kind == "missing" else ""
        label.append(f" {part.label}", style=style)
        table.add_row(label, Text(format_bytes(part.bytes), style=style), share(part.bytes, card))
    return table


def _card_width(card: int, missing: int, inner: int) -> int:
    if missing <= 0:
        return inner
    fair = inner * card // (card + missing)
    return min(max(fair, int(inner * _CARD_SHARE)), inner - 1)


def _clipped(parts: tuple[Part, ...], card: int) -> tuple[Part, ...]:
    """The parts as far as they lie on the card."""
    inside, left = [], card
    for part in parts:
        if left <= 0:
            break
        inside.append(part._replace(bytes=min(part.bytes, left)))
        left -= part.bytes
    return tuple(inside)


def _stretch(kind: Kind, count: int, *, ascii_only: bool) -> Text:
    look = LOOKS[kind]
    return Text((look.letter if ascii_only else look.glyph) * count, style=look.style)
