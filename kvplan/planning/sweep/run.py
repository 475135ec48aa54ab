"""A grid → what holds at every point.

A configuration is prepared once for each length of request, since an engine is started with the
longest that it is to serve. How many requests are asked for is then a comparison, but for
engines that are started for so many.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kvplan.engines.base import Engine, Prepared, Setup
from kvplan.errors import KvplanError, RefusedError, UsageError
from kvplan.planning.size import resolve_context
from kvplan.planning.sweep.cells import cell_of, refused_cell
from kvplan.sweep_grid import Grid, first_on_line
from kvplan.sweep_result import CONCURRENCY, NOT_REACHED, VERDICTS, Cell, Sweep

# Engines whose memory is laid out without regard to how many requests are asked for. The others
# start for so many: llama.cpp's cells, the batch of transformers.
COMPARED = frozenset({"vllm", "sglang", "tensorrt-llm", "ollama"})
_FITS, _DOES_NOT = VERDICTS.index("fits"), VERDICTS.index("does_not_fit")


@dataclass(frozen=True, slots=True)
class Configuration:
    """What is asked of an engine, but for length and number of requests.

    Attributes:
        setup: Its context is filled in for each length.
        more_tokens: What images add to a length that is a number.
        notes: Codes of what is to be said of it.
    """

    engine: Engine
    setup: Setup
    more_tokens: int = 0
    notes: tuple[str, ...] = ()


Configure = Callable[[Mapping[str, Any]], Configuration]
Progress = Callable[[int, int], None]


@dataclass(slots=True)
class _Found:
    """What has been worked out so far."""

    cells: list[Cell]
    cell_of: array[int]
    verdicts: bytearray
    known: dict[int, Configuration | KvplanError] = field(default_factory=dict)


def run(
    inputs: Mapping[str, Any], grid: Grid, configure: Configure, progress: Progress | None = None
) -> Sweep:
    """Works out every point of a grid.

    Args:
        inputs: All inputs by name; those of the grid's axes are replaced.
        grid: What is varied.
        configure: The configuration for some inputs. It may raise a RefusedError or a
            UsageError, which becomes the verdict on its points.
        progress: Told how many points are done, of how many.
    """
    found = _Found([], array("l", [0]) * grid.size, bytearray([NOT_REACHED]) * grid.size)
    interrupted = False
    try:
        for done in _lines(inputs, grid, configure, found):
            if progress is not None:
                progress(done, grid.size)
    except KeyboardInterrupt:
        interrupted = True
    first = dict(inputs) | grid.at(0)
    return Sweep(
        inputs=tuple(first.items()),
        grid=grid,
        cells=tuple(found.cells),
        cell_of=tuple(found.cell_of),
        verdicts=bytes(found.verdicts),
        status="interrupted" if interrupted else "finished",
    )


def _lines(
    inputs: Mapping[str, Any], grid: Grid, configure: Configure, found: _Found
) -> Iterator[int]:
    """Points that differ in the concurrency alone, line by line; yields how many are done."""
    lines, stride, length = grid.without(CONCURRENCY), *grid.line(CONCURRENCY)
    axis = grid.axis(CONCURRENCY)
    asked = axis.values if axis else (inputs[CONCURRENCY],)
    context_stride, contexts = lines.line("context")
    for line in range(lines.size):
        given = dict(inputs) | lines.at(line)
        number = line // (context_stride * contexts) * context_stride + line % context_stride
        made = found.known.get(number)
        if made is None:
            made = found.known[number] = _made(configure, given)
        cells, codes = _on_line(made, given["context"], asked)
        first = first_on_line(line, stride, length)
        points = slice(first, first + stride * length, stride)
        places = array("l", [len(found.cells)]) * length
        if len(cells) > 1:
            places = array("l", range(len(found.cells), len(found.cells) + length))
        found.cells += cells
        found.cell_of[points], found.verdicts[points] = places, codes
        yield (line + 1) * length


def _made(configure: Configure, given: Mapping[str, Any]) -> Configuration | KvplanError:
    try:
        return configure(given)
    except (RefusedError, UsageError) as refusal:
        return refusal


def _on_line(
    made: Configuration | KvplanError, context: int | str | None, asked: Sequence[int | None]
) -> tuple[list[Cell], bytes]:
    """One cell for all, or one for each; and the verdict for each."""
    if isinstance(made, KvplanError):
        return _all_refused(made, asked)
    try:
        prepared, planned = _prepared(made, context)
        if made.engine.name in COMPARED or len(asked) == 1:
            return _compared(made, prepared, planned, asked)
        cells = [cell_of(prepared.answer(planned, each), notes=made.notes) for each in asked]
    except (RefusedError, UsageError) as refusal:
        return _all_refused(refusal, asked)
    return cells, bytes(VERDICTS.index(cell.verdict) for cell in cells)


def _all_refused(refusal: KvplanError, asked: Sequence[int | None]) -> tuple[list[Cell], bytes]:
    return [refused_cell(refusal)], bytes([VERDICTS.index("refused")]) * len(asked)


def _prepared(made: Configuration, context: int | str | None) -> tuple[Prepared, int]:
    setup, engine = made.setup, made.engine
    if isinstance(context, int):
        context += made.more_tokens
    stated = context if isinstance(context, int) else None
    length = resolve_context(setup.model, stated, unstated=engine.unstated_context)
    prepared = engine.prepare(replace(setup, context=length))
    planned = max(1, prepared.longest_context()) if context == "auto" else length
    return prepared, planned


def _compared(
    made: Configuration, prepared: Prepared, planned: int, asked: Sequence[int | None]
) -> tuple[list[Cell], bytes]:
    only = asked[0] if len(asked) == 1 else None
    cell = cell_of(prepared.answer(planned, only), notes=made.notes)
    if len(asked) == 1 or cell.verdict != "fits":
        return [cell], bytes([VERDICTS.index(cell.verdict)]) * len(asked)
    held = cell.requests or 0
    return [cell], bytes(_FITS if each is None or each <= held else _DOES_NOT for each in asked)
