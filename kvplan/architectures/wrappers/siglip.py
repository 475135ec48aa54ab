"""Wrappers around SigLIP: Gemma 3, PaliGemma, Idefics, SmolVLM, Aya, Command A Vision, LFM2-VL."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.towers.clip import headless_siglip, siglip, siglip2
from kvplan.architectures.towers.parts import (
    LayerForm,
    TowerSizes,
    layers,
    tower_linear,
    tower_norm,
    tower_table,
)
from kvplan.architectures.wrappers.parts import Beside, part

_MAX_SCALE = 64


def gemma3(fields: Fields, text: Anatomy) -> Beside:
    """Gemma 3 from 4B up."""
    tower, width = siglip(part(fields, "vision_config", "siglip"))
    (projection,) = tower_linear("mm", (width, text.hidden_size))
    # The one matrix whose name does not end in ".weight".
    projection = projection.model_copy(update={"name": "mm_input_projection_weight"})
    return Beside((*tower, projection, *tower_norm("mm_soft_emb_norm", width)))


def paligemma(fields: Fields, text: Anatomy) -> Beside:
    """PaliGemma 1 and 2."""
    config = part(fields, "vision_config", "siglip")
    if not config.has("vision_use_head"):
        # The class puts no pooling head on its tower: its own default of the tower says so.
        tower, width = headless_siglip(config, patch=16)
    else:
        tower, width = siglip(config)
    return Beside(tower + tower_linear("linear", (text.hidden_size, width), bias=True))


def idefics2(fields: Fields, text: Anatomy) -> Beside:
    """Idefics 2: a resampler between tower and text. Defaults: Idefics2PerceiverConfig."""
    tower, width = headless_siglip(part(fields, "vision_config", "idefics2"))
    config = fields.section("perceiver_config") or fields
    hidden, inner = text.hidden_size, text.intermediate_size
    projection = (
        tower_linear("modality_projection.gate_proj", (inner, width))
        + tower_linear("modality_projection.up_proj", (inner, width))
        + tower_linear("modality_projection.down_proj", (hidden, inner))
    )
    latents = config.integer("resampler_n_latents", default=64)
    return Beside(
        tower
        + projection
        + tower_table("perceiver_resampler.latents", (latents, hidden))
        + _perceiver(config, hidden)
        + tower_norm("perceiver_resampler.norm", hidden)
    )


def idefics3(fields: Fields, text: Anatomy) -> Beside:
    """Idefics 3 and SmolVLM: patches are put side by side, then one matrix."""
    config = part(fields, "vision_config", "idefics3")
    tower, width = headless_siglip(config, hidden=1152)
    scale = fields.integer("scale_factor", default=2, most=_MAX_SCALE)
    size = (text.hidden_size, width * scale * scale)
    return Beside(tower + tower_linear("modality_projection.proj", size))


def aya_vision(fields: Fields, text: Anatomy) -> Beside:
    """Aya Vision: SwiGLU, whose input is what pixel shuffling has put side by side."""
    tower, width = siglip(part(fields, "vision_config", "siglip"))
    scale = fields.integer("downsample_factor", default=2, most=_MAX_SCALE)
    merged = width * scale * scale
    inner = fields.integer("alignment_intermediate_size", default=text.hidden_size)
    return Beside(tower + tower_norm("layernorm", merged, bias=True) + _swiglu(text, inner, merged))


def cohere2_vision(fields: Fields, text: Anatomy) -> Beside:
    """Command A Vision."""
    tower, width = siglip(part(fields, "vision_config", "siglip"))
    scale = fields.integer("downsample_factor", default=2, most=_MAX_SCALE)
    inner = fields.integer("alignment_intermediate_size", default=36_864)
    return Beside(tower + _swiglu(text, inner, width * scale * scale))


def lfm2_vl(fields: Fields, text: Anatomy) -> Beside:
    """LFM2-VL: SigLIP 2 and two matrices. Defaults: Lfm2VlConfig."""
    tower, width = siglip2(part(fields, "vision_config", "siglip2"))
    scale = fields.integer("downsample_factor", default=2, most=_MAX_SCALE)
    inner = fields.integer("projector_hidden_size", default=2560)
    bias = fields.flag("projector_bias", default=True)
    merged = width * scale * scale
    projector = tower_linear("linear_1", (inner, merged), bias=bias)
    projector += tower_linear("linear_2", (text.hidden_size, inner), bias=bias)
    if fields.flag("projector_use_layernorm", default=True):
        projector += tower_norm("layer_norm", merged, bias=True)
    return Beside(tower + projector)


def video_llama3(fields: Fields, text: Anatomy) -> Beside:
    """VideoLLaMA 3: SigLIP with rotary positions only."""
    name = "vision_config" if fields.has("vision_config") else "vision_encoder_config"
    tower, width = headless_siglip(part(fields, name, "video_llama_3"), patch=16)
    rotary = tuple(
        weight for weight in tower if weight.name != "embeddings.position_embedding.weight"
    )
    hidden = text.hidden_size
    return Beside(
        rotary
        + tower_linear("readout.0", (hidden, width), bias=True)
        + tower_linear("readout.2", (hidden, hidden), bias=True)
    )


def _swiglu(text: Anatomy, inner: int, merged: int) -> Weights:
    # Half of what the first matrix puts out gates the other half.
    return tower_linear("linear_1", (inner, merged), bias=True) + tower_linear(
        "linear_2", (text.hidden_size, inner // 2), bias=True
    )


def _perceiver(config: Fields, hidden: int) -> Weights:
    heads = config.integer("resampler_n_heads", default=16)
    head_dim = config.integer("resampler_head_dim", default=96)
    sizes = TowerSizes(
        hidden=hidden,
        width=4 * hidden,
        depth=config.integer("resampler_depth", default=3, most=MAX_LAYERS),
        queries=heads * head_dim,
        keys=config.integer("num_key_value_heads", default=4) * head_dim,
    )
    form = LayerForm(
        out="self_attn.o_proj",
        ups=("mlp.gate_proj", "mlp.up_proj"),
        down="mlp.down_proj",
        norms=("input_latents_norm", "input_context_norm", "post_attention_layernorm"),
        qkv_bias=False,
        out_bias=False,
        mlp_bias=False,
        norm_bias=False,
    )
    return layers(sizes, form)
