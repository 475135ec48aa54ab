"""Vision towers: what lies beside a decoder on the first pipeline stage."""

from __future__ import annotations

from kvplan.architectures.blocks import Weights, linear, norm, vector
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.models.weights import Sharding, Weight

_MAX_IMAGE = 65_536
_MAX_CHANNELS = 64


def siglip(fields: Fields) -> tuple[Weights, int]:
    """A SigLIP tower and its width. Defaults: SiglipVisionConfig."""
    hidden = fields.integer("hidden_size", default=768)
    width = fields.integer("intermediate_size", default=3072)
    depth = fields.integer("num_hidden_layers", default=12, most=MAX_LAYERS)
    image = fields.integer("image_size", default=224, most=_MAX_IMAGE)
    patch = fields.integer("patch_size", default=16, most=image)
    layer: Weights = ()
    for name in ("q_proj", "k_proj", "v_proj"):
        layer += tower_linear(f"self_attn.{name}", (hidden, hidden), "column", bias=True)
    layer += tower_linear("self_attn.out_proj", (hidden, hidden), "row", bias=True)
    layer += tower_linear("mlp.fc1", (width, hidden), "column", bias=True)
    layer += tower_linear("mlp.fc2", (hidden, width), "row", bias=True)
    layer += tower_norm("layer_norm1", hidden, bias=True)
    layer += tower_norm("layer_norm2", hidden, bias=True)
    pixels = _channels(fields) * patch * patch
    weights = tower_linear("embeddings.patch_embedding", (hidden, pixels), "replicated", bias=True)
    weights += tower_linear(
        "embeddings.position_embedding", ((image // patch) ** 2, hidden), "replicated"
    )
    weights += _repeated(layer, depth) + tower_norm("post_layernorm", hidden, bias=True)
    if fields.flag("vision_use_head", default=True):
        weights += _siglip_head(hidden, width)
    return weights, hidden


def pixtral(fields: Fields) -> tuple[Weights, int]:
    """A Pixtral tower and its width. Defaults: PixtralVisionConfig."""
    hidden = fields.integer("hidden_size", default=1024)
    width = fields.integer("intermediate_size", default=4096)
    depth = fields.integer("num_hidden_layers", default=24, most=MAX_LAYERS)
    patch = fields.integer("patch_size", default=16, most=_MAX_IMAGE)
    layer: Weights = ()
    for name in ("q_proj", "k_proj", "v_proj"):
        layer += tower_linear(f"attention.{name}", (hidden, hidden), "column")
    layer += tower_linear("attention.o_proj", (hidden, hidden), "row")
    for name in ("gate_proj", "up_proj"):
        layer += tower_linear(f"feed_forward.{name}", (width, hidden), "column")
    layer += tower_linear("feed_forward.down_proj", (hidden, width), "row")
    layer += tower_norm("attention_norm", hidden) + tower_norm("ffn_norm", hidden)
    pixels = _channels(fields) * patch * patch
    return (
        tower_linear("patch_conv", (hidden, pixels), "replicated")
        + tower_norm("ln_pre", hidden)
        + _repeated(layer, depth),
        hidden,
    )


def tower_linear(
    name: str, shape: tuple[int, int], sharding: Sharding, *, bias: bool = False
) -> Weights:
    """One matrix of a tower or of its projector."""
    return linear(name, shape, component="vision", sharding=sharding, place="tower", bias=bias)


def tower_norm(name: str, size: int, *, bias: bool = False) -> Weights:
    """One normalization of a tower or of its projector."""
    return norm(name, size, component="vision", place="tower", bias=bias)


def _siglip_head(hidden: int, width: int) -> Weights:
    return (
        vector("head.probe", hidden, component="vision", place="tower")
        + tower_linear("head.attention.in_proj", (3 * hidden, hidden), "replicated", bias=True)
        + tower_linear("head.attention.out_proj", (hidden, hidden), "replicated", bias=True)
        + tower_norm("head.layernorm", hidden, bias=True)
        + tower_linear("head.mlp.fc1", (width, hidden), "column", bias=True)
        + tower_linear("head.mlp.fc2", (hidden, width), "row", bias=True)
    )


def _channels(fields: Fields) -> int:
    return fields.integer("num_channels", default=3, most=_MAX_CHANNELS)


def _repeated(layer: Weights, depth: int) -> tuple[Weight, ...]:
    # A tower is never cut into pipeline stages, so its layers are copies.
    changes = {"copies": depth, "active_copies": depth}
    return tuple(weight.model_copy(update=changes) for weight in layer)
