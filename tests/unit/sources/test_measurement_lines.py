"""JSON lines of measurement records, read with file and line."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import pytest

from kvplan.errors import InputError, UsageError
from kvplan.measurement import Measurement
from kvplan.sources import measurements
from kvplan.sources.measurements import read_measurements, write_measurements

RECORDS = (Measurement(id="a", tp=2), Measurement.model_validate({"id": "b", "modes": ["x"]}))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


def test_what_is_written_is_read_back(path: Path) -> None:
    path.write_text("".join(write_measurements(RECORDS)), encoding="utf-8")
    assert tuple(read_measurements(str(path))) == RECORDS


def test_gzip_is_unpacked_and_blank_lines_skipped(path: Path) -> None:
    text = "\n\n".join(write_measurements(RECORDS)) + "\n  \n"
    path.write_bytes(gzip.compress(text.encode()))
    assert tuple(read_measurements(str(path))) == RECORDS


def test_a_last_line_without_end_is_a_line(path: Path) -> None:
    path.write_text('{"id": "a"}\r\n{"id": "b"}', encoding="utf-8")
    assert [record.id for record in read_measurements(str(path))] == ["a", "b"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(b'{"id": "a"}\n')))  # type: ignore[type-var]
    monkeypatch.setattr(sys, "stdin", stdin)
    assert [record.id for record in read_measurements("-")] == ["a"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "The line is not JSON"),
        ("[1]", "a list where a JSON object"),
        ('{"tp": 0}', "tp: Input should be greater than or equal to 1"),
        ('{"tp": "2", "model": 1}', "model: Input should be a valid string; tp: Input should be"),
        ('{"weights_gib": NaN}', "not a finite number"),
        ('{"tp": 1, "tp": 2}', "appears twice"),
    ],
)
def test_a_bad_line_is_named(path: Path, line: str, message: str) -> None:
    path.write_text(f'{{"id": "a"}}\n\n{line}\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        tuple(read_measurements(str(path)))
    assert caught.value.location == f"{path}:3"
    assert message in caught.value.message
    assert caught.value.hint


def test_a_line_that_is_too_long_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "_LONGEST_RECORD", 20)
    path.write_text('{"id": "a"}\n{"id": "123456789012"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="more than 20 bytes") as caught:
        tuple(read_measurements(str(path)))
    assert caught.value.location == f"{path}:2"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no file"):
        tuple(read_measurements(str(tmp_path / "none")))
    with pytest.raises(InputError, match="directory"):
        tuple(read_measurements(str(tmp_path)))


def test_gzip_that_is_cut_off(path: Path) -> None:
    path.write_bytes(gzip.compress(b'{"id": "a"}\n' * 1000)[:-20])
    with pytest.raises(InputError, match="cut off or damaged"):
        tuple(read_measurements(str(path)))


def test_closed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="closed"):
        tuple(read_measurements("-"))
