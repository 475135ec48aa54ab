"""A comparison for a terminal: who holds most, the table, why they differ."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from kvplan.engine_comparison import EngineComparison
from kvplan.reports import engines_rows
from kvplan.reports.clean import clean
from kvplan.reports.engines_rows import Row
from kvplan.reports.text_console import GAP, items, lay_out, spaced, table

_STYLES = {"fits": "green", "does not fit": "red", "refused": "yellow"}


def engines_text(comparison: EngineComparison, *, width: int, color: bool, ascii_only: bool) -> str:
    """The whole report, no line wider than ``width``."""
    parts = _parts(comparison, width=width, ascii_only=ascii_only)
    return lay_out(parts, width=width, color=color, ascii_only=ascii_only)


def _parts(
    comparison: EngineComparison, *, width: int, ascii_only: bool
) -> Iterator[RenderableType]:
    yield Text(clean(engines_rows.headline(comparison)), style="bold")
    yield Text(clean(comparison.model))
    rows = engines_rows.rows(comparison)
    names = tuple(clean(name) for name in engines_rows.names(comparison))
    for columns in _chunks(names, rows, width):
        yield spaced(_table(names, rows, columns, ascii_only=ascii_only))
    why = engines_rows.differences(comparison)
    if why:
        yield spaced(items("Why they differ", (_said(engine, text) for engine, text in why)))
    settings = engines_rows.settings(comparison)
    if settings:
        yield spaced(items("What the memory setting means", (Text(clean(s)) for s in settings)))


def _said(engine: str, text: str) -> Text:
    return Text.assemble((clean(engine), "bold"), f": {clean(text)}")


def _chunks(names: tuple[str, ...], rows: tuple[Row, ...], width: int) -> Iterator[range]:
    """Engines that fit beside one another; the others follow in another table."""
    left = width - max(cell_len(row.label) for row in rows)
    start, used = 0, 0
    for index in range(len(names)):
        column = GAP + max(
            *(cell_len(word) for word in names[index].split(" ")),
            *(cell_len(clean(row.values[index])) for row in rows if row.values),
        )
        if used + column > left and index > start:
            yield range(start, index)
            start, used = index, 0
        used += column
    yield range(start, len(names))


def _table(
    names: tuple[str, ...], rows: tuple[Row, ...], columns: range, *, ascii_only: bool
) -> RenderableType:
    made = table(
        words=("",),
        numbers=tuple(names[index].replace(" ", "\n") for index in columns),
        ascii_only=ascii_only,
    )
    for row in rows:
        if not row.values:
            made.add_row(Text(row.label), style="bold")
            continue
        values = (clean(row.values[index]) for index in columns)
        made.add_row(Text(row.label), *(Text(v, style=_STYLES.get(v, "")) for v in values))
    return made
