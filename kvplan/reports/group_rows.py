"""Cache groups as a reader wants them: like groups together, layers as ranges, waste in percent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kvplan.plan import CacheGroup, Capacity
from kvplan.units import format_bytes, format_count

_SHOWN = 4
_KEEPS = {
    "full": "every token",
    "latent": "every token",
    "indexer": "every token",
    "window": "a window and what is in flight",
    "latent_window": "a window and what is in flight",
    "chunked": "a chunk and what is in flight",
    "recurrent": "states, whatever the length",
    "cross": "the encoder's output",
}


class GroupRow(NamedTuple):
    """Groups of one kind and size.

    Attributes:
        groups: How many there are of them.
        layers: Their layers as ranges.
        held: Blocks that a request holds in each.
        padding: Unused bytes of a block, and their share.
    """

    kind: str
    groups: int
    layers: str
    page: str
    block_size: str
    held: str
    padding: str


def group_rows(capacity: Capacity) -> tuple[GroupRow, ...]:
    """One row for groups that differ in which layers they have alone."""
    alike: dict[tuple[object, ...], list[CacheGroup]] = {}
    for group in capacity.groups:
        figures = (group.block_size, group.blocks_per_request, group.padding_bytes)
        key = (group.kind, group.page_bytes, group.pages, *figures)
        alike.setdefault(key, []).append(group)
    return tuple(_row(groups, capacity.bytes_per_block) for groups in alike.values())


def _row(groups: list[CacheGroup], block_bytes: int) -> GroupRow:
    first = groups[0]
    waste = first.padding_bytes
    return GroupRow(
        kind=_kinds(first),
        groups=len(groups),
        layers=_layers(groups),
        page=_page(first),
        block_size=format_count(first.block_size),
        held=format_count(first.blocks_per_request),
        padding=f"{format_bytes(waste)} ({waste / block_bytes:.1%})" if waste else "none",
    )


def _kinds(group: CacheGroup) -> str:
    """What the layers keep; a group may mix kinds that need the same blocks."""
    return " + ".join(dict.fromkeys(page.kind for page in group.pages)) or group.kind


def _page(group: CacheGroup) -> str:
    """One layer's share of a block, or the span of shares."""
    sizes = sorted(page.page_bytes for page in group.pages)
    if not sizes or sizes[0] == sizes[-1]:
        return format_bytes(group.page_bytes)
    return f"{format_bytes(sizes[0])} to {format_bytes(sizes[-1])}"


def _layers(groups: list[CacheGroup]) -> str:
    indices = sorted({index for group in groups for index in group.layer_indices})
    count = sum(group.layers for group in groups)
    return f"{format_count(count)}: {ranges(indices)}" if indices else format_count(count)


def ranges(numbers: Iterable[int]) -> str:
    """Whole numbers in ascending order as ranges, cut where there are many.

    >>> ranges([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs[:_SHOWN]]
    return ", ".join([*shown, "..."] if len(runs) > _SHOWN else shown)


def why_not_linear(capacity: Capacity, context: int | None) -> str | None:
    """Why the capacity is not tokens times bytes; None where it is, but for rounding to blocks."""
    rows = group_rows(capacity)
    whole = set(rows[0].kind.split(" + ")) <= {"full", "latent", "indexer"}
    if len(capacity.groups) < 2 and whole:
        return None
    held = sum(group.blocks_per_request for group in capacity.groups)
    parts = "; ".join(
        f"{row.held} in {'each of ' if row.groups > 1 else ''}{row.groups} {row.kind} "
        f"group{'s' if row.groups > 1 else ''} ({_keeps(row.kind)})"
        for row in rows
    )
    length = f"{format_count(context)} tokens" if context else "this length"
    return (
        f"Not tokens times bytes: all groups draw on one pool of equal blocks, and a request of "
        f"{length} holds {format_count(held)} of them: {parts}."
    )


def _keeps(kinds: str) -> str:
    found = dict.fromkeys(_KEEPS.get(kind, "caches of their own") for kind in kinds.split(" + "))
    return " and ".join(found)
