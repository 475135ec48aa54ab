"""A sweep's rows as text, each unlike row made once: a million points differ in few things."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from kvplan.sweep_result import CONCURRENCY, Sweep
from kvplan.sweep_simulated import SimulatedSweep

_CHUNK = 20_000
Pieces = tuple[str, str]
"""A row's text before and after the concurrency."""


def row_texts(
    sweep: Sweep | SimulatedSweep, made: Callable[[Mapping[str, Any]], Pieces]
) -> Iterator[str]:
    """The text of every row.

    Args:
        sweep: What was found.
        made: The text of a row in two pieces, which the concurrency joins.
    """
    if isinstance(sweep, SimulatedSweep):
        for row in sweep.rows():
            yield "".join(made(row))
        return
    places, rows = sweep.unlike()
    pieces = [made(row) for row in rows.values()]
    asked = sweep.asked()
    state = sweep.state
    if asked is None:
        for point in sweep.points:
            yield "".join(pieces[places[state(point)]])
        return
    for point, count in zip(sweep.points, asked, strict=True):
        before, after = pieces[places[state(point)]]
        yield f"{before}{count}{after}"


def chunks(texts: Iterator[str]) -> Iterator[str]:
    """Texts joined in pieces of a handy size."""
    while part := "".join(islice(texts, _CHUNK)):
        yield part


def is_asked(sweep: Sweep | SimulatedSweep) -> bool:
    """Whether the concurrency is varied, so that it joins the pieces."""
    return sweep.grid.axis(CONCURRENCY) is not None


def word(value: Any) -> str:
    """An input or a figure as one word.

    >>> word(8192), word(None), word((1024, 768)), word({"method": "ngram"}), word(True)
    ('8192', '', '1024x768', '{"method": "ngram"}', 'true')
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(x, int) for x in value):
        return "x".join(map(str, value))
    return json.dumps(value)
