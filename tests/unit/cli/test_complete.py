"""Completion offers the bundled files by name and opens none of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvplan import api
from kvplan.cli import complete
from kvplan.errors import InternalError
from kvplan.sources import bundled


@pytest.fixture(autouse=True)
def _specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, names in (
        ("gpu_specs", ("H100-SXM-80GB", "L4-24GB")),
        ("model_specs", ("org--a-model", "org--b")),
    ):
        (tmp_path / kind).mkdir()
        for name in names:
            (tmp_path / kind / f"{name}.yaml").write_text("not: [read")
    monkeypatch.setattr(bundled, "specs_dir", lambda kind: tmp_path / kind)


def test_gpus() -> None:
    assert complete.complete_gpu("") == ["auto", "H100-SXM-80GB", "L4-24GB"]
    assert complete.complete_gpu("H1") == ["H100-SXM-80GB"]


def test_models() -> None:
    assert complete.complete_model("org/") == ["org/a-model", "org/b"]


def test_engines_are_those_of_the_library() -> None:
    assert set(api.ENGINES) == set(complete.ENGINES)
    assert complete.complete_engine("v") == ["vllm"]


def test_a_broken_installation_completes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(kind: str) -> Path:
        raise InternalError(kind)

    monkeypatch.setattr(bundled, "specs_dir", missing)
    assert complete.complete_model("") == []
