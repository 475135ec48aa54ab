"""Bytes of layers by hand, and what llama.cpp refuses."""

from __future__ import annotations

from typing import Any

import pytest
from llamacpp_cases import spec_from

from kvplan.engines.llamacpp.caches import LayerStore, Types, layer_stores
from kvplan.engines.llamacpp.context import context_of
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.caches import CrossCache, FullCache, IndexerCache, LatentCache, WindowCache
from kvplan.models.spec import Layer, ModelSpec

F16 = Types("f16", "f16", flash_attn=True)
CONTEXT = context_of(4096, 2, unified=False, n_batch=2048, n_ubatch=512)


def spec(*caches: Any, **changes: Any) -> ModelSpec:
    base = spec_from(
        {
            "general.architecture": "llama", "llama.block_count": 1, "llama.context_length": 8192,
            "llama.embedding_length": 4096, "llama.feed_forward_length": 14_336,
            "llama.attention.head_count": 32, "llama.vocab_size": 32_000,
        }
    )  # fmt: skip
    layers = tuple(
        Layer(caches=cache if isinstance(cache, tuple) else (cache,)) for cache in caches
    )
    return base.model_copy(update={"layers": layers, **changes})


FULL = FullCache(kv_heads=8, head_dim=128, head_dim_v=128)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("f32", 4096),
        ("f16", 2048),
        ("bf16", 2048),
        ("q8_0", 1088),
        ("q5_1", 768),
        ("q5_0", 704),
        ("q4_1", 640),
        ("q4_0", 576),
        ("iq4_nl", 576),
    ],
)
def test_a_row_of_1024_elements_by_type(name: str, row: int) -> None:
    (store,) = layer_stores(spec(FULL), Types(name, "f16", flash_attn=True))
    assert (store.k_row, store.v_row) == (row, 2048)


def test_bytes_are_rows_times_cells_times_streams() -> None:
    (store,) = layer_stores(spec(FULL), F16)
    assert store.bytes(CONTEXT, swa_full=False) == 2 * 2048 * (2048 + 2048)


def test_a_window_is_smaller_unless_it_is_kept_whole() -> None:
    window = WindowCache(kv_heads=8, head_dim=128, head_dim_v=128, window=512)
    (store,) = layer_stores(spec(window), F16)
    assert store.bytes(CONTEXT, swa_full=False) == 2 * 1024 * 4096
    assert store.bytes(CONTEXT, swa_full=True) == 2 * 2048 * 4096


def test_windows_that_llama_cpp_does_not_keep_are_cached_whole() -> None:
    window = WindowCache(kv_heads=8, head_dim=128, head_dim_v=128, window=512)
    hub = spec(window, architecture="MistralForCausalLM", model_type="mistral")
    assert layer_stores(hub, F16)[0].kind == "full"
    kept = hub.model_copy(update={"model_type": "gemma2"})
    assert layer_stores(kept, F16)[0].window == 512


def test_a_latent_cache_is_one_vector_and_the_indexer_has_its_own() -> None:
    both = (LatentCache(latent_dim=512, rope_dim=64), IndexerCache(head_dim=128))
    latent, indexer = layer_stores(spec(both), F16)
    assert (latent.k_row, latent.v_row) == (1152, 0)
    assert (indexer.k_row, indexer.v_row) == (256, 0)


def test_without_flash_attention_values_are_as_wide_as_the_widest() -> None:
    narrow = FullCache(kv_heads=2, head_dim=128, head_dim_v=128)
    model = spec(FULL, narrow, ())
    plain = Types("f16", "f16", flash_attn=False)
    assert [s.v_row for s in layer_stores(model, plain)] == [2048, 2048, 2048]
    assert [s.k_row for s in layer_stores(model, plain)] == [2048, 512, 0]
    assert [s.v_row for s in layer_stores(model, F16)] == [2048, 512]


