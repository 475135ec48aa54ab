"""How long a context a configuration allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvplan.errors import InputError
from kvplan.models.spec import ModelSpec

Read = Callable[..., ModelSpec]
Config = dict[str, Any]


def test_the_smallest_stated_length_counts(read: Read, llama: Config) -> None:
    assert read({**llama, "max_sequence_length": 2048}).max_context == 2048


def test_model_max_length_overrides(read: Read, llama: Config) -> None:
    assert read({**llama, "model_max_length": 262144}).max_context == 262144


def test_the_class_default_stands_in(read: Read, llama: Config) -> None:
    del llama["max_position_embeddings"]
    spec = read(llama)
    assert spec.max_context == 2048
    assert "max_position_embeddings" in {default.field for default in spec.defaults}


def test_a_class_without_default_states_none(read: Read) -> None:
    bloom = {"model_type": "bloom", "n_embed": 64, "n_layer": 2, "n_head": 8, "vocab_size": 99}
    assert read(bloom).max_context is None


@pytest.mark.parametrize(
    ("scaling", "length", "kind"),
    [
        (None, 131072, None),
        ({"rope_type": "default"}, 131072, None),
        ({"rope_type": "llama3", "factor": 8.0}, 131072, "llama3"),
        ({"type": "yarn", "factor": 40}, 131072, "yarn"),
        ({"rope_type": "linear", "factor": 8.0}, 1048576, "linear"),
        ({"type": "dynamic", "factor": 2.0}, 262144, "dynamic"),
        ({"rope_type": "linear", "factor": None}, 131072, "linear"),
        ({"type": "linear", "factor": 1.5}, 196608, "linear"),
    ],
)
def test_scaling(
    read: Read, llama: Config, scaling: Config | None, length: int, kind: str | None
) -> None:
    spec = read({**llama, "rope_scaling": scaling})
    assert (spec.max_context, spec.rope_scaling) == (length, kind)


def test_newer_files_say_rope_parameters(read: Read, llama: Config) -> None:
    spec = read({**llama, "rope_parameters": {"rope_type": "linear", "factor": 2}})
    assert (spec.max_context, spec.rope_scaling) == (262144, "linear")


def test_gemma3_states_its_length_after_scaling(read: Read) -> None:
    config = {"model_type": "gemma3_text", "hidden_size": 64, "sliding_window": 64}
    spec = read({**config, "rope_scaling": {"rope_type": "linear", "factor": 8.0}})
    assert (spec.max_context, spec.rope_scaling) == (131072, "linear")


def test_parameters_by_layer_type_are_read_for_full_layers(read: Read) -> None:
    rope = {"sliding_attention": {"rope_type": "default"}, "full_attention": {"rope_type": "yarn"}}
    config = {"model_type": "gemma3_text", "hidden_size": 64, "sliding_window": 64}
    assert read({**config, "rope_parameters": rope}).rope_scaling == "yarn"


@pytest.mark.parametrize("kind", ["longrope", "su"])
def test_longrope_plans_for_the_original_length(read: Read, llama: Config, kind: str) -> None:
    """VLLM starts with the original length; more has to be asked for."""
    config = {**llama, "rope_scaling": {"type": kind}, "original_max_position_embeddings": 4096}
    spec = read(config)
    assert (spec.max_context, spec.extended_context) == (4096, 131072)
    assert any("4,096" in note and "131,072" in note for note in spec.notes)


def test_longrope_without_an_original_length(read: Read, llama: Config) -> None:
    spec = read({**llama, "rope_scaling": {"type": "longrope"}})
    assert (spec.max_context, spec.extended_context) == (131072, None)


@pytest.mark.parametrize("value", ["4096", -1, 0, 1e30, 10**30, float("nan"), True])
def test_absurd_lengths_are_named(read: Read, llama: Config, value: object) -> None:
    with pytest.raises(InputError, match="max_position_embeddings"):
        read({**llama, "max_position_embeddings": value})


@pytest.mark.parametrize("value", ["8", -1, 0, float("inf"), 1e300, []])
def test_absurd_factors_are_named(read: Read, llama: Config, value: object) -> None:
    with pytest.raises(InputError, match=r"rope_scaling\.factor"):
        read({**llama, "rope_scaling": {"type": "linear", "factor": value}})
