"""Engines by name: known without being imported, made once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kvplan.engines.registry import PLACES, Engines


def test_names_are_known_and_engines_made_once() -> None:
    engines = Engines(PLACES)
    assert list(engines) == list(PLACES)
    assert len(engines) == len(PLACES)
    assert "vllm" in engines
    assert "vlm" not in engines
    assert engines["vllm"] is engines["vllm"]
    with pytest.raises(KeyError):
        _ = engines["vlm"]


@pytest.mark.parametrize("name", list(PLACES))
def test_every_engine_is_where_it_says(name: str) -> None:
    assert Engines(PLACES)[name].name == name


def test_one_engine_does_not_load_another() -> None:
    code = (
        "import sys, kvplan.api as api; api.ENGINES['vllm']; 'transformers' in api.ENGINES; "
        "print([n for n in sys.modules if n.startswith('kvplan.engines.transformers')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