MAMBA = {
    "general.architecture": "nemotron_h", "nemotron_h.block_count": 1,
    "nemotron_h.embedding_length": 4096, "nemotron_h.vocab_size": 131_072,
    "nemotron_h.attention.head_count": [32], "nemotron_h.attention.head_count_kv": [0],
    "nemotron_h.feed_forward_length": [0], "nemotron_h.ssm.conv_kernel": 4,
    "nemotron_h.ssm.inner_size": 8192, "nemotron_h.ssm.state_size": 128,
    "nemotron_h.ssm.group_count": 8, "nemotron_h.ssm.time_step_rank": 128,
}  # fmt: skip


def test_a_state_is_float32_for_each_sequence_and_copied_for_drafts() -> None:
    model = spec_from(MAMBA)
    inputs, state = 4 * 3 * (8192 + 2 * 8 * 128), 4 * 128 * 8192
    (store,) = layer_stores(model, Types("q8_0", "q8_0", flash_attn=True))
    assert store == LayerStore("recurrent", 0, inputs=inputs, state=state)
    assert store.bytes(CONTEXT, swa_full=False) == 2 * (inputs + state)
    (copied,) = layer_stores(model, F16, rollback=3)
    assert copied.state == 4 * state
    rigid = model.model_copy(update={"model_type": "mamba2"})
    assert layer_stores(rigid, F16, rollback=3)[0].state == state


@pytest.mark.parametrize(
    ("model", "types", "words"),
    [
        (spec(FULL), Types("f16", "q8_0", flash_attn=False), "without flash attention"),
        (
            spec(LatentCache(latent_dim=512, rope_dim=64)),
            Types("q8_0", "f16", flash_attn=True),
            "different types",
        ),
        (
            spec(FullCache(kv_heads=8, head_dim=80, head_dim_v=128)),
            Types("q8_0", "q8_0", flash_attn=True),
            "K cache in q8_0: its blocks of 32",
        ),
        (
            spec(FullCache(kv_heads=8, head_dim=128, head_dim_v=80)),
            Types("q8_0", "q4_0", flash_attn=True),
            "V cache in q4_0",
        ),
        (
            spec(FullCache(kv_heads=1, head_dim=80, head_dim_v=128)),
            Types("q8_0", "f16", flash_attn=False),
            "80 elements",
        ),
    ],
)
def test_types_that_llama_cpp_refuses(model: ModelSpec, types: Types, words: str) -> None:
    with pytest.raises(EngineRefusesError, match=words) as refusal:
        layer_stores(model, types)
    assert refusal.value.hint


def test_a_quantized_key_needs_no_flash_attention() -> None:
    assert layer_stores(spec(FULL), Types("q8_0", "f16", flash_attn=False))[0].k_row == 1088


def test_an_encoder_is_not_modelled() -> None:
    cross = CrossCache(kv_heads=8, head_dim=64, head_dim_v=64, source_tokens=1500)
    with pytest.raises(NotModelledError, match="cross cache"):
        layer_stores(spec(cross), F16)


def test_a_file_with_a_sparse_indexer_keeps_its_keys_in_the_type_of_the_cache() -> None:
    stated = {
        "general.architecture": "deepseek32", "deepseek32.block_count": 2,
        "deepseek32.embedding_length": 7168, "deepseek32.vocab_size": 129_280,
        "deepseek32.feed_forward_length": 18_432, "deepseek32.attention.head_count": 128,
        "deepseek32.attention.head_count_kv": 1, "deepseek32.attention.key_length": 576,
        "deepseek32.attention.value_length": 512, "deepseek32.attention.key_length_mla": 192,
        "deepseek32.attention.value_length_mla": 128, "deepseek32.attention.kv_lora_rank": 512,
        "deepseek32.attention.indexer.key_length": 128,
    }  # fmt: skip
    found = layer_stores(spec_from(stated), Types("q8_0", "q8_0", flash_attn=True))
    assert [(s.kind, s.k_row, s.v_row) for s in found] == [
        ("latent", 612, 0), ("indexer", 136, 0), ("latent", 612, 0), ("indexer", 136, 0),
    ]  # fmt: skip
