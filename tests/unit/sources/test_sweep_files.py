"""Sweeps that were saved as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kvplan
from kvplan.errors import InputError, UsageError
from kvplan.reports.sweep_json import sweep_json
from kvplan.sources.sweeps import read_sweep
from kvplan.sweep_result import Sweep


@pytest.fixture(scope="module")
def swept() -> Sweep:
    return kvplan.sweep(
        "Qwen/Qwen3-8B",
        vary={"gpu": "L4,L40S", "tp": [1, 3], "context": "4k,32k", "concurrency": [1, 8]},
        offline=True,
    )


def saved(folder: Path, data: Any) -> Path:
    path = folder / "sweep.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def test_it_is_read_as_it_was_written(swept: Sweep, tmp_path: Path) -> None:
    text = "".join(sweep_json(swept))
    read = read_sweep(saved(tmp_path, text))
    assert "".join(sweep_json(read)) == text
    assert read.names == swept.names
    assert [dict(row) for row in read.rows()] == [dict(row) for row in swept.rows()]
    verdicts = {row["verdict"] for row in read.rows()}
    assert verdicts == {"fits", "does_not_fit", "refused"}


def test_pairs_stay_pairs(tmp_path: Path) -> None:
    found = kvplan.sweep(
        "google/gemma-3-4b-it",
        "L4",
        vary={"image_size": "512x512,1024x768"},
        images=1,
        context=8192,
        offline=True,
    )
    text = "".join(sweep_json(found))
    assert "".join(sweep_json(read_sweep(saved(tmp_path, text)))) == text


def test_an_interrupted_one_stays_so(swept: Sweep, tmp_path: Path) -> None:
    data = json.loads("".join(sweep_json(swept)))
    data["rows"] = data["rows"][:5]
    read = read_sweep(saved(tmp_path, data))
    assert read.status == "interrupted"
    assert len(read.points) == 5


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "kvplan.plan/1"},
        {"varied": {"context": []}},
        {"varied": 3},
        {"rows": [{"verdict": "fits"}]},
        {"rows": 3},
    ],
)
def test_what_is_none_is_one_sentence(swept: Sweep, tmp_path: Path, change: dict[str, Any]) -> None:
    data = json.loads("".join(sweep_json(swept))) | change
    with pytest.raises(InputError, match="This is not a sweep"):
        read_sweep(saved(tmp_path, data))


@pytest.mark.parametrize(
    ("name", "value"),
    [("requests", "many"), ("verdict", "perhaps"), ("gpu", "elsewhere"), ("tokens", True)],
)
def test_a_row_that_is_wrong_too(swept: Sweep, tmp_path: Path, name: str, value: object) -> None:
    data = json.loads("".join(sweep_json(swept)))
    data["rows"][0][name] = value
    with pytest.raises(InputError):
        read_sweep(saved(tmp_path, data))
    del data["rows"][0][name]
    with pytest.raises(InputError):
        read_sweep(saved(tmp_path, data))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_sweep(tmp_path / "none.json")
