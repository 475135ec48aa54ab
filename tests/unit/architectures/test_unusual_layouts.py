"""Decoders whose layers differ in heads, windows, or in whose cache they read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvplan.errors import InputError, NotModelledError
from kvplan.models.caches import (
    ChunkedCache,
    FullCache,
    LayerCache,
    RecurrentCache,
    SharedCache,
    WindowCache,
)
from kvplan.models.spec import ModelSpec

Read = Callable[..., ModelSpec]
Config = dict[str, Any]

SMALL: Config = {
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 96,
}
LLAMA4: Config = {**SMALL, "model_type": "llama4_text", "num_hidden_layers": 8}
GEMMA3N: Config = {
    **SMALL,
    "model_type": "gemma3n_text",
    "num_hidden_layers": 10,
    "num_kv_shared_layers": 4,
    "vocab_size_per_layer_input": 80,
}
GEMMA4: Config = {
    **SMALL,
    "model_type": "gemma4_text",
    "head_dim": 16,
    "global_head_dim": 32,
    "hidden_size_per_layer_input": 0,
}
HUNYUAN: Config = {**SMALL, "model_type": "hunyuan_v1_dense"}
MIMO: Config = {
    **SMALL,
    "model_type": "mimo_v2_flash",
    "head_dim": 24,
    "v_head_dim": 16,
    "swa_num_key_value_heads": 4,
    "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0],
    "sliding_window_size": 128,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 40,
}
STEP: Config = {
    **SMALL,
    "model_type": "step3p5",
    "num_attention_groups": 2,
    "head_dim": 8,
    "sliding_window": 512,
    "layer_types": ["full_attention", *["sliding_attention"] * 3] * 2,
    "num_hidden_layers": 8,
    "moe_num_experts": 4,
    "moe_top_k": 2,
}
OPENELM: Config = {
    "model_type": "openelm",
    "model_dim": 64,
    "num_transformer_layers": 2,
    "head_dim": 16,
    "vocab_size": 96,
    "num_query_heads": [4, 8],
    "num_kv_heads": [1, 2],
    "ffn_multipliers": [0.5, 4.0],
    "ffn_dim_divisor": 32,
}
FLASH: Config = {**SMALL, "model_type": "phi4flash", "num_hidden_layers": 12, "sliding_window": 512}


def letters(spec: ModelSpec) -> str:
    """A letter a layer: Full, Window, Chunked, shared (R), state (S), nothing (-)."""
    names = {"full": "F", "window": "W", "chunked": "C", "shared": "R", "recurrent": "S"}
    return "".join(names[layer.caches[0].kind] if layer.caches else "-" for layer in spec.layers)


def caches(spec: ModelSpec) -> list[LayerCache]:
    return [cache for layer in spec.layers for cache in layer.caches]


def heads(spec: ModelSpec) -> list[tuple[int, int, int]]:
    """KV heads and their sizes, a layer each."""
    return [
        (cache.kv_heads, cache.head_dim, cache.head_dim_v)
        for cache in caches(spec)
        if isinstance(cache, FullCache | WindowCache | ChunkedCache)
    ]


def read_layers(spec: ModelSpec) -> list[int]:
    """Whose cache each sharing layer reads."""
    return [cache.layer for cache in caches(spec) if isinstance(cache, SharedCache)]


def layers_with(spec: ModelSpec, part: str) -> list[int]:
    """Layers that hold a weight whose name has ``part``."""
    return sorted({n for weight in spec.weights if part in weight.name for n in weight.layers})


def sized(spec: ModelSpec, component: str) -> int:
    return sum(weight.parameters for weight in spec.weights if weight.component == component)


# Llama 4


def test_every_fourth_layer_of_llama4_is_full(read: Read) -> None:
    spec = read(LLAMA4)
    assert letters(spec) == "CCCFCCCF"
    assert {c.chunk for c in caches(spec) if isinstance(c, ChunkedCache)} == {8192}


def test_llama4_layers_without_rotary_positions_are_the_full_ones(read: Read) -> None:
    assert letters(read({**LLAMA4, "no_rope_layers": [0, 1, 1, 0, 1, 1, 1, 1]})) == "FCCFCCCC"
    assert letters(read({**LLAMA4, "no_rope_layers": []})) == "CCCFCCCF"
    assert letters(read({**LLAMA4, "no_rope_layer_interval": 2})) == "CFCFCFCF"
    with pytest.raises(InputError, match="lists 3 layers of 8"):
        read({**LLAMA4, "no_rope_layers": [0, 1, 1]})


def test_llama4_layer_types_win(read: Read) -> None:
    types = ["full_attention"] * 7 + ["chunked_attention"]
    assert letters(read({**LLAMA4, "layer_types": types})) == "FFFFFFFC"
    with pytest.raises(NotModelledError, match="'sliding_attention' are not modelled"):
        read({**LLAMA4, "layer_types": ["sliding_attention"] * 8})


def test_llama4_without_a_chunk_is_full(read: Read) -> None:
    assert letters(read({**LLAMA4, "attention_chunk_size": None})) == "FFFFFFFF"


def test_experts_of_llama4_stand_in_every_nth_layer(read: Read) -> None:
    """Scout: all layers; Maverick: every second, and the others twice as wide."""
    assert layers_with(read(LLAMA4), "router") == list(range(8))
    every_second = read({**LLAMA4, "interleave_moe_layer_step": 2, "intermediate_size_mlp": 320})
    assert layers_with(every_second, "router") == [1, 3, 5, 7]
    assert layers_with(every_second, "feed_forward.gate_proj") == [0, 2, 4, 6]
    assert sized(every_second, "mlp") == 4 * 3 * 64 * 320
    assert layers_with(read({**LLAMA4, "moe_layers": [2, 5]}), "router") == [2, 5]


# Gemma 3n and 4


def test_the_last_layers_of_gemma3n_read_the_last_cache_of_their_kind(read: Read) -> None:
    spec = read(GEMMA3N)
    assert letters(spec) == "WWWWFWRRRR"
    assert read_layers(spec) == [5, 5, 5, 4]
    assert layers_with(spec, "k_proj") == layers_with(spec, "k_norm") == [0, 1, 2, 3, 4, 5]
    assert layers_with(spec, "q_proj") == layers_with(spec, "q_norm") == list(range(10))


def test_the_second_table_of_gemma3n_feeds_every_layer(read: Read) -> None:
    without = read({**GEMMA3N, "hidden_size_per_layer_input": 0})
    width = 256
    table = 80 * 10 * width
    projection = 10 * width * 64 + width
    ways = 10 * (2 * 64 * width + 64)
    added = read(GEMMA3N).parameters_total - without.parameters_total
    assert added == table + projection + ways


def test_gemma3n_may_list_its_widths(read: Read) -> None:
    widths = [160] * 9 + [320]
    added = read({**GEMMA3N, "intermediate_size": widths}).parameters_total
    assert added - read(GEMMA3N).parameters_total == 3 * 64 * 160
    with pytest.raises(InputError, match="`intermediate_size` lists 1 layers of 10"):
        read({**GEMMA3N, "intermediate_size": [160]})


def test_a_tail_without_anything_to_share_is_refused(read: Read) -> None:
    with pytest.raises(InputError, match="10 of 10 layers share"):
        read({**GEMMA3N, "num_kv_shared_layers": 10})
    with pytest.raises(InputError, match="no layer keeps one"):
        read({**GEMMA3N, "num_kv_shared_layers": 7})


def test_full_layers_of_gemma4_have_wider_heads(read: Read) -> None:
    spec = read(GEMMA4)
    assert letters(spec) == "WWWWWF"
    assert heads(spec) == [(2, 16, 16)] * 5 + [(2, 32, 32)]


def test_keys_of_gemma4_may_be_its_values(read: Read) -> None:
    """Both are cached; the projection and a head count of its own are the difference."""
    spec = read({**GEMMA4, "attention_k_eq_v": True, "num_global_key_value_heads": 1})
    assert heads(spec)[-1] == (1, 32, 32)
    assert layers_with(spec, "v_proj") == [0, 1, 2, 3, 4]
    ignored = read({**GEMMA4, "num_global_key_value_heads": 1})
    assert heads(ignored)[-1] == (2, 32, 32)


def test_newer_gemma4_files_state_heads_layer_by_layer(read: Read) -> None:
    stated = {"5": {"head_dim": 64, "num_key_value_heads": 4}}
    assert heads(read({**GEMMA4, "per_layer_config": stated}))[-1] == (4, 64, 64)


def test_the_last_layer_of_gemma4_is_full_whatever_the_file_says(read: Read) -> None:
    types = ["sliding_attention"] * 6
    assert letters(read({**GEMMA4, "layer_types": types})) == "WWWWWF"


def test_a_bidirectional_window_of_gemma4_is_halved(read: Read) -> None:
    config = {**GEMMA4, "sliding_window": 512}
    both = read({**config, "use_bidirectional_attention": "all"})
    windows = {c.window for c in caches(both) if isinstance(c, WindowCache)}
    assert windows == {257}
    assert {c.window for c in caches(read(config)) if isinstance(c, WindowCache)} == {512}


def test_sharing_layers_of_gemma4_may_be_twice_as_wide(read: Read) -> None:
    config = {**GEMMA4, "num_hidden_layers": 12, "num_kv_shared_layers": 6}
    spec = read({**config, "use_double_wide_mlp": True})
    assert letters(spec) == "WWWWWFRRRRRR"
    assert sized(spec, "mlp") - sized(read(config), "mlp") == 6 * 3 * 64 * 160


# Hunyuan


def test_hunyuan_shares_caches_only_where_it_is_switched_on(read: Read) -> None:
    """Every file of A13B states the factor 2, and none shares."""
    assert letters(read({**HUNYUAN, "cla_share_factor": 2, "use_cla": False})) == "FFFFFF"
    spec = read({**HUNYUAN, "cla_share_factor": 2, "use_cla": True})
    assert letters(spec) == "FRFRFR"
    assert read_layers(spec) == [0, 2, 4]
    assert layers_with(spec, "k_proj") == [0, 2, 4]
    assert layers_with(spec, "q_proj") == list(range(6))


def test_hunyuan_lists_that_repeat_one_number_are_one_number(read: Read) -> None:
    config = {**HUNYUAN, "model_type": "hunyuan_v1_moe", "num_experts": 8}
    listed = read({**config, "moe_topk": [4] * 6, "num_shared_expert": [1] * 6})
    assert listed.experts_per_token == 4
    assert listed.weights == read({**config, "moe_topk": 4}).weights
    with pytest.raises(NotModelledError, match="differ in `moe_topk`"):
        read({**config, "moe_topk": [4, 4, 4, 4, 4, 8]})


def test_hunyuan_with_latent_attention_is_refused(read: Read) -> None:
    with pytest.raises(NotModelledError, match="use_mla"):
        read({**HUNYUAN, "use_mla": True})


# MiMo V2 and Step


def test_values_of_mimo_v2_are_narrower_than_keys(read: Read) -> None:
    spec = read(MIMO)
    assert letters(spec) == "FWWWWF"
    assert heads(spec)[:2] == [(2, 24, 16), (4, 24, 16)]
    assert layers_with(spec, "sink") == [1, 2, 3, 4]
    per_full = 64 * 24 * (8 + 2) + 64 * 16 * 2 + 64 * 16 * 8
    per_window = 64 * 24 * (8 + 4) + 64 * 16 * 4 + 64 * 16 * 8 + 8
    assert sized(spec, "attention") == 2 * per_full + 4 * per_window


def test_values_of_windowed_layers_of_their_own_are_refused(read: Read) -> None:
    with pytest.raises(InputError, match="`swa_v_head_dim` and `v_head_dim` differ"):
        read({**MIMO, "swa_v_head_dim": 8})


def test_windowed_layers_of_step_have_more_query_heads(read: Read) -> None:
    other = {"attention_type": "sliding_attention", "num_attention_heads": 12}
    config = {**STEP, "use_head_wise_attn_gate": False}
    spec = read({**config, "attention_other_setting": other})
    assert letters(spec) == "FWWWFWWW"
    assert {head[0] for head in heads(spec)} == {2}
    assert sized(spec, "attention") - sized(read(config), "attention") == 6 * 2 * 4 * 8 * 64


def test_types_behind_the_layers_of_step_are_its_drafts(read: Read) -> None:
    config = {**STEP, "num_nextn_predict_layers": 1}
    types = [*STEP["layer_types"], "sliding_attention"]
    spec = read({**config, "layer_types": types})
    assert letters(spec) == "FWWWFWWW"
    assert sized(spec, "mtp") > 0
    with pytest.raises(InputError, match="lists 10 layers of 8"):
        read({**config, "layer_types": [*types, "full_attention"]})


@pytest.mark.parametrize("stated", ["4,5", " 4 , 5 ", [4, 5]])
def test_sparse_layers_of_step_are_enumerated(read: Read, stated: object) -> None:
    assert layers_with(read({**STEP, "moe_layers_enum": stated}), "moe.gate.weight") == [4, 5]


def test_an_enumeration_that_is_none_is_refused(read: Read) -> None:
    with pytest.raises(InputError, match="layer numbers with commas between"):
        read({**STEP, "moe_layers_enum": "4-7"})


# OpenELM, DeciLM and Nemotron


def test_openelm_grows_from_layer_to_layer(read: Read) -> None:
    spec = read(OPENELM)
    assert heads(spec) == [(1, 16, 16), (2, 16, 16)]
    assert spec.attention_heads == 8
    # 0.5 × 64 rounds to 32, and 4 × 64 stays.
    assert sized(spec, "mlp") == 3 * 64 * (32 + 256)
    assert sized(spec, "attention") == 64 * 16 * (4 + 2 + 4) + 64 * 16 * (8 + 4 + 8)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_kv_heads", [1]),
        ("num_query_heads", 4),
        ("ffn_multipliers", [0.5]),
        ("ffn_multipliers", [0.5, "4"]),
        ("ffn_multipliers", [0.5, float("nan")]),
    ],
)
def test_openelm_needs_a_number_for_each_layer(read: Read, field: str, value: object) -> None:
    with pytest.raises(InputError, match=field):
        read({**OPENELM, field: value})


def block(attention: Config, ffn: Config) -> Config:
    return {"attention": attention, "ffn": ffn}


NAS: Config = {
    "model_type": "nemotron-nas",
    "hidden_size": 64,
    "num_attention_heads": 8,
    "vocab_size": 96,
    "block_configs": [
        block({"n_heads_in_group": 4}, {"ffn_mult": 4.0}),
        block({"no_op": True, "n_heads_in_group": None}, {"ffn_mult": 1.0}),
        block({"replace_with_linear": True}, {"no_op": True}),
        block({"n_heads_in_group": 8, "window_length": 100}, {"replace_with_linear": True}),
    ],
}


def test_layers_of_nemotron_nas_are_what_its_blocks_say(read: Read) -> None:
    """Super 49B keeps half of Llama's attention; Ultra states no number of layers at all."""
    spec = read(NAS)
    assert letters(spec) == "F--W"
    assert heads(spec) == [(2, 8, 8), (1, 8, 8)]
    # 2/3 × 4 × 64 is 170 and 2/3 × 64 is 42: both round up to 256.
    assert sized(spec, "mlp") == 2 * 3 * 64 * 256
    assert layers_with(spec, "mlp.up_proj") == [0, 1]
    assert layers_with(spec, "linear_attn") == [2]
    assert layers_with(spec, "linear_mlp") == [3]
    assert layers_with(spec, "input_layernorm") == [0, 2, 3]
    assert layers_with(spec, "post_attention_layernorm") == [0, 1, 3]


