"""A sweep as CSV: one row a point, plain numbers."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from kvplan.reports.clean import inert_cell
from kvplan.reports.sweep_cells import Pieces, chunks, is_asked, row_texts, word
from kvplan.sweep_result import CONCURRENCY, Sweep
from kvplan.sweep_simulated import SimulatedSweep


def sweep_csv(sweep: Sweep | SimulatedSweep) -> Iterator[str]:
    """The header, then the rows in pieces; columns as in `kvplan.sweep_result.Sweep.names`.

    Text that a spreadsheet would take for a formula starts with an apostrophe.
    """
    names = list(sweep.names)
    place = names.index(CONCURRENCY) if is_asked(sweep) else len(names)

    def made(row: Mapping[str, Any]) -> Pieces:
        cells = [_cell(row[name]) for name in names]
        if place == len(names):
            return _line(cells), ""
        before = _line(cells[:place]).rstrip("\n")
        return f"{before}," if place else "", f",{_line(cells[place + 1 :])}"

    yield _line(names)
    yield from chunks(row_texts(sweep, made))


def _cell(value: Any) -> str:
    return inert_cell(word(value)) if isinstance(value, str | dict | list | tuple) else word(value)


def _line(cells: Sequence[str]) -> str:
    out = StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()
