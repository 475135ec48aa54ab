"""Wrappers that put a vision tower before a decoder: Gemma 3, Mistral 3."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights, head
from kvplan.architectures.fields import Fields
from kvplan.architectures.gemma import gemma3_text
from kvplan.architectures.llama import ministral3, mistral
from kvplan.architectures.origin import class_source
from kvplan.architectures.shapes import DecoderShape
from kvplan.architectures.towers import pixtral, siglip, tower_linear, tower_norm
from kvplan.errors import NotModelledError


def gemma3(fields: Fields) -> Anatomy:
    """Gemma 3 from 4B up: SigLIP, a projection, and the text decoder."""
    text = _part(fields, "text_config", class_source("gemma3"))
    decoder = gemma3_text(text)
    tower, width = siglip(_part(fields, "vision_config", class_source("siglip")))
    (projection,) = tower_linear("mm", (width, decoder.hidden_size), "replicated")
    # The one matrix whose name does not end in ".weight".
    projection = projection.model_copy(update={"name": "mm_input_projection_weight"})
    projector = (projection, *tower_norm("mm_soft_emb_norm", width))
    return _joined(decoder, tower + projector, tied=_tied(fields, text, default=True))


def mistral3(fields: Fields) -> Anatomy:
    """Mistral Small 3.1 and later, Ministral 3, Devstral 2: Pixtral before a text decoder."""
    stated = fields.section("text_config")
    kind = stated.optional_text("model_type") if stated else None
    if kind not in ("mistral", "ministral3"):
        raise NotModelledError(
            f"A Mistral 3 wrapper around {kind or 'an unnamed text model'!r} is not modelled.",
            hint="Known inside it are mistral and ministral3.",
        )
    text = _part(fields, "text_config", class_source(kind))
    decoder = mistral(text) if kind == "mistral" else ministral3(text)
    tower, width = pixtral(_part(fields, "vision_config", class_source("pixtral")))
    projector = _mistral3_projector(fields, width, decoder.hidden_size)
    return _joined(decoder, tower + projector, tied=_tied(fields, text, default=True))


def _mistral3_projector(fields: Fields, width: int, hidden: int) -> Weights:
    merge = fields.integer("spatial_merge_size", default=2, most=64)
    bias = fields.flag("multimodal_projector_bias", default=False)
    chosen = fields.raw("vision_feature_layer")
    inputs = width * (len(chosen) if isinstance(chosen, list) and chosen else 1)
    return (
        tower_norm("norm", width)
        + tower_linear("patch_merger.merging_layer", (width, width * merge * merge), "replicated")
        + tower_linear("linear_1", (hidden, inputs), "replicated", bias=bias)
        + tower_linear("linear_2", (hidden, hidden), "replicated", bias=bias)
    )


def _part(fields: Fields, name: str, source: str) -> Fields:
    part = fields.section(name, source=source)
    if part is None:
        raise fields.error(name, None, "an object")
    return part


def _tied(fields: Fields, text: Fields, *, default: bool) -> bool:
    # The wrapper's own flag decides; files written before it existed keep it in the text part.
    if text.has("tie_word_embeddings") and not fields.has("tie_word_embeddings"):
        return text.flag("tie_word_embeddings", default=default)
    return fields.flag("tie_word_embeddings", default=default)


def _joined(decoder: Anatomy, tower: Weights, *, tied: bool) -> Anatomy:
    text = tuple(weight for weight in decoder.weights if weight.component != "lm_head")
    shape = DecoderShape(
        layers=len(decoder.layers),
        hidden=decoder.hidden_size,
        heads=decoder.attention_heads,
        kv_heads=decoder.attention_heads,
        head_dim=1,
        vocab=decoder.vocab_size,
    )
    weights = tower + text + head(shape, tied=tied)
    return decoder.model_copy(update={"tied": tied, "weights": weights})
