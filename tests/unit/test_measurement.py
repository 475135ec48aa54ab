"""Measurement records: the contract's keys, and whatever else a line holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kvplan.measurement import LiveLoad, Measurement

KEYS = [
    *("id", "source", "engine", "engine_version", "model", "gpu", "gpu_count", "gpu_total_gib"),
    *("tp", "pp", "dp", "gpu_memory_utilization", "max_model_len", "max_num_seqs"),
    *("max_num_batched_tokens", "kv_cache_dtype", "dtype", "quantization", "weight_format"),
    *("block_size", "enforce_eager", "weights_gib", "activation_peak_gib", "non_torch_gib"),
    *("cudagraph_gib", "cudagraph_est_gib", "available_kv_gib", "num_gpu_blocks", "kv_tokens"),
    *("max_concurrency", "outcome"),
]


def test_the_keys_are_those_of_a_record() -> None:
    assert list(Measurement.model_fields) == KEYS
    assert set(Measurement().model_dump().values()) == {None}


def test_unknown_keys_are_kept() -> None:
    record = Measurement.model_validate({"tp": 2, "modes": ["geometry"], "notes": None})
    assert record.model_extra == {"modes": ["geometry"], "notes": None}
    assert json.loads(record.json_line())["modes"] == ["geometry"]


@given(
    tokens=st.none() | st.integers(0, 2**40),
    size=st.none() | st.floats(-1e6, 1e6, allow_nan=False),
    words=st.none() | st.text(max_size=20),
)
def test_a_line_read_back_is_the_same(
    tokens: int | None, size: float | None, words: str | None
) -> None:
    record = Measurement(kv_tokens=tokens, weights_gib=size, model=words, outcome="started")
    assert Measurement.model_validate(json.loads(record.json_line())) == record


@pytest.mark.parametrize(
    "values",
    [
        {"tp": 0},
        {"tp": 1.5},
        {"tp": "2"},
        {"weights_gib": "14"},
        {"weights_gib": float("nan")},
        {"kv_tokens": -1},
        {"enforce_eager": "yes"},
        {"model": 5},
        {"tp": True},
    ],
)
def test_values_of_another_kind_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Measurement.model_validate(values)


def test_it_does_not_change() -> None:
    with pytest.raises(ValidationError):
        Measurement().tp = 2  # type: ignore[misc]
    with pytest.raises(ValidationError):
        LiveLoad().running = 2  # type: ignore[misc]
