"""The long tail of plain decoders: names, defaults and switches of their own, one test each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvplan.errors import InputError, NotModelledError
from kvplan.models.caches import FullCache, WindowCache
from kvplan.models.spec import ModelSpec

Read = Callable[..., ModelSpec]
Config = dict[str, Any]

SMALL: Config = {
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "vocab_size": 96,
}
CHATGLM: Config = {
    "model_type": "chatglm",
    "hidden_size": 64,
    "num_layers": 4,
    "num_attention_heads": 8,
    "padded_vocab_size": 96,
    "ffn_hidden_size": 160,
}
QWEN: Config = {**SMALL, "model_type": "qwen", "kv_channels": 8}
FALCON: Config = {
    "hidden_size": 64,
    "n_head": 8,
    "n_layer": 4,
    "vocab_size": 96,
    "multi_query": True,
    "bias": False,
    "parallel_attn": True,
}
MINIMIND: Config = {
    "model_type": "minimind",
    "dim": 64,
    "n_layers": 4,
    "n_heads": 8,
    "n_kv_heads": 2,
    "vocab_size": 96,
}
MPT: Config = {"model_type": "mpt", "d_model": 64, "n_heads": 8, "n_layers": 4, "vocab_size": 96}
BIGCODE: Config = {
    "model_type": "gpt_bigcode",
    "n_embd": 64,
    "n_head": 8,
    "n_layer": 4,
    "n_positions": 32,
    "vocab_size": 96,
}


def first(spec: ModelSpec) -> tuple[int, int]:
    cache = spec.layers[0].caches[0]
    assert isinstance(cache, FullCache | WindowCache)
    return cache.kv_heads, cache.head_dim


def sized(spec: ModelSpec, part: str) -> int:
    """Parameters whose name has ``part``."""
    return sum(weight.parameters for weight in spec.weights if part in weight.name)


# ChatGLM


def test_generations_of_chatglm_differ_in_their_heads(read: Read) -> None:
    """The type is one for three generations; the first has a field of its own."""
    first_generation = {
        **CHATGLM,
        "padded_vocab_size": None,
        "vocab_size": 96,
        "inner_hidden_size": 256,
    }
    assert first(read(first_generation)) == (8, 8)
    assert read(first_generation).tied_embeddings
    grouped = {**CHATGLM, "multi_query_attention": True, "multi_query_group_num": 2}
    assert first(read(grouped)) == (2, 8)
    assert not read(grouped).tied_embeddings
    assert first(read({**grouped, "multi_query_attention": False})) == (8, 8)


def test_chatglm_with_biases_on_query_key_and_value_only(read: Read) -> None:
    grouped = {**CHATGLM, "multi_query_attention": True, "multi_query_group_num": 2}
    plain = read(grouped).parameters_total
    assert read({**grouped, "add_qkv_bias": True}).parameters_total - plain == 4 * 8 * (8 + 2 + 2)


def test_the_padded_vocabulary_of_chatglm_is_the_one_that_is_held(read: Read) -> None:
    spec = read({**CHATGLM, "padded_vocab_size": 128, "vocab_size": 96})
    assert sized(spec, "word_embeddings") == 128 * 64


# Qwen 1


def test_qwen_counts_gate_and_up_together(read: Read) -> None:
    assert sized(read(QWEN), "mlp") == 4 * 3 * 64 * 80


def test_heads_of_qwen_are_its_kv_channels(read: Read) -> None:
    assert first(read({**QWEN, "kv_channels": 16})) == (8, 16)


def test_the_first_files_of_qwen_name_sizes_as_gpt2_does(read: Read) -> None:
    old = {
        "model_type": "qwen",
        "n_embd": 64,
        "n_layer": 4,
        "n_head": 8,
        "ffn_hidden_size": 160,
        "kv_channels": 8,
        "vocab_size": 96,
    }
    assert read(old).weights == read(QWEN).weights


def test_qwen_with_ears_is_refused(read: Read) -> None:
    with pytest.raises(NotModelledError, match=r"with a tower \(`audio`\)"):
        read({**QWEN, "audio": {"n_layer": 32}})


# Falcon before its class


def test_falcon_files_before_the_class(read: Read) -> None:
    """7B shares one KV head; only 40B states how many, and has two norms a layer."""
    small = read({**FALCON, "model_type": "RefinedWebModel"})
    assert first(small) == (1, 8)
    large = read({**FALCON, "model_type": "RefinedWeb", "n_head_kv": 2})
    assert first(large) == (2, 8)
    assert sized(small, "ln") + sized(small, "norm") == (4 + 1) * 2 * 64
    assert sized(large, "ln") + sized(large, "norm") == (2 * 4 + 1) * 2 * 64


def test_falcon_files_before_the_class_are_sequential_unless_they_say_otherwise(
    read: Read,
) -> None:
    """RefinedWeb 1B states `parallel_attn` false, and has two norms a layer."""
    config = {key: value for key, value in FALCON.items() if key != "parallel_attn"}
    spec = read({**config, "model_type": "RefinedWebModel"})
    assert sized(spec, "post_attention_layernorm") == 4 * 2 * 64


# MiniMind


def test_the_width_of_minimind_is_rounded_up(read: Read) -> None:
    # 8 × 64 ÷ 3 is 170.
    assert sized(read(MINIMIND), "feed_forward") == 4 * 3 * 64 * 192
    assert sized(read({**MINIMIND, "hidden_dim": 100}), "feed_forward") == 4 * 3 * 64 * 100


def test_experts_of_minimind_stand_beside_a_shared_one(read: Read) -> None:
    spec = read({**MINIMIND, "use_moe": True, "n_routed_experts": 4, "n_shared_experts": True})
    assert (spec.experts, spec.experts_per_token) == (4, 2)
    assert sized(spec, "feed_forward") == 4 * (5 * 3 * 64 * 192 + 4 * 64)


# MPT


@pytest.mark.parametrize(
    ("rules", "kv_heads"),
    [
        ({}, 8),
        ({"attn_type": "multihead_attention"}, 8),
        ({"attn_type": "multiquery_attention"}, 1),
        ({"attn_type": "grouped_query_attention", "kv_n_heads": 2}, 2),
    ],
)
def test_kinds_of_attention_of_mpt(read: Read, rules: Config, kv_heads: int) -> None:
    assert first(read({**MPT, "attn_config": rules})) == (kv_heads, 8)


def test_mpt_has_positions_without_alibi_only(read: Read) -> None:
    config = {**MPT, "max_seq_len": 32}
    learned = read({**config, "attn_config": {"alibi": False}})
    assert sized(learned, "wpe") == 32 * 64
    assert sized(read({**config, "attn_config": {"alibi": True}}), "wpe") == 0
    switched_off = {**config, "attn_config": {"alibi": False}, "learned_pos_emb": False}
    assert sized(read(switched_off), "wpe") == 0


def test_biases_and_head_norms_of_mpt(read: Read) -> None:
    plain = read(MPT).parameters_total
    biased = read({**MPT, "no_bias": False}).parameters_total
    assert biased - plain == 4 * (3 * 64 + 64 + 256 + 64 + 2 * 64) + 64
    normed = read({**MPT, "attn_config": {"qk_ln": True}}).parameters_total
    assert normed - plain == 4 * 2 * 64


# GPT-J, BigCode and others


def test_bigcode_shares_one_kv_head_unless_told_otherwise(read: Read) -> None:
    assert first(read(BIGCODE)) == (1, 8)
    assert first(read({**BIGCODE, "multi_query": False})) == (8, 8)


def test_bigcode_with_cross_attention_is_refused(read: Read) -> None:
    with pytest.raises(NotModelledError, match="half of an encoder-decoder"):
        read({**BIGCODE, "add_cross_attention": True})


def test_gptj_has_biases_in_its_feed_forward_and_its_head(read: Read) -> None:
    config = {"n_embd": 64, "n_head": 8, "n_layer": 4, "vocab_size": 96}
    spec = read({"model_type": "gptj", **config})
    assert first(spec) == (8, 8)
    attention = 4 * 64 * 64
    mlp = 2 * 64 * 256 + 256 + 64
    ends = 2 * 96 * 64 + 96 + 2 * 64
    assert spec.parameters_total == 4 * (attention + mlp + 2 * 64) + ends


def test_biases_of_internlm(read: Read) -> None:
    first_generation = {**SMALL, "model_type": "internlm", "num_key_value_heads": 8}
    biased = read(first_generation).parameters_total
    assert biased - read({**first_generation, "bias": False}).parameters_total == 4 * 4 * 64
    third = {**SMALL, "model_type": "internlm3", "head_dim": 8}
    plain = read(third).parameters_total
    assert first(read(third)) == (2, 8)
    only_queries = read({**third, "qkv_bias": True, "bias": False}).parameters_total
    assert only_queries - plain == 4 * (64 + 16 + 16)
    rest = read({**third, "qkv_bias": False, "bias": True}).parameters_total
    assert rest - plain == 4 * (64 + 160 + 160 + 64)


def test_jetmoe_expands_its_queries_by_expert(read: Read) -> None:
    """Keys and values are shared by the attention experts: the cache is of those alone."""
    config = {**SMALL, "model_type": "jetmoe", "num_key_value_heads": 4, "kv_channels": 16}
    assert first(read(config)) == (4, 16)


def test_phi3_small_reads_keys_of_its_own_count(read: Read) -> None:
    config = {
        **SMALL,
        "model_type": "phi3small",
        "ff_intermediate_size": 160,
        "num_key_value_heads": 2,
    }
    assert first(read(config)) == (2, 8)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({**CHATGLM, "hidden_size": 65}, "65 is not a multiple of 8 heads"),
        ({**CHATGLM, "num_layers": None}, "num_layers"),
        ({**QWEN, "kv_channels": 0}, "kv_channels"),
        ({**MPT, "attn_config": {"attn_type": "grouped_query_attention"}}, "kv_n_heads"),
        ({**MPT, "attn_config": {"attn_type": "grouped_query_attention", "kv_n_heads": 3}}, "3"),
        ({**MINIMIND, "n_kv_heads": 3}, "can't share"),
        ({**BIGCODE, "n_head": 7}, "64 is not a multiple of 7 heads"),
    ],
)
def test_what_contradicts_is_named(read: Read, config: Config, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(config)
