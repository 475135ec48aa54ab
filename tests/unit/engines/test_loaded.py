"""What vLLM holds beside the files: tables of positions, absorbed copies, padded experts."""

from __future__ import annotations

from typing import Any

import pytest
from real_models import full, toy

from kvplan.architectures.quantization.mxfp4 import MXFP4
from kvplan.engines.base import Version
from kvplan.engines.vllm.loaded import loaded_lines
from kvplan.models.caches import LatentCache
from kvplan.models.formats import PLAIN, NumberFormat
from kvplan.models.spec import ModelSpec, RotaryTable
from kvplan.models.weights import RankLayout, Weight

FP8 = NumberFormat(name="fp8", bits=8, source="made for a test")
LATENT = LatentCache(latent_dim=512, rope_dim=64)


def lines(
    model: ModelSpec,
    *,
    element_bytes: int = 2,
    sm: tuple[int, int] = (9, 0),
    at: Version = (0, 33, 0),
    **layout: Any,
) -> dict[str, int]:
    found = loaded_lines(
        model,
        element_bytes=element_bytes,
        layout=RankLayout(**({"layers": (0, len(model.layers))} | layout)),
        sm=sm,
        at=at,
    )
    return {draft.name: draft.value() for draft in found}


def test_nothing_is_added_where_nothing_is_known() -> None:
    assert lines(toy(full())) == {}


def test_every_rank_has_every_table() -> None:
    model = toy(
        full(), full(), rotary=(RotaryTable(rows=100, width=128), RotaryTable(rows=7, width=3))
    )
    for layout in ({}, {"tp": 8}, {"layers": (1, 2)}):
        assert lines(model, **layout) == {"weights.rotary": 2 * (12_800 + 21)}
    assert lines(model, element_bytes=4) == {"weights.rotary": 4 * (12_800 + 21)}


def latent(stored: NumberFormat | None, **changes: Any) -> ModelSpec:
    up = {
        "name": "self_attn.kv_b_proj.weight",
        "component": "attention",
        "shape": (16 * 256, 512),
        "layers": (0, 1, 2, 3),
        "sharding": "column",
        "format": stored,
    }
    return toy(*[LATENT] * 4, weights=(Weight(**(up | changes)),))


def test_a_quantized_up_projection_is_held_again_in_the_models_type() -> None:
    elements = 4 * 16 * 256 * 512
    assert lines(latent(FP8)) == {"weights.absorbed": 2 * elements}
    assert lines(latent(FP8), tp=8) == {"weights.absorbed": 2 * elements // 8}
    assert lines(latent(FP8), layers=(1, 3)) == {"weights.absorbed": elements}
    packed = latent(FP8, name="self_attn.kv_b_proj.qweight", shape=(64, 4096), elements=4096 * 512)
    assert lines(packed, tp=8) == {"weights.absorbed": 2 * elements // 8}


def test_parts_of_a_plain_up_projection_are_views() -> None:
    assert lines(latent(None)) == {}


def test_scales_and_draft_modules_are_not_absorbed() -> None:
    assert lines(latent(FP8, name="self_attn.kv_b_proj.weight_scale_inv", elements=0)) == {}
    assert lines(latent(FP8, component="mtp")) == {}


def test_attention_with_heads_absorbs_nothing() -> None:
    up = latent(FP8).weights
    assert lines(toy(*[full()] * 4, weights=up)) == {}


def experts(
    stored: NumberFormat | None = MXFP4, hidden: int = 2880, width: int = 2880
) -> ModelSpec:
    shared: dict[str, Any] = {
        "component": "experts",
        "layers": (0, 1),
        "copies": 32,
        "active_copies": 4,
    }
    gate_up = Weight(
        name="gate_up_proj.weight",
        shape=(2 * width, hidden),
        sharding="column",
        format=stored,
        **shared,
    )
    down = Weight(
        name="down_proj.weight", shape=(hidden, width), sharding="row", format=stored, **shared
    )
    bias = Weight(name="down_proj.bias", shape=(hidden,), sharding="row", **shared)
    return toy(full(), full(), weights=(gate_up, down, bias))


def padding(columns: int, padded: int, *, held: int = 64) -> dict[str, int]:
    """``held`` experts on all layers, 17 bytes for 32 elements."""
    return {"weights.expert_padding": held * 3 * (3072 * padded - 2880 * columns) * 17 // 32}


@pytest.mark.parametrize("sm", [(8, 0), (8, 9), (10, 0), (12, 1)])
def test_experts_in_mxfp4_are_padded_for_the_kernels(sm: tuple[int, int]) -> None:
    assert lines(experts(), sm=sm) == padding(2880, 2944)
    assert lines(experts(), sm=sm, tp=4) == padding(720, 768)
    assert lines(experts(), sm=sm, tp=4, expert_tp=1) == padding(2880, 2944)
    assert lines(experts(), sm=sm, tp=4, ep=4) == padding(2880, 2944, held=16)
    assert lines(experts(), sm=sm, layers=(0, 1)) == padding(2880, 2944, held=32)


def test_hopper_has_kernels_without_padding_since_0_11() -> None:
    assert lines(experts(), at=(0, 10, 2)) == padding(2880, 2944)
    assert "weights.expert_padding" not in lines(experts(), at=(0, 11))
    assert lines(experts(), at=(0, 11), sm=(10, 0)) == padding(2880, 2944)
    assert lines(experts(), at=(0, 25)) == {}


@pytest.mark.parametrize("at", [(0, 11), (0, 14, 1), (0, 24)])
def test_hoppers_kernels_kept_the_files_scales(at: Version) -> None:
    """64 experts on layers of three matrices, a byte for 32 elements."""
    scales = 64 * 3 * 2880 * 2880 // 32
    assert lines(experts(), at=at) == {"weights.kept_scales": scales}
    assert lines(experts(), at=at, tp=4) == {"weights.kept_scales": scales // 4}
    assert lines(experts(), at=at, layers=(0, 1)) == {"weights.kept_scales": scales // 2}
    assert lines(experts(FP8), at=at) == {}


def test_whole_tiles_and_other_formats_need_no_padding() -> None:
    assert lines(experts(hidden=4096, width=2048), sm=(8, 0)) == {}
    assert lines(experts(FP8), sm=(8, 0)) == {}
    assert lines(experts(PLAIN["bfloat16"]), sm=(8, 0)) == {}
    assert lines(experts(None), sm=(8, 0)) == {}
