"""Whether a GGUF file holds the weights that its metadata speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kvplan.architectures.gguf_tensors import layer_of
from kvplan.errors import InputError
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import Layer

_MOST_NAMED = 4


def check_has_tensors(facts: ModelFacts) -> None:
    """Refuses a file without any, such as one of a vocabulary alone.

    One that states to have no vocabulary either describes a model: llama.cpp sizes such files
    without loading them.

    Raises:
        InputError: the tensors were read, and there are none.
    """
    described = facts.config.get("tokenizer.ggml.model") == "none"
    if facts.tensors == () and not described:
        raise InputError(
            "The GGUF file holds no tensors, only metadata such as a vocabulary.",
            hint="Name the file with the model's weights.",
            location=facts.source,
        )


def check_layers(facts: ModelFacts, layers: Sequence[Layer]) -> None:
    """Refuses a file in which layers have no tensor, as llama.cpp does when it loads one.

    Layers that keep no cache may be empty: pruned models have such. So may all decoder layers of a
    file that holds modules for multi-token prediction alone, which is a draft
    (ggml-org/llama.cpp#25641).

    Args:
        facts: The file's tensors; without any nothing is refused.
        layers: Decoder layers.

    Raises:
        InputError: layers without a tensor.
    """
    if not facts.tensors:
        return
    there = {layer_of(tensor.name) for tensor in facts.tensors}
    missing = [n for n, layer in enumerate(layers) if layer.caches and n not in there]
    if not missing or (not there & set(range(len(layers))) and max(there) >= len(layers)):
        return
    raise InputError(
        f"The GGUF file has no tensors of {len(missing)} of its {len(layers)} layers "
        f"({_named(missing)}).",
        hint="Download the file again; of a split model keep all parts under their own names.",
        location=facts.source,
    )


def _named(layers: Sequence[int]) -> str:
    """The first few as they are named in a file."""
    shown: Iterable[int] = layers[:_MOST_NAMED]
    more = ", …" if len(layers) > _MOST_NAMED else ""
    return ", ".join(f"blk.{layer}" for layer in shown) + more
