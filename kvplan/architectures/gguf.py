"""From the header of a GGUF file to a `ModelSpec`."""

from __future__ import annotations

from kvplan.architectures.fields import MAX_EXPERTS, MAX_POSITIONS, Fields
from kvplan.architectures.gguf_keys import GgufKeys
from kvplan.architectures.gguf_layers import gguf_layers, layer_count
from kvplan.architectures.gguf_presence import check_has_tensors, check_layers
from kvplan.architectures.gguf_tensors import gguf_inventory
from kvplan.architectures.headers import bytes_by_dtype, unknown_note
from kvplan.errors import NotModelledError
from kvplan.models.facts import ModelFacts, TensorHeader
from kvplan.models.ggml_types import FILE_TYPES
from kvplan.models.spec import Checkpoint, Layer, ModelSpec
from kvplan.models.weights import Weight

_SOURCE = "ggml-org/llama.cpp@0c1e57098 src/llama-model.cpp load_hparams"
_NO_TENSORS = (
    "The file holds no tensors: it describes a model for a dry run, and llama.cpp could not load"
    " it. The weights' size is not known and counts as nothing."
)
_NOT_DECODERS = {
    "clip": "a vision or audio projector",
    "bert": "an embedding model",
    "t5": "an encoder and a decoder",
    "t5encoder": "an encoder",
    "wavtokenizer-dec": "an audio decoder",
}
# Files of another kind state it: gguf-py/gguf/constants.py ``GGUFType``.
_NOT_MODELS = {
    "adapter": "an adapter (LoRA)",
    "imatrix": "an importance matrix",
    "mmproj": "a vision or audio projector",
}


def read_gguf(facts: ModelFacts) -> ModelSpec:
    """What the model in a GGUF file stores.

    States of recurrent layers are in float32, as llama.cpp keeps them.

    Args:
        facts: ``config`` is the file's metadata, ``tensors`` its tensors or None if not read.

    Raises:
        NotModelledError: an architecture whose caches are not modelled.
        InputError: metadata that is malformed or contradicts itself, or weights that are missing.
    """
    fields = Fields(facts.config, where=facts.source, source=_SOURCE)
    keys = GgufKeys(fields, _architecture(fields))
    check_has_tensors(facts)
    layers = gguf_layers(keys)
    check_layers(facts, layers)
    tensors = facts.tensors or ()
    weights, unknown = gguf_inventory(
        tensors,
        layers=layer_count(keys),
        kv_heads=_kv_heads(layers),
        active=_active(keys),
    )
    notes = facts.notes + unknown_note(unknown) + (() if facts.tensors else (_NO_TENSORS,))
    return ModelSpec(
        id=facts.id,
        revision=facts.revision,
        model_type=keys.architecture,
        architecture=f"GGUF {keys.architecture}",
        source=facts.source,
        dtype="float16",
        max_context=keys.optional("context_length", most=MAX_POSITIONS),
        rope_scaling=_rope_scaling(keys),
        hidden_size=keys.whole("embedding_length"),
        vocab_size=_vocabulary(keys, tensors),
        intermediate_size=_intermediate(keys, len(layers)),
        attention_heads=max(keys.per_layer("attention.head_count", len(layers))),
        experts=keys.optional("expert_count", most=MAX_EXPERTS) or 0,
        experts_per_token=_active(keys),
        layers=layers,
        tied_embeddings=bool(tensors) and not _has(weights, "output.weight"),
        weights=weights,
        quantization=_file_type(fields),
        checkpoint=_checkpoint(facts, weights),
        defaults=fields.filled,
        notes=notes,
    )


def _architecture(fields: Fields) -> str:
    name = fields.optional_text("general.architecture")
    kind = fields.raw("general.type")
    if isinstance(kind, str) and kind in _NOT_MODELS:
        raise NotModelledError(
            f"The GGUF file holds {_NOT_MODELS[kind]}, not a model.",
            hint="Name the file of the model itself.",
        )
    if name is None:
        raise fields.error("general.architecture", None, "the name of an architecture")
    if name in _NOT_DECODERS:
        raise NotModelledError(
            f"The GGUF file holds {_NOT_DECODERS[name]} ({name}), not a language model's decoder.",
            hint="Name the file of the model itself.",
        )
    return name


def _kv_heads(layers: tuple[Layer, ...]) -> int:
    """KV heads where all layers that have some have as many, else 0."""
    counts = {getattr(cache, "kv_heads", 0) for layer in layers for cache in layer.caches} - {0}
    return counts.pop() if len(counts) == 1 else 0


def _active(keys: GgufKeys) -> int:
    name = f"{keys.architecture}.expert_used_count"
    if isinstance(keys.fields.raw(name), tuple | list):
        return max(keys.fields.integers(name, least=0, most=MAX_EXPERTS) or (0,))
    return keys.optional("expert_used_count", most=MAX_EXPERTS) or 0


def _rope_scaling(keys: GgufKeys) -> str | None:
    kind = keys.fields.optional_text(f"{keys.architecture}.rope.scaling.type")
    return None if kind in (None, "none") else kind


def _vocabulary(keys: GgufKeys, tensors: tuple[TensorHeader, ...]) -> int:
    for tensor in tensors:
        if tensor.name == "token_embd.weight":
            return tensor.shape[0]
    tokens = keys.fields.raw("tokenizer.ggml.tokens")
    if isinstance(tokens, dict) and isinstance(tokens.get("length"), int) and tokens["length"]:
        return int(tokens["length"])
    return keys.whole("vocab_size")


def _intermediate(keys: GgufKeys, layers: int) -> int:
    widths = keys.per_layer("feed_forward_length", layers, default=0)
    expert = keys.optional("expert_feed_forward_length") or 0
    return max(*widths, expert) or keys.whole("embedding_length")


def _has(weights: tuple[Weight, ...], name: str) -> bool:
    return any(weight.name == name for weight in weights)


def _file_type(fields: Fields) -> str | None:
    code = fields.optional_integer("general.file_type", least=0, most=4096)
    name = FILE_TYPES.get(code) if code is not None else None
    return f"gguf:{name}" if name else "gguf"


def _checkpoint(facts: ModelFacts, weights: tuple[Weight, ...]) -> Checkpoint | None:
    if not facts.tensors:
        return None
    total = sum(tensor.size for tensor in facts.tensors)
    return Checkpoint(
        total_bytes=total or None,
        parameters=sum(weight.parameters for weight in weights) or None,
        bytes_by_dtype=bytes_by_dtype(facts.tensors),
        source=facts.checkpoint_source or facts.source,
    )
