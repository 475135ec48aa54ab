"""What families do with their fields: the traps of real configurations, one test each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kvplan.errors import InputError, NotModelledError
from kvplan.models.caches import FullCache, LatentCache, WindowCache
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


def components(spec: ModelSpec) -> Counter[str]:
    counts: Counter[str] = Counter()
    for weight in spec.weights:
        counts[weight.component] += weight.parameters
    return counts


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


FALCON: Config = {
    "model_type": "falcon",
    "hidden_size": 4544,
    "num_attention_heads": 71,
    "num_hidden_layers": 2,
    "vocab_size": 65024,
}


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

GEMMA3: Config = {
    "model_type": "gemma3_text",
    "hidden_size": 2560,
    "intermediate_size": 10240,
    "num_hidden_layers": 12,
    "sliding_window": 1024,
}


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


MISTRAL: Config = {
    "model_type": "mistral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 2,
    "num_attention_heads": 32,
    "vocab_size": 32000,
}


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


QWEN2: Config = {
    "model_type": "qwen2",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 4,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "sliding_window": 32768,
    "max_window_layers": 3,
}


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


# Weights


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

DEEPSEEK: Config = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_hidden_layers": 5,
    "num_attention_heads": 128,
    "vocab_size": 129280,
}


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


# Wrappers

VISION: Config = {
    "hidden_size": 1152,
    "image_size": 896,
    "intermediate_size": 4304,
    "num_attention_heads": 16,
    "num_hidden_layers": 27,
    "patch_size": 14,
    "vision_use_head": False,
}


def test_gemma3_4b_with_its_tower_is_what_is_published(read: Read) -> None:
    """4,300,079,472 parameters, from a file that states neither heads nor vocabulary."""
    text = {**GEMMA3, "num_hidden_layers": 34}
    spec = read({"model_type": "gemma3", "text_config": text, "vision_config": VISION})
    assert spec.parameters_total == 4_300_079_472
    assert kinds(spec).count("F") == 5
    assert filled(spec)["text_config.num_attention_heads"] == "8"


def test_a_siglip_head_is_counted_unless_switched_off(read: Read) -> None:
    with_head = {**VISION, "vision_use_head": True}
    plain = read({"model_type": "gemma3", "text_config": GEMMA3, "vision_config": VISION})
    headed = read({"model_type": "gemma3", "text_config": GEMMA3, "vision_config": with_head})
    attention = 4 * 1152 * 1152 + 4 * 1152
    mlp = 2 * 1152 * 4304 + 4304 + 1152
    extra = 1152 + attention + 2 * 1152 + mlp
    assert components(headed)["vision"] - components(plain)["vision"] == extra


def test_a_wrapper_without_its_parts_is_named(read: Read) -> None:
    with pytest.raises(InputError, match="`text_config` is null, but has to be an object"):
        read({"model_type": "gemma3", "vision_config": VISION})


def test_mistral3_wraps_mistral_and_ministral3(read: Read) -> None:
    wrapped = {"model_type": "mistral3", "vision_config": {}, "tie_word_embeddings": False}
    text = {**MISTRAL, "num_key_value_heads": 8}
    assert kinds(read({**wrapped, "text_config": text})) == "WW"
    text["model_type"] = "ministral3"
    spec = read({**wrapped, "text_config": text})
    assert kinds(spec) == "FF"
    assert "vision" in components(spec)
    with pytest.raises(NotModelledError, match="around 'mamba'"):
        read({**wrapped, "text_config": {**text, "model_type": "mamba"}})


def test_the_text_part_decides_on_tying_where_the_wrapper_does_not(read: Read) -> None:
    wrapped = {"model_type": "mistral3", "vision_config": {}}
    text = {**MISTRAL, "tie_word_embeddings": False}
    assert read({**wrapped, "text_config": text}).tied_embeddings is False
    assert read({**wrapped, "text_config": text, "tie_word_embeddings": True}).tied_embeddings


# What is refused


def test_an_unknown_type_is_named_with_its_class_and_a_relative(read: Read) -> None:
    config = {"model_type": "qwen2_vl", "architectures": ["Qwen2VLForConditionalGeneration"]}
    with pytest.raises(NotModelledError) as caught:
        read(config)
    assert caught.value.exit_code == 4
    assert "'qwen2_vl' (Qwen2VLForConditionalGeneration)" in caught.value.message
    assert "A related family is modelled: qwen2." in str(caught.value.hint)


@pytest.mark.parametrize(
    "name", ["LlamaForCausalLMEagle3", "LlamaForSequenceClassification", "LlamaModel"]
)
def test_a_variant_of_a_family_is_refused(read: Read, llama: Config, name: str) -> None:
    """A draft or a classifier has other weights under the same type."""
    with pytest.raises(NotModelledError, match=name):
        read({**llama, "architectures": [name]})


def test_a_missing_class_is_the_plain_one(read: Read, llama: Config) -> None:
    del llama["architectures"]
    assert read(llama).architecture == "LlamaForCausalLM"


@pytest.mark.parametrize(
    ("config", "error"),
    [
        ({}, InputError),
        ({"architectures": ["LlamaForCausalLM"]}, NotModelledError),
        ({"model_type": 7}, InputError),
        ({"model_type": "llama", "architectures": "LlamaForCausalLM"}, InputError),
        ({"model_type": "llama", "architectures": [None]}, InputError),
    ],
)
def test_files_that_do_not_say_what_they_are(
    read: Read, config: Config, error: type[Exception]
) -> None:
    with pytest.raises(error):
        read(config)


def test_gpt2_with_cross_attention_is_refused(read: Read) -> None:
    config = {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12}
    with pytest.raises(NotModelledError, match="cross-attention"):
        read({**config, "vocab_size": 50257, "add_cross_attention": True})
