"""Wrappers with a vision tower, and what is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from family_configs import GEMMA3, MISTRAL, VISION

from kvplan.errors import InputError, NotModelledError
from kvplan.models.caches import WindowCache
from kvplan.models.spec import ModelSpec

Read = Callable[..., ModelSpec]
Config = dict[str, Any]


def kinds(spec: ModelSpec) -> str:
    """F and W, a letter a layer."""
    return "".join(
        "W" if isinstance(layer.caches[0], WindowCache) else "F" for layer in spec.layers
    )


def components(spec: ModelSpec) -> Counter[str]:
    counts: Counter[str] = Counter()
    for weight in spec.weights:
        counts[weight.component] += weight.parameters
    return counts


def filled(spec: ModelSpec) -> dict[str, str]:
    return {default.field: default.value for default in spec.defaults}


# Wrappers


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
    with pytest.raises(NotModelledError, match="around 'bert'"):
        read({**wrapped, "text_config": {**text, "model_type": "bert"}})


def test_the_text_part_decides_on_tying_where_the_wrapper_does_not(read: Read) -> None:
    wrapped = {"model_type": "mistral3", "vision_config": {}}
    text = {**MISTRAL, "tie_word_embeddings": False}
    assert read({**wrapped, "text_config": text}).tied_embeddings is False
    assert read({**wrapped, "text_config": text, "tie_word_embeddings": True}).tied_embeddings


# What is refused


def test_an_unknown_type_is_named_with_its_class_and_a_relative(read: Read) -> None:
    config = {"model_type": "qwen2_ocr", "architectures": ["Qwen2OcrForCausalLM"]}
    with pytest.raises(NotModelledError) as caught:
        read(config)
    assert caught.value.exit_code == 4
    assert "'qwen2_ocr' (Qwen2OcrForCausalLM)" in caught.value.message
    assert "A related family is modelled: qwen2." in str(caught.value.hint)


@pytest.mark.parametrize("name", ["LlamaForCausalLMDflash", "LlamaForMultipleChoice"])
def test_a_variant_of_a_family_is_refused(read: Read, llama: Config, name: str) -> None:
    """A draft or another head has other weights under the same type."""
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


@pytest.mark.parametrize(
    ("model_type", "offered"),
    [("rumba", None), ("lama", "llama"), ("qwen33", "qwen3"), ("a_new_thing", None)],
)
def test_only_a_type_that_is_much_alike_is_offered(
    read: Read, model_type: str, offered: str | None
) -> None:
    with pytest.raises(NotModelledError) as caught:
        read({"model_type": model_type})
    hint = caught.value.hint or ""
    assert ("Did you mean" in hint or "related family" in hint) == (offered is not None)
    assert (offered or "") in hint
