"""From the logged bytes of cache to blocks, tokens and concurrency, exactly as the engine counts.

The log prints the bytes in GiB with two digits, so many byte counts may be meant. All three
figures grow with the bytes; a start agrees if one and the same count of blocks, within what the
printed bytes allow, gives all of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

from kvplan.engines.base import Figures
from kvplan.measurement import Measurement
from kvplan.planning.validate.alternatives import explanation
from kvplan.planning.validate.lacking import LEAST_GIB, MOST_GIB, LackingError, extra, need
from kvplan.planning.validate.match import Start
from kvplan.planning.validate.printed import CONCURRENCY_DIGITS, byte_ends
from kvplan.units import GIB
from kvplan.validation import GeometryCheck

_TIE = 1e-9
_PROBE_BYTES = 2**14 * GIB
_Figure = Callable[[Figures], float]


@dataclass(frozen=True)
class _Logged:
    """The figures of the log; None is not logged."""

    blocks: int | None
    tokens: int | None
    concurrency: float | None

    @property
    def empty(self) -> bool:
        return not (self.blocks or self.tokens or self.concurrency)

    @cached_property
    def bounds(self) -> tuple[tuple[_Figure, float, float], ...]:
        """For each logged figure: how it is predicted, and between what it lies."""
        half = 0.5 * 10.0**-CONCURRENCY_DIGITS + _TIE
        concurrency = self.concurrency or 0.0
        every = (
            (lambda at: at.blocks, self.blocks, self.blocks),
            (lambda at: at.tokens, self.tokens, self.tokens),
            (lambda at: at.max_concurrency, concurrency - half, concurrency + half),
        )
        logged = (self.blocks, self.tokens, self.concurrency)
        return tuple(
            (predicted, float(low or 0), float(high or 0))
            for (predicted, low, high), figure in zip(every, logged, strict=True)
            if figure
        )

    def error(self, at: Figures) -> float:
        """Relative, of the figure that says most."""
        if self.tokens:
            return at.tokens / self.tokens - 1
        if self.blocks:
            return at.blocks / self.blocks - 1
        return at.max_concurrency / (self.concurrency or 1.0) - 1


def check(start: Start) -> GeometryCheck:
    """Predicted and logged figures.

    Raises:
        LackingError: the record states no bytes, or none of the figures.
        KvplanError: the configuration is refused.
    """
    record = start.record
    gib = logged_gib(record)
    logged = _Logged(record.num_gpu_blocks, printed_tokens(record), _concurrency(record))
    if logged.empty:
        raise LackingError("neither num_gpu_blocks, kv_tokens nor max_concurrency is stated")
    if gib < LEAST_GIB:
        raise LackingError("no memory was left for the cache")
    at_low, at_gib, at_high = _at(start, gib)
    reachable = _reachable(start, logged, at_low.blocks, at_high.blocks)
    return GeometryCheck(
        kv_gib=gib,
        predicted_blocks=at_gib.blocks,
        predicted_tokens=at_gib.tokens,
        predicted_concurrency=at_gib.max_concurrency,
        low_tokens=at_low.tokens,
        high_tokens=at_high.tokens,
        measured_blocks=logged.blocks,
        measured_tokens=logged.tokens,
        measured_concurrency=logged.concurrency,
        within_print_rounding=reachable,
        reachable_with=None if reachable else explanation(start, _Agrees(logged, gib)),
        relative_error=logged.error(at_gib),
    )


@dataclass(frozen=True)
class _Agrees:
    """Whether another start gives the same log."""

    logged: _Logged
    gib: float

    def __call__(self, start: Start) -> bool:
        low, _, high = _at(start, self.gib)
        return _reachable(start, self.logged, low.blocks, high.blocks)


def logged_gib(record: Measurement) -> float:
    """The logged GiB of the rank that has least: it decides. Negative where nothing was left.

    Raises:
        LackingError: none are stated, or more than any GPU has.
    """
    ranks = extra(record, "available_kv_gib_per_rank")
    if isinstance(ranks, list) and ranks and all(isinstance(rank, int | float) for rank in ranks):
        gib = float(min(ranks))
    else:
        gib = need(record.available_kv_gib, "available_kv_gib")
    if abs(gib) > MOST_GIB:
        raise LackingError(f"available_kv_gib is no amount of memory: {gib:g} GiB")
    return gib


def logged_bytes(start: Start) -> int:
    """Bytes of the logged cache: as printed, else by its blocks, else by its tokens.

    Raises:
        LackingError: nothing is stated of it.
        KvplanError: the configuration is refused.
    """
    record = start.record
    if record.available_kv_gib is not None:
        return round(logged_gib(record) * GIB)
    if record.num_gpu_blocks:
        return record.num_gpu_blocks * _block_bytes(start)
    tokens = need(record.kv_tokens or None, "available_kv_gib")
    # Tokens are rounded to blocks: many of them, so that a rule of three is exact enough.
    held = _figures(start, _PROBE_BYTES).tokens
    return tokens * _PROBE_BYTES // held if held else 0


def _concurrency(record: Measurement) -> float | None:
    """What is printed with two digits as at least 0.01."""
    printed = record.max_concurrency
    return printed if printed and printed >= 10.0**-CONCURRENCY_DIGITS else None


def printed_tokens(record: Measurement) -> int | None:
    """The count that the log printed, where the record keeps another beside it."""
    kept = record.model_extra or {}
    if "kv_tokens_printed" not in kept:
        return record.kv_tokens
    printed = kept["kv_tokens_printed"]
    return printed if isinstance(printed, int) else None


def _at(start: Start, gib: float) -> tuple[Figures, Figures, Figures]:
    """At the fewest bytes that print as ``gib``, at it, and at the most."""
    low, high = byte_ends(gib)
    return _figures(start, low), _figures(start, round(gib * GIB)), _figures(start, high)


def _figures(start: Start, kv_bytes: int) -> Figures:
    prepared = start.engine.prepare(start.pages(start.model, kv_bytes))
    return prepared.figures(start.context)


def _reachable(start: Start, logged: _Logged, fewest: int, most: int) -> bool:
    """Whether some count of blocks from ``fewest`` to ``most`` gives every logged figure."""
    block_bytes = _block_bytes(start)
    counts = range(fewest, most + 1)

    @cache
    def at(blocks: int) -> Figures:
        return _figures(start, max(1, blocks * block_bytes))

    first, last = 0, len(counts) - 1
    for predicted, low, high in logged.bounds:

        def key(blocks: int, figure: _Figure = predicted) -> float:
            return figure(at(blocks))

        first = max(first, bisect_left(counts, low, key=key))
        last = min(last, bisect_right(counts, high, key=key) - 1)
    return first <= last


def _block_bytes(start: Start) -> int:
    prepared = start.engine.prepare(start.pages(start.model, GIB))
    return prepared.answer(start.context, None).capacity.bytes_per_block
