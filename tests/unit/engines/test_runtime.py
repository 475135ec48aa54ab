"""Fitted memory: every range holds its value, every band says what it was fitted on."""

from __future__ import annotations

from dataclasses import fields

import pytest

from kvplan.engines.runtime import (
    CUDA_CONTEXT_GIB,
    NCCL_GIB,
    VLLM_BANDS,
    Range,
    RuntimeBand,
    vllm_band,
)


def ranges(band: RuntimeBand) -> list[Range]:
    values = [getattr(band, field.name) for field in fields(band)]
    return [value for value in values if isinstance(value, Range)]


@pytest.mark.parametrize("band", VLLM_BANDS, ids=lambda band: str(band.since))
def test_a_range_holds_its_value(band: RuntimeBand) -> None:
    assert len(ranges(band)) == 7
    for fitted in (*ranges(band), CUDA_CONTEXT_GIB, NCCL_GIB):
        assert 0 <= fitted.low <= fitted.value <= fitted.high
    assert "n=" in band.source


@pytest.mark.parametrize(
    ("version", "since"),
    [
        ((0, 9), (0, 9)),
        ((0, 16, 9), (0, 9)),
        ((0, 17), (0, 17)),
        ((0, 17, 0), (0, 17)),
        ((0, 19, 1), (0, 17)),
        ((0, 20, 0), (0, 20)),
        ((0, 33, 0), (0, 20)),
        ((1, 0), (0, 20)),
    ],
)
def test_a_release_falls_into_the_band_that_began_last(
    version: tuple[int, ...], since: tuple[int, int]
) -> None:
    assert vllm_band(version).since == since


def test_the_sampler_takes_less_since_0_17() -> None:
    """38.5 bytes a request and vocabulary entry up to 0.16, 14 since."""
    assert vllm_band((0, 16)).logits_bytes.value == 38.5
    assert vllm_band((0, 17)).logits_bytes.value == 14.0
    assert [band.layer_bytes.value for band in VLLM_BANDS] == [6.0] * 3


def test_several_ranks_take_more_where_there_is_multicast() -> None:
    for band in VLLM_BANDS[1:]:
        assert band.non_torch_tp_gib.value == 2.1
        assert band.non_torch_tp_small_gib.value == 0.25
    assert [band.non_torch_gib.value for band in VLLM_BANDS] == [0.10, 0.25, 0.34]
    assert [band.non_torch_tp_gib.value for band in VLLM_BANDS] == [0.80, 2.10, 2.10]
    assert [band.graphs_gib.value for band in VLLM_BANDS] == [0.85, 0.95, 0.40]
