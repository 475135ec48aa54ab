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
        padding: Unused bytes of a block, and their share; the most of these groups.
    """

    kind: str
    groups: int
    layers: str
    page: str
    block_size: str
    held: str
    padding: str


def group_rows(capacity: Capacity) -> tuple[GroupRow, ...]:
    """One row for groups that differ in their layers alone."""
    alike: dict[tuple[str, int, int, int], list[CacheGroup]] = {}
    for group in capacity.groups:
        key = (group.kind, group.page_bytes, group.block_size, group.blocks_per_request)
        alike.setdefault(key, []).append(group)
    return tuple(_row(groups, capacity.bytes_per_block) for groups in alike.values())


def _row(groups: list[CacheGroup], block_bytes: int) -> GroupRow:
    first = groups[0]
    waste = max(group.padding_bytes for group in groups)
    return GroupRow(
        kind=first.kind,
        groups=len(groups),
        layers=_layers(groups),
        page=format_bytes(first.page_bytes),
        block_size=format_count(first.block_size),
        held=format_count(first.blocks_per_request),
        padding=f"{format_bytes(waste)} ({waste / block_bytes:.1%})" if waste else "none",
    )


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
    if len(capacity.groups) < 2 and rows[0].kind in ("full", "latent", "indexer"):
        return None
    held = sum(group.blocks_per_request for group in capacity.groups)
    parts = "; ".join(
        f"{row.held} in {'each of ' if row.groups > 1 else ''}{row.groups} {row.kind} "
        f"group{'s' if row.groups > 1 else ''} ({_KEEPS.get(row.kind, 'caches of their own')})"
        for row in rows
    )
    length = f"{format_count(context)} tokens" if context else "this length"
    return (
        f"Not tokens times bytes: all groups draw on one pool of equal blocks, and a request of "
        f"{length} holds {format_count(held)} of them: {parts}."
    )
