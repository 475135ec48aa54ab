"""The tower of the first Qwen-VL: OpenCLIP's bigG and a resampler of 256 tokens.

Shapes: vllm-project/vllm@020ecb3ab0 vllm/model_executor/models/qwen_vl.py, which keeps all but
the feed-forwards whole on every rank.
"""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.towers.parts import (
    MAX_IMAGE,
    LayerForm,
    TowerSizes,
    layers,
    tower_linear,
    tower_norm,
    tower_table,
    tower_vector,
)

_FORM = LayerForm(
    qkv=("attn.in_proj",),
    out="attn.out_proj",
    ups=("mlp.c_fc",),
    down="mlp.c_proj",
    norms=("ln_1", "ln_2"),
)
_COLOURS = 3
_POSITIONS = 256
_MAX_RATIO = 64.0


def qwen_vl(fields: Fields) -> Weights:
    """The tower that the part ``visual`` describes."""
    width = fields.integer("width")
    output = fields.integer("output_dim", default=512)
    patch = fields.integer("patch_size", most=MAX_IMAGE)
    ratio = min(fields.number("mlp_ratio") or 4.0, _MAX_RATIO)
    sizes = TowerSizes(
        hidden=width,
        width=int(width * ratio) or 1,
        depth=fields.integer("layers", most=MAX_LAYERS),
    )
    return (
        tower_linear("conv1", (width, _COLOURS * patch * patch))
        + tower_table("positional_embedding", (_POSITIONS, width))
        + tower_norm("ln_pre", width, bias=True)
        + layers(sizes, _FORM)
        + _pooling(fields, output, width)
        + tower_norm("ln_post", output, bias=True)
        + tower_table("proj", (output, output))
    )


def _pooling(fields: Fields, output: int, width: int) -> Weights:
    queries = fields.integer("n_queries", default=256)
    weights = tower_table("attn_pool.pos_embed", (queries, output))
    weights += tower_table("attn_pool.query", (queries, output))
    weights += tower_linear("attn_pool.kv_proj", (output, width))
    weights += tower_table("attn_pool.attn.in_proj_weight", (3 * output, output))
    weights += tower_vector("attn_pool.attn.in_proj_bias", 3 * output)
    weights += tower_linear("attn_pool.attn.out_proj", (output, output), bias=True)
    for name in ("ln_q", "ln_kv"):
        weights += tower_norm(f"attn_pool.{name}", output, bias=True)
    return weights
