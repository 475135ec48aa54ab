"""The rows of a sweep for other libraries, which are imported only when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import IO, Any, overload

from typing_extensions import override

from kvplan.errors import UsageError

# Rows of a Parquet file's group, which is made in memory.
_GROUP = 100_000
# Columns that are text where they are empty.
_TEXT = frozenset({"reason_code", "reason", "hint", "notes", "engine_version"})


class Rows(Sequence[Mapping[str, Any]]):
    """Rows that are made when they are asked for.

    Args:
        count: How many there are.
        row: Makes one by its place, from 0.
    """

    def __init__(self, count: int, row: Callable[[int], Mapping[str, Any]]) -> None:
        self._places: range = range(count)
        self._row = row

    @override
    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Mapping[str, Any]: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Mapping[str, Any]]: ...

    @override
    def __getitem__(self, place: int | slice) -> Mapping[str, Any] | Sequence[Mapping[str, Any]]:
        if isinstance(place, slice):
            return [self._row(each) for each in self._places[place]]
        return self._row(self._places[place])


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns that are long but have few unlike rows.

    Attributes:
        unlike: The columns of rows that differ.
        order: For each row of the whole, its place among those.
        own: Columns of whole numbers that have a value of their own for each row.
    """

    unlike: Mapping[str, Sequence[Any]]
    order: Sequence[int]
    own: Mapping[str, Sequence[int]]


def arrow_table(columns: Columns) -> Any:
    """A `pyarrow.Table`.

    Raises:
        UsageError: pyarrow is not installed.
    """
    pyarrow = _library("pyarrow", "parquet")
    return _part(pyarrow, _unlike(pyarrow, columns), columns, 0, len(columns.order))


def write_parquet(columns: Columns, stream: IO[bytes]) -> None:
    """Writes a Parquet file, some rows at a time.

    Raises:
        UsageError: pyarrow is not installed.
    """
    pyarrow = _library("pyarrow", "parquet")
    parquet = import_module("pyarrow.parquet")
    unlike = _unlike(pyarrow, columns)
    schema = _part(pyarrow, unlike, columns, 0, 0).schema
    with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
        for start in range(0, len(columns.order), _GROUP):
            writer.write_table(_part(pyarrow, unlike, columns, start, start + _GROUP))


def _unlike(pyarrow: Any, columns: Columns) -> Any:
    return pyarrow.table(
        {name: _arrow(pyarrow, name, values) for name, values in columns.unlike.items()}
    )


def _part(pyarrow: Any, unlike: Any, columns: Columns, start: int, end: int) -> Any:
    order = columns.order[start:end]
    found = unlike.take(pyarrow.array(order, pyarrow.int64()))
    for name, values in columns.own.items():
        place = found.column_names.index(name)
        own = pyarrow.array(values[start:end], pyarrow.int64())
        found = found.set_column(place, name, own)
    return found


def _arrow(pyarrow: Any, name: str, values: Sequence[Any]) -> Any:
    """A column; values of several kinds, such as the numbers and words of an option, are text."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pyarrow.array(values, pyarrow.string() if name in _TEXT else pyarrow.int64())
    if kinds <= {int, float} or kinds in ({str}, {bool}):
        return pyarrow.array(values)
    return pyarrow.array([None if value is None else str(value) for value in values])


def pandas_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """A `pandas.DataFrame`.

    Raises:
        UsageError: pandas is not installed.
    """
    return _library("pandas", None).DataFrame(columns)


def polars_frame(columns: Mapping[str, Sequence[Any]]) -> Any:
    """A `polars.DataFrame`.

    Raises:
        UsageError: polars is not installed.
    """
    return _library("polars", None).DataFrame(columns, strict=False, infer_schema_length=None)


def _library(name: str, extra: str | None) -> Any:
    if find_spec(name) is None:
        wanted = f"'kvplan-sizer[{extra}]'" if extra else name
        raise UsageError(
            f"{name} is not installed, and this needs it.", hint=f"pip install {wanted}"
        )
    return import_module(name)
