"""Embedding, reward and classification models on known decoders; encoders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvplan.architectures.encoders import ENCODERS
from kvplan.architectures.table import FAMILIES
from kvplan.architectures.wrappers.table import WRAPPERS
from kvplan.errors import NotModelledError
from kvplan.models.spec import ModelSpec

Read = Callable[..., ModelSpec]
Config = dict[str, Any]


def head(spec: ModelSpec) -> int:
    return sum(weight.parameters for weight in spec.weights if weight.component == "lm_head")


def test_a_bare_decoder_has_no_head(read: Read, llama: Config) -> None:
    """Embedding models, as e5-mistral and gte-Qwen2 are saved."""
    spec = read({**llama, "architectures": ["LlamaModel"]})
    whole = read(llama)
    assert spec.architecture == "LlamaModel"
    assert spec.layers == whole.layers
    assert whole.parameters_total - spec.parameters_total == 128256 * 4096
    assert head(spec) == 0


def test_a_bare_decoder_of_a_tied_family_loses_nothing(read: Read, llama: Config) -> None:
    tied = {**llama, "tie_word_embeddings": True}
    bare = read({**tied, "architectures": ["LlamaModel"]})
    assert bare.parameters_total == read(tied).parameters_total


@pytest.mark.parametrize(
    ("labels", "count"),
    [
        ({}, 2),
        ({"num_labels": 7}, 7),
        ({"id2label": {"0": "LABEL_0"}}, 1),
        ({"id2label": {"0": "a", "1": "b", "2": "c"}, "num_labels": 7}, 3),
    ],
)
def test_a_classifier_has_a_row_a_label(
    read: Read, llama: Config, labels: Config, count: int
) -> None:
    config = {**llama, **labels, "architectures": ["LlamaForSequenceClassification"]}
    assert head(read(config)) == count * 4096


def test_a_classifier_of_tokens_has_a_bias(read: Read, llama: Config) -> None:
    config = {**llama, "architectures": ["LlamaForTokenClassification"], "num_labels": 5}
    assert head(read(config)) == 5 * (4096 + 1)


def test_a_classifier_on_a_tied_family_is_not_tied(read: Read, llama: Config) -> None:
    config = {**llama, "architectures": ["LlamaForSequenceClassification"]}
    spec = read({**config, "tie_word_embeddings": True})
    assert not spec.tied_embeddings
    assert head(spec) == 2 * 4096


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Qwen2ForRewardModel", 64 * 64 + 64 + 64 + 1),
        ("Qwen2ForProcessRewardModel", 64 * 64 + 64 + 2 * 64 + 2),
    ],
)
def test_rewards_of_qwen2_have_two_layers(read: Read, name: str, parameters: int) -> None:
    config = {
        "model_type": "qwen2",
        "architectures": [name],
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 96,
    }
    assert head(read(config)) == parameters


def test_the_reward_of_internlm2_is_one_row(read: Read) -> None:
    config = {
        "model_type": "internlm2",
        "architectures": ["InternLM2ForRewardModel"],
        "hidden_size": 64,
        "intermediate_size": 160,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "vocab_size": 96,
    }
    assert head(read(config)) == 64


def test_the_reward_of_gpt_neox_keeps_its_own_row(read: Read) -> None:
    """Open Assistant's: one row in place of the head."""
    config = {
        "model_type": "gpt_neox_reward_model",
        "hidden_size": 64,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "vocab_size": 96,
    }
    language = read({**config, "model_type": "gpt_neox"})
    reward = read(config)
    assert reward.layers == language.layers
    assert language.parameters_total - reward.parameters_total == 96 * 64 - head(reward)
    assert head(reward) == 64 + 1


@pytest.mark.parametrize("name", ["Qwen2ForRewardModel", "MistralModel", "LlamaForRewardModel"])
def test_a_head_of_another_family_is_refused(read: Read, llama: Config, name: str) -> None:
    with pytest.raises(NotModelledError, match=name):
        read({**llama, "architectures": [name]})


def test_no_encoder_is_also_a_family() -> None:
    assert not ENCODERS & {*FAMILIES, *WRAPPERS}


@pytest.mark.parametrize("model_type", ["bert", "xlm-roberta", "modernbert"])
def test_an_encoder_keeps_no_cache(read: Read, model_type: str) -> None:
    with pytest.raises(NotModelledError, match="keep no KV cache"):
        read({"model_type": model_type, "hidden_size": 64, "num_hidden_layers": 2})
