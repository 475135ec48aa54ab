"""Llama 4's tower.

Shapes: transformers v5.24.0 src/transformers/models/llama4/modeling_llama4.py.
"""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.towers.parts import (
    LayerForm,
    layers,
    read_patches,
    read_pixels,
    read_sizes,
    tower_linear,
    tower_norm,
    tower_table,
    tower_vector,
)

_FORM = LayerForm(
    out="self_attn.o_proj",
    norms=("input_layernorm", "post_attention_layernorm"),
)


def llama4_vit(fields: Fields) -> tuple[Weights, int]:
    """The tower with its adapter, and the width it puts out. Defaults: Llama4VisionConfig."""
    sizes = read_sizes(fields, hidden=768, width=5632, depth=34)
    hidden = sizes.hidden
    positions = read_patches(fields, image=448, patch=14) + 1
    inner = fields.integer("projector_input_dim", default=4096)
    out = fields.integer("projector_output_dim", default=4096)
    weights = (
        tower_vector("class_embedding", hidden)
        + tower_table("positional_embedding_vlm", (positions, hidden))
        + tower_linear("patch_embedding.linear", (hidden, read_pixels(fields, patch=14)))
        + tower_norm("layernorm_pre", hidden, bias=True)
        + layers(sizes, _FORM)
        + tower_norm("layernorm_post", hidden, bias=True)
        # The adapter reads what pixel shuffling has put side by side.
        + tower_linear("vision_adapter.mlp.fc1", (inner, sizes.width), "column")
        + tower_linear("vision_adapter.mlp.fc2", (out, inner), "row")
    )
    return weights, fields.integer("vision_output_dim", default=out)
