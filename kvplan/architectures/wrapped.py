"""Wrappers: a decoder that its file describes in a part of its own, with towers beside it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights, linear
from kvplan.architectures.fields import Fields
from kvplan.architectures.origin import class_source
from kvplan.architectures.table import FAMILIES, Family
from kvplan.architectures.wrappers.table import Wrapper
from kvplan.errors import NotModelledError

# Names that wrappers give to text parts that are another class in all that decides a size:
# transformers v5.24.0 src/transformers/models/.
_SAME: Mapping[str, str] = MappingProxyType(
    {
        "bidir_mistral": "mistral",
        "cohere2_vision_text": "cohere2",
        "exaone4_5_text": "exaone4",
        "glm46v_text": "glm4",
        "glm4v_moe_text": "glm4_moe",
        "glm4v_text": "glm4",
        "llava_llama": "llama",
        "minimax_m3_text": "minimax_m3",
        "qwen2_5_omni_text": "qwen2",
        "qwen2_5_vl_text": "qwen2",
        "qwen2_vl_text": "qwen2",
        "qwen3_omni_moe_text": "qwen3_moe",
        "qwen3_vl_moe_text": "qwen3_moe",
        "qwen3_vl_text": "qwen3",
    }
)

# What a nested text part may leave out because its class says so (configuration_*.py).
_NESTED: Mapping[str, Mapping[str, int]] = MappingProxyType(
    {
        "cohere2": {"hidden_size": 8192, "intermediate_size": 22528, "num_hidden_layers": 40}
        | {"num_attention_heads": 64, "vocab_size": 256_000},
        "gemma": {"hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28}
        | {"num_attention_heads": 16, "vocab_size": 256_000},
        "gemma2": {"hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26}
        | {"num_attention_heads": 8, "vocab_size": 256_000},
        "llama": {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32}
        | {"num_attention_heads": 32, "vocab_size": 32_000},
        "mistral": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32}
        | {"num_attention_heads": 32, "vocab_size": 32_000},
        "persimmon": {"hidden_size": 4096, "intermediate_size": 16384, "num_hidden_layers": 36}
        | {"num_attention_heads": 64, "vocab_size": 262_144},
        "phi3": {"hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 32}
        | {"num_attention_heads": 32, "vocab_size": 32_064},
        "qwen2": {"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32}
        | {"num_attention_heads": 32, "vocab_size": 151_936},
        "qwen3": {"hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32}
        | {"num_attention_heads": 32, "vocab_size": 151_936},
    }
)


class Reading(NamedTuple):
    """What was read of one configuration.

    Attributes:
        anatomy: All of it, towers included.
        text: The fields that describe the decoder.
        family: How the decoder is read.
    """

    anatomy: Anatomy
    text: Fields
    family: Family


def read_anatomy(fields: Fields, family: Family | Wrapper) -> Reading:
    """Reads a decoder, be it wrapped or not.

    Raises:
        NotModelledError: a wrapper around a decoder that is not modelled.
        InputError: a configuration that is malformed or contradicts itself.
    """
    if isinstance(family, Family):
        text = (fields.section(family.text) if family.text else None) or fields
        return Reading(family.build(fields), text, family)
    kind, text = _text_part(fields, family)
    inner = FAMILIES[kind]
    decoder = inner.build(text)
    holder = _holder(fields, family.sections)
    tied = not family.own_head and _tied(holder, text, decoder, default=family.tied)
    beside = family.beside(fields, decoder)
    changes = {
        "tied": tied,
        "weights": beside.weights + _retied(decoder, tied=tied),
        "uncounted": beside.uncounted or decoder.uncounted,
        "notes": decoder.notes + beside.notes,
    }
    return Reading(decoder.model_copy(update=changes), text, inner)


def _text_part(fields: Fields, wrapper: Wrapper) -> tuple[str, Fields]:
    part = _section(fields, wrapper.sections)
    if part is None and wrapper.sections and not wrapper.flat:
        raise fields.error(wrapper.sections[0], None, "an object")
    own = None if part is None else part.optional_text("model_type")
    kind = _SAME.get(own, own) if own is not None else None
    if kind is None:
        kind = wrapper.text_type(fields)
    if kind not in FAMILIES:
        raise NotModelledError(
            f"A wrapper around {kind[:60]!r} is not modelled: the text model itself is not.",
            hint="Plan the text model alone if you have its own config.json.",
        )
    text = (part or fields).of_class(class_source(FAMILIES[kind].folder))
    return kind, text if part is None else text.completed(_NESTED.get(kind, {}))


def _section(fields: Fields, paths: tuple[str, ...]) -> Fields | None:
    for path in paths:
        part: Fields | None = fields
        for name in path.split("."):
            part = part.section(name) if part is not None else None
        if part is not None:
            return part
    return None


def _holder(fields: Fields, paths: tuple[str, ...]) -> Fields:
    """The part that holds the text part: it is the wrapper proper."""
    for path in paths:
        outer, _, inner = path.rpartition(".")
        if outer and inner:
            return _section(fields, (outer,)) or fields
    return fields


def _tied(fields: Fields, text: Fields, decoder: Anatomy, *, default: bool | None) -> bool:
    # The wrapper's own flag decides; files written before it existed keep it in the text part.
    name = "tie_word_embeddings"
    if fields.has(name):
        return fields.flag(name, default=False)
    if text.has(name) or default is None:
        return decoder.tied
    fields.fill(name, default)
    return default


def _retied(decoder: Anatomy, *, tied: bool) -> Weights:
    """The decoder's weights with a head matrix if and only if it is not tied."""
    if tied is decoder.tied:
        return decoder.weights
    rest = tuple(
        weight
        for weight in decoder.weights
        if weight.component != "lm_head" or len(weight.shape) == 1
    )
    if tied:
        return rest
    size = (decoder.vocab_size, decoder.hidden_size)
    return rest + linear("lm_head", size, component="lm_head", sharding="vocab", place="head")
