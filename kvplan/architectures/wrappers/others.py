"""Wrappers with towers of their own: InternVL, Kimi, Gemma 4, Llama 4, Mistral 3, Janus, Fuyu."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.towers.gemma4 import gemma4_audio, gemma4_vision
from kvplan.architectures.towers.intern import intern_vit, internvl_vit
from kvplan.architectures.towers.llama4 import llama4_vit
from kvplan.architectures.towers.moon import merge_area, moonvit, moonvit_3d
from kvplan.architectures.towers.parts import MAX_CHANNELS, MAX_IMAGE, tower_linear, tower_norm
from kvplan.architectures.towers.pixtral import pixtral
from kvplan.architectures.wrappers.parts import Beside, chosen_layers, part, two_linears

_MAX_MERGE = 64


def internvl_chat(fields: Fields, text: Anatomy) -> Beside:
    """InternVL 1.5 to 3.5 in their own form."""
    tower, width = intern_vit(part(fields, "vision_config", "internvl"))
    merged = width * _shuffled(fields)
    hidden = text.hidden_size
    return Beside(
        tower
        + tower_norm("mlp1.0", merged, bias=True)
        + tower_linear("mlp1.1", (hidden, merged), bias=True)
        + tower_linear("mlp1.3", (hidden, hidden), bias=True)
    )


def internvl(fields: Fields, text: Anatomy) -> Beside:
    """The same models in transformers' form."""
    tower, width = internvl_vit(part(fields, "vision_config", "internvl"))
    merged = width * _shuffled(fields)
    projector = tower_norm("layer_norm", merged, bias=True)
    return Beside(tower + projector + two_linears(text.hidden_size, merged, bias=True))


def kimi_vl(fields: Fields, text: Anatomy) -> Beside:
    """Kimi-VL: vLLM v0.33.0 vllm/model_executor/models/kimi_vl.py."""
    config = part(fields, "vision_config", "kimi_k25")
    tower, width = moonvit(config)
    return Beside(tower + _patch_merger(text, width, merge_area(config)))


def kimi_k25(fields: Fields, text: Anatomy) -> Beside:
    """Kimi K2.5 to K2.7: vLLM v0.33.0 vllm/model_executor/models/kimi_k25_vit.py."""
    config = part(fields, "vision_config", "kimi_k25")
    tower, width = moonvit_3d(config)
    area = merge_area(config)
    if config.optional_text("mm_projector_type") != "patchmergerv2":
        return Beside(tower + _patch_merger(text, width, area))
    merged = width * area
    return Beside(
        tower
        + tower_linear("mm_projector.linear_1", (merged, merged))
        + tower_linear("mm_projector.linear_2", (text.hidden_size, merged))
        + tower_norm("mm_projector.post_norm", text.hidden_size)
    )


def locateanything(fields: Fields, text: Anatomy) -> Beside:
    """LocateAnything: MoonViT and InternVL's projector."""
    config = part(fields, "vision_config", "kimi_k25")
    tower, width = moonvit(config)
    merged = width * merge_area(config)
    hidden = text.hidden_size
    return Beside(
        tower
        + tower_norm("mlp1.0", merged, bias=True)
        + tower_linear("mlp1.1", (hidden, merged), bias=True)
        + tower_linear("mlp1.3", (hidden, hidden), bias=True)
    )


def gemma4(fields: Fields, text: Anatomy) -> Beside:
    """Gemma 4: an eye and, in the small models, an ear."""
    weights: Weights = ()
    if fields.has("vision_config"):
        tower, width = gemma4_vision(part(fields, "vision_config", "gemma4"))
        weights += tower + tower_linear("embedding_projection", (text.hidden_size, width))
    if fields.has("audio_config"):
        ear, out = gemma4_audio(part(fields, "audio_config", "gemma4"))
        size = (text.hidden_size, out)
        weights += ear + tower_linear("embedding_projection", size, component="audio")
    return Beside(weights)


def llama4(fields: Fields, text: Anatomy) -> Beside:
    """Llama 4: the projector has no bias."""
    if not fields.has("vision_config"):
        return Beside((), "vision tower")
    tower, width = llama4_vit(part(fields, "vision_config", "llama4"))
    return Beside(tower + tower_linear("linear_1", (text.hidden_size, width)))


def mistral3(fields: Fields, text: Anatomy) -> Beside:
    """Mistral Small 3.1 and later, Ministral 3, Devstral 2: Pixtral and a patch merger."""
    tower, width = pixtral(part(fields, "vision_config", "pixtral"))
    merge = fields.integer("spatial_merge_size", default=2, most=_MAX_MERGE)
    bias = fields.flag("multimodal_projector_bias", default=False)
    inputs = width * chosen_layers(fields, 1)
    return Beside(
        tower
        + tower_norm("norm", width)
        + tower_linear("patch_merger.merging_layer", (width, width * merge * merge))
        + two_linears(text.hidden_size, inputs, bias=bias)
    )


def fuyu(fields: Fields, text: Anatomy) -> Beside:
    """Fuyu: no tower, one matrix from patches into the text model."""
    side = fields.integer("patch_size", default=30, most=MAX_IMAGE)
    pixels = fields.integer("num_channels", default=3, most=MAX_CHANNELS) * side * side
    return Beside(tower_linear("vision_embed_tokens", (text.hidden_size, pixels), bias=True))


def unsized(_: Fields, __: Anatomy) -> Beside:
    """A class whose tower no source in reach describes."""
    return Beside((), "vision tower")


def _patch_merger(text: Anatomy, width: int, area: int) -> Weights:
    merged = width * area
    return (
        tower_norm("mm_projector.pre_norm", width, bias=True)
        + tower_linear("mm_projector.linear_1", (merged, merged), bias=True)
        + tower_linear("mm_projector.linear_2", (text.hidden_size, merged), bias=True)
    )


def _shuffled(fields: Fields) -> int:
    """Patches that pixel shuffling puts side by side."""
    ratio = fields.number("downsample_ratio") or 0.5
    side = round(1 / ratio) if ratio >= 1 / _MAX_MERGE else 0
    if not side or abs(side * ratio - 1) > 1e-6:
        raise fields.conflict("`downsample_ratio` has to be one over a whole number.")
    return side * side
