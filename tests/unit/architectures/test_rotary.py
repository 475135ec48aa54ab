"""How large the tables of rotary positions are that a configuration describes."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.architectures.fields import Fields
from kvplan.architectures.rotary import read_rotary
from kvplan.models.caches import FullCache, LatentCache, LayerCache, WindowCache
from kvplan.models.spec import Layer, RotaryTable

FULL = FullCache(kv_heads=8, head_dim=128, head_dim_v=128)
WIDE = FullCache(kv_heads=2, head_dim=512, head_dim_v=512)
WINDOW = WindowCache(kv_heads=8, head_dim=128, head_dim_v=128, window=1024)
LATENT = LatentCache(latent_dim=512, rope_dim=64)


def tables(config: dict[str, Any], *caches: LayerCache, maximum: int | None = None) -> list[Any]:
    fields = Fields({"rope_theta": 1e4} | config, where="config.json", source="a class")
    layers = tuple(Layer(caches=(cache,)) for cache in caches or (FULL,))
    found = read_rotary(fields, layers, maximum)
    assert fields.filled == ()
    return [(table.rows, table.width) for table in found]


def long(**changes: Any) -> dict[str, Any]:
    return {"max_position_embeddings": 4096, **changes}


@pytest.mark.parametrize(
    ("config", "rows"),
    [
        (long(), 4096),
        (long(rope_scaling=None), 4096),
        (long(rope_scaling={"type": "llama3", "factor": 8.0}), 4096),
        (long(rope_scaling={"type": "linear", "factor": 2.0}), 8192),
        (long(rope_scaling={"type": "dynamic", "factor": 2.0}), 8192),
        (long(rope_scaling={"type": "dynamic", "alpha": 1000.0}), 4096),
        (long(rope_scaling={"rope_type": "linear"}), 4096),
        (
            long(
                rope_scaling={
                    "rope_type": "yarn",
                    "factor": 4.0,
                    "original_max_position_embeddings": 2048,
                }
            ),
            8192,
        ),
        (long(rope_scaling={"type": "yarn", "factor": 4.0}), 16_384),
        (
            long(rope_scaling={"type": "su"}, original_max_position_embeddings=1024),
            5120,
        ),
        (long(rope_scaling={"type": "default", "mrope_section": [16, 24, 24]}), 16_384),
        (long(rope_parameters={"rope_type": "linear", "factor": 2.5}), 10_240),
        (
            long(
                rope_scaling={
                    "type": "yarn",
                    "factor": 2.0,
                    "original_max_position_embeddings": 1024,
                    "mrope_section": [16],
                }
            ),
            8192,
        ),
    ],
)
def test_rows_follow_the_scaling(config: dict[str, Any], rows: int) -> None:
    assert tables(config) == [(rows, 128)]


@pytest.mark.parametrize(
    ("config", "width"),
    [
        (long(partial_rotary_factor=0.25), 32),
        (long(rotary_pct=0.5), 64),
        (long(rotary_dim=48), 48),
        (long(rope_parameters={"partial_rotary_factor": 0.5}), 64),
        (long(rope_parameters={"rope_dim": 40}, partial_rotary_factor=0.5), 40),
        (long(rope_parameters={"rope_type": "proportional", "partial_rotary_factor": 0.25}), 128),
        (long(partial_rotary_factor=1.5), 128),
    ],
)
def test_width_is_the_part_of_the_head_that_turns(config: dict[str, Any], width: int) -> None:
    assert tables(config) == [(4096, width)]


def test_layers_that_turn_alike_share_a_table() -> None:
    assert tables(long(), FULL, FULL, WINDOW) == [(4096, 128)]
    assert tables(long(), FULL, WIDE) == [(4096, 128), (4096, 512)]


def test_windows_of_gemma_3_are_not_scaled() -> None:
    config = long(model_type="gemma3_text", rope_scaling={"rope_type": "linear", "factor": 8.0})
    assert tables(config, WINDOW, FULL) == [(4096, 128), (32_768, 128)]
    assert tables(config | {"model_type": "llama"}, WINDOW, FULL) == [(32_768, 128)]


def test_each_kind_of_layer_may_have_its_own_description() -> None:
    kinds = {
        "full_attention": {"rope_type": "linear", "factor": 2.0},
        "sliding_attention": {"rope_type": "default", "partial_rotary_factor": 0.5},
    }
    assert tables(long(rope_parameters=kinds), WINDOW, FULL) == [(4096, 64), (8192, 128)]


def test_of_latent_attention_only_the_rotary_part_turns() -> None:
    assert tables(long(), LATENT) == [(4096, 64)]
    assert tables(long(), LatentCache(latent_dim=512, rope_dim=0)) == []


def test_the_class_default_stands_in_for_a_length_left_out() -> None:
    assert tables({}, maximum=2048) == [(2048, 128)]
    assert tables({}) == []


@pytest.mark.parametrize(
    "config",
    [
        long(rope_scaling="linear"),
        long(rope_scaling={"type": 7}),
        long(rope_scaling={"type": "linear", "factor": -1}),
        long(rope_scaling={"type": "linear", "factor": float("nan")}),
        long(rotary_dim="all"),
        {"max_position_embeddings": "long"},
    ],
)
def test_nonsense_is_passed_over(config: dict[str, Any]) -> None:
    assert tables(config) == []


def test_no_table_is_beyond_reason() -> None:
    ((rows, _),) = tables({"max_position_embeddings": 2**40})
    assert rows == 2**26


def test_learned_positions_have_none() -> None:
    fields = Fields({"max_position_embeddings": 4096}, where="config.json", source="a class")
    assert read_rotary(fields, (Layer(caches=(FULL,)),), 4096) == ()


def test_a_table_states_what_it_is() -> None:
    assert RotaryTable(rows=4, width=2).model_dump() == {"rows": 4, "width": 2}
