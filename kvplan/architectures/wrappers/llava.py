"""LLaVA and its heirs: a vision tower, and two matrices that lead into the text model."""

from __future__ import annotations

import re

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.towers.clip import clip, siglip
from kvplan.architectures.towers.parts import tower_linear, tower_norm, tower_vector
from kvplan.architectures.towers.pixtral import pixtral
from kvplan.architectures.wrappers.parts import Beside, chosen_layers, part, two_linears
from kvplan.errors import NotModelledError

_TOWERS = {
    "clip_vision_model": (clip, "clip"),
    "pixtral": (pixtral, "pixtral"),
    "siglip_vision_model": (siglip, "siglip"),
}
_STEPS = re.compile(r"mlp(\d)x_gelu", re.ASCII)


def llava(fields: Fields, text: Anatomy) -> Beside:
    """LLaVA 1.5 and Pixtral, in transformers' form or in the original one."""
    if not fields.has("vision_config"):
        return original_llava(fields, text)
    tower, width = _tower(fields)
    return Beside(tower + _projector(fields, text, width, layers=1))


def llava_next(fields: Fields, text: Anatomy) -> Beside:
    """LLaVA-NeXT and LLaVA-OneVision: one more vector ends a row of the image."""
    tower, width = _tower(fields)
    newline = tower_vector("image_newline", text.hidden_size)
    return Beside(tower + newline + _projector(fields, text, width, layers=1))


def vipllava(fields: Fields, text: Anatomy) -> Beside:
    """ViP-LLaVA: five layers of the tower side by side."""
    tower, width = _tower(fields)
    inputs = width * chosen_layers(fields, 5)
    norm = tower_norm("projector_layernorm", inputs, bias=True)
    return Beside(tower + norm + two_linears(text.hidden_size, inputs, bias=True))


def original_llava(fields: Fields, text: Anatomy) -> Beside:
    """The form of LLaVA's own repository: the file names a tower that is another checkpoint."""
    width = fields.integer("mm_hidden_size")
    kind = fields.optional_text("mm_projector_type") or "linear"
    steps = _STEPS.fullmatch(kind)
    if kind != "linear" and steps is None:
        return Beside((), "vision tower and projector")
    weights = tower_linear("mm_projector.0", (text.hidden_size, width), bias=True)
    for step in range(1, int(steps[1]) if steps else 1):
        weights += tower_linear(
            f"mm_projector.{2 * step}", (text.hidden_size, text.hidden_size), bias=True
        )
    sentence = "The vision tower is another checkpoint, and its weights are not counted."
    return Beside(weights, notes=(sentence,))


def several_towers(_: Fields, __: Anatomy) -> Beside:
    """A LLaVA with towers that its file names but does not describe."""
    return Beside((), "vision towers and their projector")


def vila(fields: Fields, text: Anatomy) -> Beside:
    """VILA 1.5: SigLIP, four patches merged into one. Source: NVlabs/VILA base_projector.py."""
    tower, width = siglip(part(fields, "vision_tower_cfg", "siglip"))
    projector = fields.section("mm_projector_cfg") or fields
    kind = projector.optional_text("mm_projector_type")
    if kind != "mlp_downsample":
        return Beside(tower, "projector")
    merged = 4 * width
    return Beside(
        tower
        + tower_norm("mm_projector.layers.1", merged, bias=True)
        + tower_linear("mm_projector.layers.2", (text.hidden_size, merged), bias=True)
        + tower_linear("mm_projector.layers.4", (text.hidden_size, text.hidden_size), bias=True)
    )


def _tower(fields: Fields) -> tuple[Weights, int]:
    stated = fields.section("vision_config")
    kind = (stated.optional_text("model_type") if stated else None) or "clip_vision_model"
    if kind not in _TOWERS:
        raise NotModelledError(
            f"A LLaVA with a vision tower of type {kind[:40]!r} is not modelled.",
            hint=f"Known are {', '.join(_TOWERS)}.",
        )
    build, folder = _TOWERS[kind]
    return build(part(fields, "vision_config", folder))


def _projector(fields: Fields, text: Anatomy, width: int, *, layers: int) -> Weights:
    bias = fields.flag("multimodal_projector_bias", default=True)
    return two_linears(text.hidden_size, width * chosen_layers(fields, layers), bias=bias)