def test_a_layer_without_attention_caches_nothing(read: Read) -> None:
    half = [*NAS["block_configs"][:2]] * 2
    spec = read({**NAS, "block_configs": half})
    assert letters(spec) == "F-F-"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"block_configs": None}, "a list of layers"),
        ({"block_configs": [{"attention": {}}]}, "lacks `attention` or `ffn`"),
        ({"num_hidden_layers": 5}, "lists 4 layers of 5"),
        ({"num_attention_heads": 6}, "can't be cut into groups of 4"),
    ],
)
def test_blocks_that_contradict_are_refused(read: Read, change: Config, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read({**NAS, "hidden_size": 48, **change})


def test_sink_tokens_of_a_window_are_refused(read: Read) -> None:
    sinks = {"n_heads_in_group": 8, "window_length": 100, "num_sink_tokens": 4}
    blocks = [block(sinks, {"ffn_mult": 1.0})]
    with pytest.raises(NotModelledError, match="sink tokens"):
        read({**NAS, "block_configs": blocks})


def test_decilm_lists_its_kv_heads(read: Read) -> None:
    config = {**SMALL, "model_type": "deci", "architectures": ["DeciLMForCausalLM"]}
    stated = [8, 4, 2, 1, 1, 1]
    spec = read({**config, "num_key_value_heads_per_layer": stated})
    assert [kv_heads for kv_heads, _, _ in heads(spec)] == stated
    with pytest.raises(InputError, match="has to list the heads of 6 layers"):
        read({**config, "num_key_value_heads_per_layer": [8, 4]})


# Phi 4 mini flash


def test_the_second_half_of_phi4_flash_rereads_one_cache(read: Read) -> None:
    """Mixers and windows, one full layer, then gates that keep nothing and readers."""
    spec = read(FLASH)
    assert letters(spec) == "SWSWSWSF-R-R"
    assert read_layers(spec) == [7, 7]
    assert layers_with(spec, "in_proj") == [0, 2, 4, 6, 8, 10]
    assert layers_with(spec, "x_proj") == [0, 2, 4, 6]


def test_windows_of_phi4_flash_may_be_listed(read: Read) -> None:
    listed = [None, 512] * 6
    assert read({**FLASH, "sliding_window": listed}).layers == read(FLASH).layers
    for wrong in ([512, 256], [True], [-1]):
        with pytest.raises(InputError, match="sliding_window"):
            read({**FLASH, "sliding_window": wrong})


def test_states_of_phi4_flash_are_its_mixers(read: Read) -> None:
    states = [cache for cache in caches(read(FLASH)) if isinstance(cache, RecurrentCache)]
    assert len(states) == 4
    # 2 × 64 channels: 3 of 4 taps, and 16 states.
    assert states[0].fixed_bytes("bfloat16", tp=1) == 128 * (3 + 16) * 2
