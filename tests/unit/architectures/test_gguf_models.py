"""GGUF models: caches from metadata, weights from tensors, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gguf_files import LLAMA, LLAMA_TENSORS, header
from hypothesis import given
from hypothesis import strategies as st

from kvplan.architectures import read_model
from kvplan.errors import InputError, KvplanError, NotModelledError, UsageError
from kvplan.models.caches import (
    ChunkedCache,
    FullCache,
    LatentCache,
    LayerCache,
    RecurrentCache,
    SharedCache,
    WindowCache,
)
from kvplan.models.facts import ModelFacts, TensorHeader
from kvplan.models.formats import PLAIN, plain_kv
from kvplan.models.ggml_types import GGML_TYPES
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout, rank_bytes, stored_bytes
from kvplan.sources.local import read_path

Rows = Callable[[str], Iterator[dict[str, Any]]]
Config = dict[str, Any]
Kinds = dict[str, tuple[str, list[int]]]


def tensors(kinds: Kinds) -> tuple[TensorHeader, ...]:
    found = []
    for name, (kind, shape) in kinds.items():
        elements = 1
        for dimension in shape:
            elements *= dimension
        size = GGML_TYPES[kind].tensor_bytes(elements)
        found.append(TensorHeader(name=name, dtype=kind, shape=tuple(shape), size=size))
    return tuple(found)


def read(config: Config, kinds: Kinds | None = None) -> ModelSpec:
    found = tensors(kinds) if kinds else None
    return read_model(
        ModelFacts(id="m.gguf", source="m.gguf", config=config, gguf=True, tensors=found)
    )


def caches(config: Config) -> list[tuple[LayerCache, ...]]:
    return [layer.caches for layer in read(config).layers]


def of(architecture: str, **changes: Any) -> Config:
    """Metadata of a small model; underscores between two words stand for dots."""
    stated = {
        "block_count": 6,
        "embedding_length": 512,
        "feed_forward_length": 1024,
        "vocab_size": 1000,
        "attention.head_count": 8,
        "attention.head_count_kv": 2,
    }
    stated |= {key.replace("__", "."): value for key, value in changes.items()}
    config = {f"{architecture}.{key}": value for key, value in stated.items()}
    return {"general.architecture": architecture, **config}


# Caches


def test_plain_attention() -> None:
    assert caches(of("llama")) == [(FullCache(kv_heads=2, head_dim=64, head_dim_v=64),)] * 6
    sizes = {"attention__key_length": 96, "attention__value_length": 80}
    kept = FullCache(kv_heads=2, head_dim=96, head_dim_v=80)
    assert caches(of("qwen3", **sizes)) == [(kept,)] * 6
    many = of("llama")
    del many["llama.attention.head_count_kv"]
    assert caches(many) == [(FullCache(kv_heads=8, head_dim=64, head_dim_v=64),)] * 6


@pytest.mark.parametrize(
    ("architecture", "stated", "local"),
    [
        ("gemma2", {}, [1, 0, 1, 0, 1, 0]),
        ("gemma3", {}, [0] * 6),
        ("gemma3", {"attention__sliding_window": 512}, [1, 1, 1, 1, 1, 0]),
        ("gemma3", {"attention__sliding_window": 0}, [0] * 6),
        ("gpt-oss", {"attention__sliding_window": 128}, [1, 0, 1, 0, 1, 0]),
        ("cohere2", {"attention__sliding_window": 4096}, [1, 1, 1, 0, 1, 1]),
        ("olmo2", {}, [0] * 6),
        ("olmo2", {"attention__sliding_window": 4096}, [1, 1, 1, 0, 1, 1]),
        ("llama", {"attention__sliding_window": 4096}, [0] * 6),
        (
            "gemma3",
            {"attention__sliding_window": 512, "attention__sliding_window_pattern": 2},
            [1, 0, 1, 0, 1, 0],
        ),
        (
            "gemma3",
            {"attention__sliding_window": 512, "attention__sliding_window_pattern": (1,) * 6},
            [1] * 6,
        ),
        (
            "gemma3",
            {"attention__sliding_window": 512, "attention__sliding_window_pattern": 0},
            [1] * 6,
        ),
    ],
)
def test_windows(architecture: str, stated: Config, local: list[int]) -> None:
    found = caches(of(architecture, **stated))
    assert [isinstance(layer[0], WindowCache) for layer in found] == list(map(bool, local))


def test_chunks() -> None:
    found = caches(of("llama4"))
    assert [isinstance(layer[0], ChunkedCache) for layer in found] == [1, 1, 1, 0, 1, 1]
    off = caches(of("llama4", attention__sliding_window=0))
    assert all(isinstance(layer[0], FullCache) for layer in off)


def test_latent_attention_and_its_unpacked_form() -> None:
    sizes = {"attention__key_length": 576, "attention__value_length": 512}
    sizes |= {"attention__kv_lora_rank": 512, "attention__head_count_kv": 1}
    latent = caches(of("deepseek2", attention__key_length_mla=192, **sizes))
    assert latent == [(LatentCache(latent_dim=512, rope_dim=64),)] * 6
    old = {"attention__key_length": 192, "attention__value_length": 128}
    unpacked = caches(of("deepseek2", **old, attention__kv_lora_rank=512))
    assert unpacked == [(FullCache(kv_heads=2, head_dim=192, head_dim_v=128),)] * 6


def test_heads_that_differ_and_layers_without() -> None:
    found = caches(of("deci", attention__head_count_kv=(8, 8, 0, 4, 1, 2, 99)))
    heads = [layer[0].kv_heads if layer else 0 for layer in found]  # type: ignore[union-attr]
    assert heads == [8, 8, 0, 4, 1, 2]


def test_weights_of_heads_that_differ_are_not_cut() -> None:
    """No number of heads is that of all: each rank keeps these matrices whole."""
    kinds: Kinds = {
        f"blk.{layer}.attn_{kind}.weight": ("f32", [heads * 64, 512])
        for layer, heads in enumerate((8, 4, 1, 2, 1, 1))
        for kind in "kv"
    }
    model = read(of("deci", attention__head_count_kv=(8, 4, 1, 2, 1, 1)), kinds)
    assert {weight.sharding for weight in model.weights} == {"replicated"}
    assert sum(stored_bytes(model.weights, PLAIN["float16"]).values()) == 2 * 17 * 64 * 512 * 4


def test_shared_caches_and_smaller_local_heads() -> None:
    config = of(
        "gemma4",
        attention__sliding_window=512,
        attention__sliding_window_pattern=(True, True, False, True, True, False),
        attention__key_length=128,
        attention__value_length=128,
        attention__key_length_swa=32,
        attention__value_length_swa=32,
        attention__shared_kv_layers=2,
    )
    found = caches(config)
    local = WindowCache(kv_heads=2, head_dim=32, head_dim_v=32, window=512)
    assert found[0] == found[3] == (local,)
    assert found[4:] == [(SharedCache(layer=3),), (SharedCache(layer=2),)]


def test_recurrent_layers() -> None:
    sizes = {"ssm__conv_kernel": 4, "ssm__inner_size": 1024, "ssm__state_size": 16}
    found = caches(of("jamba", attention__head_count_kv=(0, 0, 2, 0, 0, 0), **sizes))
    assert [isinstance(layer[0], RecurrentCache) for layer in found] == [1, 1, 0, 1, 1, 1]
    state = found[0][0].fixed_bytes("float16", tp=1)
    assert state == 4 * (3 * 1024 + 1024 * 16)
    both = caches(of("falcon-h1", **sizes, ssm__group_count=2))[0]
    assert [cache.kind for cache in both] == ["recurrent", "full"]
    assert both[0].fixed_bytes("float16", tp=1) == 4 * (3 * (1024 + 2 * 2 * 16) + 1024 * 16)


def test_caches_are_what_llama_cpp_allocates(shared: Path, oracle: Rows) -> None:
    """Contexts no longer than any window, so that nothing is cut off or rounded up."""
    smallest: dict[str, dict[str, Any]] = {}
    for case in oracle("llamacpp_cases.jsonl.gz"):
        plain = case["params"]["type_k"] == case["params"]["type_v"] == "f16"
        if case["size"] != "full" or not case["ok"] or not plain:
            continue
        if case["params"]["n_seq_max"] == 1:
            kept = smallest.setdefault(case["model"], case)
            if case["measured"]["n_ctx"] < kept["measured"]["n_ctx"]:
                smallest[case["model"]] = case
    seen = 0
    for model, case in smallest.items():
        tokens = case["measured"]["n_ctx"]
        spec = read_model(read_path(shared / "oracle" / "gguf" / f"{model}.full.gguf"))
        windows = [cache.window for cache in spec.caches if isinstance(cache, WindowCache)]
        if windows and min(windows) < tokens:
            continue
        held = sum(
            cache.request_bytes(tokens, plain_kv("float16"), "float16", tp=1)
            for layer in spec.layers
            for cache in layer.caches
        )
        assert held == case["measured"]["context_bytes"], model
        seen += 1
    assert seen >= 28


# Weights


def test_weights_are_the_tensors(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(header(LLAMA, LLAMA_TENSORS) + bytes(2**22))
    spec = read_model(read_path(path))
    sizes = stored_bytes(spec.weights, PLAIN["float16"])
    assert sum(sizes.values()) == sum(tensor.size for tensor in read_path(path).tensors or ())
    assert sizes["embedding"] == 1000 * 512 // 256 * 144
    assert sizes["lm_head"] == 1000 * 512 // 256 * 210
    assert sizes["norms"] == 4 * 5 * 512
    assert sizes["mlp"] == 2 * 1024 * 512 // 256 * (144 + 144 + 210)
    assert spec.quantization == "gguf:Q4_K_M"
    assert (spec.vocab_size, spec.tied_embeddings, spec.max_context) == (1000, False, 8192)
    assert spec.parameters_total == 2 * 1000 * 512 + 5 * 512 + 2 * (
        2 * 512 * 512 + 2 * 128 * 512 + 3 * 1024 * 512
    )
    assert spec.notes == spec.defaults == ()


def test_experts_routers_and_modules_for_further_tokens() -> None:
    kinds: Kinds = {
        "token_embd.weight": ("q8_0", [1000, 512]),
        "blk.0.ffn_gate_exps.weight": ("q4_K", [16, 64, 512]),
        "blk.0.ffn_down_exps.weight": ("q6_K", [16, 512, 256]),
        "blk.0.ffn_gate_inp.weight": ("f32", [16, 512]),
        "blk.0.ffn_up_shexp.weight": ("q4_K", [64, 512]),
        "blk.0.exp_probs_b.bias": ("f32", [16]),
        "blk.1.ffn_down.weight": ("q4_K", [512, 256]),
        "blk.1.nextn.eh_proj.weight": ("q4_K", [512, 1024]),
        "blk.0.something.weight": ("f16", [7, 7]),
        "elsewhere": ("f16", [3]),
    }
    config = of("glm4moe", block_count=2, nextn_predict_layers=1, expert_count=16)
    spec = read(config | {"glm4moe.expert_used_count": 4}, kinds)
    components = {weight.name: weight.component for weight in spec.weights}
    assert components["ffn_gate_exps.weight"] == "experts"
    assert components["ffn_up_shexp.weight"] == "shared_experts"
    assert components["ffn_gate_inp.weight"] == components["exp_probs_b.bias"] == "router"
    assert components["ffn_down.weight"] == components["nextn.eh_proj.weight"] == "mtp"
    assert components["something.weight"] == components["elsewhere"] == "other"
    assert "blk.0.something.weight, elsewhere" in spec.notes[0]
    assert (spec.experts, spec.experts_per_token, len(spec.layers)) == (16, 4, 1)
    assert spec.tied_embeddings
    idle = 12 * (64 * 512 + 512 * 256)
    assert spec.parameters_total - spec.parameters_active == idle


def test_ranks() -> None:
    kinds: Kinds = {
        "blk.0.attn_k.weight": ("f16", [128, 512]),
        "blk.0.attn_k.bias": ("f32", [128]),
        "blk.0.attn_output.weight": ("f16", [512, 512]),
        "blk.0.attn_output.bias": ("f32", [512]),
    }
    spec = read(of("llama", block_count=1), kinds)
    layout = RankLayout(tp=4, layers=(0, 1))
    sizes = rank_bytes(spec.weights, PLAIN["float16"], layout, tied=True)
    # Two KV heads on four ranks are replicated; the bias of a row-parallel matrix is whole.
    assert sizes["attention"] == 64 * 512 * 2 + 64 * 4 + 512 * 128 * 2 + 512 * 4


def test_a_file_without_tensors_says_so() -> None:
    spec = read(of("llama"))
    assert spec.weights == ()
    assert "no tensors" in spec.notes[-1]
    assert spec.vocab_size == 1000


# Refused


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"general.architecture": "rwkv7"}, "'rwkv7'"),
        ({"general.architecture": "clip"}, "projector"),
        ({"general.architecture": "llama", "general.type": "adapter"}, "an adapter"),
    ],
)
def test_architectures_that_are_not_modelled(config: Config, said: str) -> None:
    with pytest.raises(NotModelledError, match=said) as caught:
        read(config)
    assert caught.value.hint


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"general.architecture": 5},
        {"general.architecture": "llama"},
        of("llama", block_count=0),
        of("llama", block_count=2**31),
        of("llama", attention__head_count="8"),
        of("llama", attention__head_count_kv=(1, 2)),
        of("llama", attention__head_count_kv=(2**20,) * 6),
        of("llama", attention__head_count=(0,) * 6, attention__head_count_kv=2),
        of("glm4moe", nextn_predict_layers=6),
        of("deepseek2", attention__key_length=64, attention__key_length_mla=64)
        | {"deepseek2.attention.kv_lora_rank": 512},
        of("gemma3", attention__sliding_window=512, attention__sliding_window_pattern=(True,)),
        of("jamba", attention__head_count_kv=(0,) * 6),
        of("lfm2", attention__head_count_kv=(0,) * 6, shortconv__l_cache=1),
    ],
    ids=str,
)
def test_metadata_that_makes_no_sense(config: Config) -> None:
    with pytest.raises(InputError):
        read(config)


def test_sharing_needs_a_layer_that_does_not() -> None:
    for shared in (6, 400):
        with pytest.raises(InputError, match=f"{shared} of 6 layers read the cache of another"):
            read(of("gemma4", attention__shared_kv_layers=shared))


EVERY_LAYER: Kinds = {
    f"blk.{layer}.{name}.weight": ("f16", [96, 64])
    for layer in range(6)
    for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_down", "ffn_up_exps", "ssm_in")
}
values = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64), st.floats(), st.text(max_size=8),
    st.lists(st.integers(0, 2**33), max_size=8).map(tuple), st.just({"length": 2**40}),
)  # fmt: skip


@given(st.sampled_from(["llama", "gemma4", "deepseek2", "jamba", "nemotron_h", "qwen3next"]),
       st.dictionaries(st.sampled_from([
           "block_count", "embedding_length", "attention__head_count", "context_length",
           "attention__head_count_kv", "attention__key_length", "attention__sliding_window",
           "attention__sliding_window_pattern", "attention__shared_kv_layers", "expert_count",
           "attention__key_length_mla", "attention__kv_lora_rank", "ssm__conv_kernel",
           "ssm__inner_size", "ssm__state_size", "feed_forward_length", "expert_used_count",
           "rope__scaling__type", "nextn_predict_layers", "full_attention_interval",
       ]), values), st.sampled_from([None, EVERY_LAYER]))  # fmt: skip
def test_strange_metadata_is_read_or_refused(
    architecture: str, changes: Config, kinds: Kinds | None
) -> None:
    try:
        spec = read(of(architecture, **changes), kinds)
    except KvplanError:
        return
    assert all(
        cache.request_bytes(100, plain_kv("float16"), "float16", tp=1) >= 0 for cache in spec.caches
    )


def test_a_gguf_file_is_not_quantized_again() -> None:
    from kvplan.architectures import quantize  # noqa: PLC0415 - one use

    with pytest.raises(UsageError, match="quantized already"):
        quantize(read(of("llama")), "fp8")
