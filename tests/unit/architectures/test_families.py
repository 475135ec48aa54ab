"""Heads and windows: the traps of real configurations, one test each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from family_configs import FALCON, GEMMA3, MISTRAL, QWEN2

from kvplan.errors import InputError, NotModelledError
from kvplan.models.caches import FullCache, WindowCache
from kvplan.models.spec import ModelSpec

Read = Callable[..., ModelSpec]
Config = dict[str, Any]


def kinds(spec: ModelSpec) -> str:
    """F and W, a letter a layer."""
    return "".join(
        "W" if isinstance(layer.caches[0], WindowCache) else "F" for layer in spec.layers
    )


def first(spec: ModelSpec) -> tuple[int, int]:
    cache = spec.layers[0].caches[0]
    assert isinstance(cache, FullCache | WindowCache)
    return cache.kv_heads, cache.head_dim


def filled(spec: ModelSpec) -> dict[str, str]:
    return {default.field: default.value for default in spec.defaults}


# Heads


def test_kv_heads_default_to_the_heads(read: Read, llama: Config) -> None:
    del llama["num_key_value_heads"]
    spec = read(llama)
    assert first(spec) == (32, 128)
    assert filled(spec)["num_key_value_heads"] == "32"


def test_a_null_head_dim_is_hidden_size_over_heads(read: Read, llama: Config) -> None:
    assert first(read({**llama, "head_dim": None})) == (8, 128)


def test_a_stated_head_dim_wins(read: Read, llama: Config) -> None:
    """Mistral Nemo, Qwen 3: heads are not the hidden size cut in pieces."""
    assert first(read({**llama, "head_dim": 64})) == (8, 64)


def test_a_hidden_size_that_heads_do_not_divide_is_refused(read: Read, llama: Config) -> None:
    with pytest.raises(InputError, match="4097 is not a multiple of 32 heads"):
        read({**llama, "hidden_size": 4097})


@pytest.mark.parametrize("kv_heads", [5, 64])
def test_kv_heads_have_to_divide_the_heads(read: Read, llama: Config, kv_heads: int) -> None:
    with pytest.raises(InputError, match="can't share"):
        read({**llama, "num_key_value_heads": kv_heads})


def test_falcon_has_one_kv_head_unless_told_otherwise(read: Read) -> None:
    assert first(read(FALCON))[0] == 1
    assert first(read({**FALCON, "num_kv_heads": 71}))[0] == 1
    assert first(read({**FALCON, "multi_query": False}))[0] == 71


def test_the_new_falcon_decoder_ignores_multi_query(read: Read) -> None:
    new = {**FALCON, "hidden_size": 8192, "num_attention_heads": 128, "num_kv_heads": 8}
    spec = read({**new, "new_decoder_architecture": True, "multi_query": True})
    assert first(spec) == (8, 64)


def test_old_names_of_falcon_are_read(read: Read) -> None:
    old = {"n_embed": 4544, "n_head": 71, "n_layer": 2, "vocab_size": 65024}
    assert read({"model_type": "falcon", **old}).weights == read(FALCON).weights


# Windows


def test_gemma3_without_a_pattern_has_every_sixth_layer_full(read: Read) -> None:
    spec = read(GEMMA3)
    assert kinds(spec) == "WWWWWFWWWWWF"
    assert first(spec) == (4, 256)
    assert filled(spec)["num_attention_heads"] == "8"
    assert filled(spec)["sliding_window_pattern"] == "6"


@pytest.mark.parametrize(
    ("stated", "pattern"),
    [
        ({"sliding_window_pattern": 3}, "WWFWWFWWFWWF"),
        ({"sliding_window_pattern": "LLG"}, "WWFWWFWWFWWF"),
        ({"layer_types": ["full_attention"] + ["sliding_attention"] * 11}, "F" + "W" * 11),
    ],
)
def test_gemma3_patterns(read: Read, stated: Config, pattern: str) -> None:
    assert kinds(read({**GEMMA3, **stated})) == pattern


@pytest.mark.parametrize("pattern", [0, -1, "", "LXG", 2.5, True])
def test_a_pattern_is_a_period_or_letters(read: Read, pattern: object) -> None:
    with pytest.raises(InputError, match="sliding_window_pattern"):
        read({**GEMMA3, "sliding_window_pattern": pattern})


def test_bidirectional_gemma3_halves_its_window(read: Read) -> None:
    spec = read({**GEMMA3, "use_bidirectional_attention": True})
    cache = spec.layers[0].caches[0]
    assert isinstance(cache, WindowCache)
    assert cache.window == 513


def test_layer_types_are_as_many_as_layers(read: Read) -> None:
    with pytest.raises(InputError, match="lists 1 layers of 12"):
        read({**GEMMA3, "layer_types": ["full_attention"]})


def test_a_layer_type_of_another_family_is_refused(read: Read) -> None:
    with pytest.raises(NotModelledError, match="linear_attention"):
        read({**GEMMA3, "layer_types": ["linear_attention"] * 12})


def test_sliding_layers_need_a_window(read: Read) -> None:
    with pytest.raises(InputError, match="its size is not stated"):
        read({**GEMMA3, "sliding_window": None})


@pytest.mark.parametrize(
    ("stated", "pattern"),
    [
        ({}, "WW"),
        ({"sliding_window": None}, "FF"),
        ({"sliding_window": 0}, "FF"),
        ({"sliding_window": 4096}, "WW"),
    ],
)
def test_mistral_windows(read: Read, stated: Config, pattern: str) -> None:
    assert kinds(read({**MISTRAL, **stated})) == pattern


@pytest.mark.parametrize(
    ("stated", "pattern"),
    [
        ({}, "FFFF"),
        ({"use_sliding_window": False}, "FFFF"),
        ({"use_sliding_window": True}, "FFFW"),
        ({"use_sliding_window": True, "max_window_layers": 0}, "WWWW"),
    ],
)
def test_qwen2_windows_are_switched_and_start_late(
    read: Read, stated: Config, pattern: str
) -> None:
    assert kinds(read({**QWEN2, **stated})) == pattern


def test_qwen2_moe_windows_alternate_and_end_early(read: Read) -> None:
    config = {**QWEN2, "model_type": "qwen2_moe", "use_sliding_window": True}
    assert kinds(read(config)) == "WFWF"


def test_qwen3_moe_windows_are_in_every_layer(read: Read) -> None:
    config = {**QWEN2, "model_type": "qwen3_moe", "use_sliding_window": True, "head_dim": 64}
    assert kinds(read(config)) == "WWWW"


def test_gpt_oss_and_gemma2_alternate_by_default(read: Read) -> None:
    common = {**QWEN2, "num_attention_heads": 14, "intermediate_size": 64}
    assert kinds(read({**common, "model_type": "gpt_oss", "head_dim": 64})) == "WFWF"
    assert kinds(read({**common, "model_type": "gemma2"})) == "WFWF"


def test_olmo3_and_cohere2_have_every_fourth_layer_full(read: Read) -> None:
    assert kinds(read({**QWEN2, "model_type": "olmo3"})) == "WWWF"
    assert kinds(read({**QWEN2, "model_type": "cohere2"})) == "WWWF"


def test_smollm3_windows_are_where_rotary_positions_are_not(read: Read) -> None:
    config = {**QWEN2, "model_type": "smollm3", "use_sliding_window": True}
    assert kinds(read(config)) == "FFFW"
    assert kinds(read({**config, "no_rope_layers": [0, 1, 1, 1]})) == "WFFF"
    assert kinds(read({**config, "use_sliding_window": False})) == "FFFF"


def test_equal_layers_are_one_object(read: Read, llama: Config) -> None:
    assert len({id(layer) for layer in read(llama).layers}) == 1
