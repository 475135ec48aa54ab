"""Weights of a family: biases, ties, experts, latent attention, draft modules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from family_configs import DEEPSEEK, MISTRAL, QWEN2

from kvplan.errors import InputError
from kvplan.models.caches import LatentCache
from kvplan.models.spec import ModelSpec

Read = Callable[..., ModelSpec]
Config = dict[str, Any]


def components(spec: ModelSpec) -> Counter[str]:
    counts: Counter[str] = Counter()
    for weight in spec.weights:
        counts[weight.component] += weight.parameters
    return counts


def filled(spec: ModelSpec) -> dict[str, str]:
    return {default.field: default.value for default in spec.defaults}


@pytest.mark.parametrize(
    ("model_type", "tied"),
    [("llama", False), ("gemma", True), ("cohere", True), ("olmo2", False), ("granite", False)],
)
def test_tied_embeddings_have_a_default_by_class(
    read: Read, model_type: str, *, tied: bool
) -> None:
    spec = read({**MISTRAL, "model_type": model_type, "num_key_value_heads": 8})
    assert spec.tied_embeddings is tied
    assert ("lm_head" in components(spec)) is not tied
    assert filled(spec)["tie_word_embeddings"] == str(tied).lower()


def test_llama_biases_are_counted(read: Read, llama: Config) -> None:
    plain = components(read(llama))
    biased = components(read({**llama, "attention_bias": True, "mlp_bias": True}))
    assert biased["attention"] - plain["attention"] == 32 * (4096 + 2 * 1024 + 4096)
    assert biased["mlp"] - plain["mlp"] == 32 * (2 * 14336 + 4096)


def test_qwen2_has_biases_on_query_key_and_value(read: Read) -> None:
    spec = read(QWEN2)
    biases = [weight.name for weight in spec.weights if weight.name.endswith("bias")]
    assert biases == [f"self_attn.{name}_proj.bias" for name in "qkv"]


def test_olmo_normalizations_have_no_weights(read: Read) -> None:
    assert "norms" not in components(read({**QWEN2, "model_type": "olmo"}))


def test_opt_350m_projects_its_embedding(read: Read) -> None:
    config = {
        "model_type": "opt",
        "hidden_size": 1024,
        "word_embed_proj_dim": 512,
        "ffn_dim": 4096,
        "num_hidden_layers": 2,
        "num_attention_heads": 16,
        "vocab_size": 50272,
        "max_position_embeddings": 2048,
        "do_layer_norm_before": False,
    }
    counts = components(read(config))
    assert counts["embedding"] == 50272 * 512 + 2050 * 1024 + 512 * 1024
    assert counts["lm_head"] == 512 * 1024
    assert counts["norms"] == 2 * 2 * 2 * 1024


def test_the_head_of_phi_keeps_its_bias_when_tied(read: Read) -> None:
    config = {**QWEN2, "model_type": "phi", "tie_word_embeddings": True}
    assert components(read(config))["lm_head"] == 151936


@pytest.mark.parametrize(("model_type", "size"), [("stablelm", 14 * 64 + 2 * 64), ("phi", 4 * 64)])
def test_normalized_queries_and_keys(read: Read, model_type: str, size: int) -> None:
    """StableLM has a scale a head, Phi one for all heads, with a shift."""
    config = {**QWEN2, "model_type": model_type}
    plain = components(read(config))["attention"]
    assert components(read({**config, "qk_layernorm": True}))["attention"] == plain + 4 * size


def test_dense_layers_of_a_sparse_qwen(read: Read) -> None:
    config = {**QWEN2, "model_type": "qwen3_moe", "head_dim": 64, "num_experts": 4}
    config |= {"num_experts_per_tok": 2, "moe_intermediate_size": 128}
    spec = read({**config, "mlp_only_layers": [0], "decoder_sparse_step": 2})
    sparse = {w.layers for w in spec.weights if w.component == "experts"}
    dense = {w.layers for w in spec.weights if w.component == "mlp"}
    assert (sparse, dense) == ({(1, 3)}, {(0, 2)})
    assert spec.intermediate_size == 4864
    assert read(config).intermediate_size == 128
    assert (spec.experts, spec.experts_per_token) == (4, 2)


def test_more_experts_a_token_than_there_are_is_refused(read: Read) -> None:
    config = {**QWEN2, "model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 5}
    with pytest.raises(InputError, match="num_experts_per_tok"):
        read(config)


# Latent attention


def test_latent_attention_caches_one_vector(read: Read) -> None:
    cache = read(DEEPSEEK).layers[0].caches[0]
    assert isinstance(cache, LatentCache)
    assert (cache.latent_dim, cache.rope_dim) == (512, 64)


def test_projections_into_the_latent_are_replicated(read: Read) -> None:
    shardings = {
        weight.name: weight.sharding
        for weight in read(DEEPSEEK).weights
        if weight.component == "attention" and len(weight.shape) > 1
    }
    assert shardings == {
        "self_attn.q_a_proj.weight": "replicated",
        "self_attn.q_b_proj.weight": "column",
        "self_attn.kv_a_proj_with_mqa.weight": "replicated",
        "self_attn.kv_b_proj.weight": "column",
        "self_attn.o_proj.weight": "row",
    }


def test_a_null_query_rank_projects_queries_at_once(read: Read) -> None:
    names = {weight.name for weight in read({**DEEPSEEK, "q_lora_rank": None}).weights}
    assert "self_attn.q_proj.weight" in names
    assert "self_attn.q_a_proj.weight" not in names


def test_draft_modules_are_counted_only_where_the_file_states_them(read: Read) -> None:
    assert "mtp" not in components(read(DEEPSEEK))
    assert "mtp" not in components(read({**DEEPSEEK, "num_nextn_predict_layers": 0}))
    spec = read({**DEEPSEEK, "num_nextn_predict_layers": 2})
    assert {w.layers for w in spec.weights if w.component == "mtp"} == {(5, 6)}
    assert spec.parameters_total == read(DEEPSEEK).parameters_total
    assert spec.parameters_active == read(DEEPSEEK).parameters_active


def test_layers_may_be_listed_as_dense_or_sparse(read: Read) -> None:
    types = ["dense", "sparse", "dense", "sparse", "sparse"]
    spec = read({**DEEPSEEK, "model_type": "glm4_moe_lite", "mlp_layer_types": types})
    assert {w.layers for w in spec.weights if w.component == "experts"} == {(1, 3, 4)}
    for wrong in (types[:4], ["dense"] * 4 + ["mixed"]):
        with pytest.raises(InputError, match="mlp_layer_types"):
            read({**DEEPSEEK, "mlp_layer_types": wrong})


def test_seed_oss_and_ernie_have_flags_of_their_own_for_biases(read: Read) -> None:
    def biases(model_type: str, **flags: bool) -> set[str]:
        spec = read({**QWEN2, "model_type": model_type, **flags})
        return {weight.name.split(".")[1] for weight in spec.weights if ".bias" in weight.name}

    assert biases("seed_oss") == {"q_proj", "k_proj", "v_proj"}
    assert biases("seed_oss", attention_bias=False, attention_out_bias=True) == {"o_proj"}
    assert biases("ernie4_5") == set()
    assert {"o_proj", "down_proj"} < biases("ernie4_5", use_bias=True)
