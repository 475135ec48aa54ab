"""How many CUDA graphs are captured."""

from __future__ import annotations

from typing import Any

import pytest
from real_models import device

from kvplan.engines.vllm.graphs import captured, sizes
from kvplan.engines.vllm.history import rules_for
from kvplan.engines.vllm.settings import Settings, resolve


def settings(**options: Any) -> Settings:
    return resolve(
        options, rules_for("0.33.0"), device(), total_bytes=79 * 2**30, context=8192, pp=1
    )


@pytest.mark.parametrize(
    ("options", "count"),
    [
        # 1, 2, 4; 8 to 248: 31; 256 to 512: 17.
        ({}, 51),
        ({"max_num_seqs": 16}, 7),  # 1, 2, 4, 8, 16, 24, 32
        ({"max_num_seqs": 1}, 2),  # 1, 2
        ({"max_num_seqs": 64, "max_num_batched_tokens": 64}, 11),  # up to 64
        ({"max_cudagraph_capture_size": 8}, 4),
        ({"cudagraph_capture_sizes": [1, 2, 3]}, 3),
    ],
)
def test_sizes(options: dict[str, Any], count: int) -> None:
    assert sizes(settings(**options)) == count
    assert captured(settings(**options)) == 2 * count


@pytest.mark.parametrize(
    ("mode", "graphs"),
    [
        ("NONE", 0),
        ("PIECEWISE", 51),
        ("FULL", 51),
        ("FULL_DECODE_ONLY", 51),
        ("FULL_AND_PIECEWISE", 102),
    ],
)
def test_modes(mode: str, graphs: int) -> None:
    assert captured(settings(cudagraph_mode=mode)) == graphs


def test_eager_captures_none() -> None:
    assert captured(settings(enforce_eager=True)) == 0
