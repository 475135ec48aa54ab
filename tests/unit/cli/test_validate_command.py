"""`kvplan validate`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from measured_starts import CONFIG, record

from kvplan.cli.main import run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two records, one of a model that nobody knows, and the configuration of the other."""
    (tmp_path / "org--toy").mkdir()
    (tmp_path / "org--toy" / "config.json").write_text(json.dumps(CONFIG))
    lines = [record(model="org/toy").json_line(), record(id="b", model="no/body").json_line()]
    (tmp_path / "starts.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(folder / "starts.jsonl"), "--configs", str(folder), "--offline"]
    assert run(["validate", *words]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("2 records: 1 compared, 1 skipped\n")
    assert "unknown model" in out
    assert err == ""


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(folder / "starts.jsonl"), "--configs", str(folder), "--offline"]
    assert run(["validate", *words, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["skipped"] is None for each in found["records"]] == [True, False]


def test_to_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(folder / "starts.jsonl"), "--configs", str(folder), "--offline"]
    assert run(["validate", *words, "--output", str(folder / "out.txt")]) == 0
    assert capsys.readouterr().out == ""
    assert (folder / "out.txt").read_text().startswith("2 records")


def test_strict(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "odd.jsonl").write_text(record(model="org/toy", caution="odd").json_line())
    words = [str(folder / "odd.jsonl"), "--configs", str(folder), "--offline", "--strict"]
    assert run(["validate", *words]) == 0
    assert "1 record: 0 compared, 1 skipped" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "is not JSON"), ('{"tp": "two"}', "wrong values"), ("[]", "JSON object was expected")],
)
def test_unreadable_records(
    tmp_path: Path, content: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.jsonl").write_text(content)
    assert run(["validate", str(tmp_path / "bad.jsonl")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "bad.jsonl:1" in err


def test_no_such_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["validate", str(tmp_path / "none.jsonl")]) == 2
    assert "There is no file" in capsys.readouterr().err


def test_no_such_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(folder / "starts.jsonl"), "--configs", str(folder / "nowhere")]
    assert run(["validate", *words]) == 2
    assert "There is no folder" in capsys.readouterr().err
