"""A sweep as JSON, or as JSON lines: one object a point."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from kvplan.reports.sweep_cells import Pieces, chunks, is_asked, row_texts
from kvplan.sweep_result import CONCURRENCY, VERDICTS, Sweep
from kvplan.sweep_simulated import SimulatedSweep


def sweep_jsonl(sweep: Sweep | SimulatedSweep) -> Iterator[str]:
    """A line a point, in pieces."""
    yield from chunks(f"{text}\n" for text in _objects(sweep))


def sweep_json(sweep: Sweep | SimulatedSweep) -> Iterator[str]:
    """`kvplan.sweep/1` or `kvplan.sweep_simulation/1`, in pieces: what was varied, and the rows."""
    head: dict[str, Any] = {
        "schema": sweep.schema,
        "kvplan_version": sweep.kvplan_version,
        "status": sweep.status,
        "varied": {axis.name: list(axis.values) for axis in sweep.grid.axes},
        "points": len(sweep.points),
    }
    if isinstance(sweep, Sweep):
        head["verdicts"] = {verdict: sweep.count(verdict) for verdict in VERDICTS}
    else:
        head["refused"] = sweep.refused
    text = json.dumps(head, indent=2, allow_nan=False)
    yield f'{text[:-2]},\n  "rows": ['
    texts = _objects(sweep)
    first = (f"\n    {text}" for text in (next(texts),)) if len(sweep.points) else iter(())
    yield from chunks(chain(first, (f",\n    {text}" for text in texts)))
    yield "\n  ]\n}\n"


def _objects(sweep: Sweep | SimulatedSweep) -> Iterator[str]:
    split = is_asked(sweep)

    def made(row: Mapping[str, Any]) -> Pieces:
        if not split:
            return json.dumps(row, allow_nan=False), ""
        names = list(row)
        place = names.index(CONCURRENCY)
        before = json.dumps({name: row[name] for name in names[:place]}, allow_nan=False)
        after = json.dumps({name: row[name] for name in names[place + 1 :]}, allow_nan=False)
        lead = f"{before[:-1]}, " if place else "{"
        return f'{lead}"{CONCURRENCY}": ', f", {after[1:]}"

    return row_texts(sweep, made)
