"""Molmo: a Qwen-like decoder behind CLIP, pooled two by two.

The file does not describe the tower; its sizes are constants in vLLM v0.33.0
vllm/model_executor/models/molmo.py (VisionBackboneConfig, ADDITIONAL_VOCAB_SIZE).
"""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    gated_mlp,
    layer_norms,
    linear,
    qk_norms,
)
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.architectures.towers.parts import (
    LayerForm,
    TowerSizes,
    layers,
    tower_linear,
    tower_norm,
    tower_vector,
)

_ENDS = Ends(embed="wte.embedding", norm="ln_f", head="ff_out")
_ADDED = 128  # rows of the embedding that the head does not have
_TOWER = TowerSizes(hidden=1024, width=4096, depth=23)
_CHOSEN = 2  # layers of the tower side by side
_FORM = LayerForm(
    qkv=("attention.wq", "attention.wk", "attention.wv"),
    out="attention.wo",
    ups=("feed_forward.w1",),
    down="feed_forward.w2",
    norms=("attention_norm", "ffn_norm"),
)


def molmo(fields: Fields) -> Anatomy:
    """Molmo 7B and 72B."""
    shape = read_shape(fields)
    rows = fields.optional_integer("embedding_size") or shape.vocab
    shape = shape.model_copy(update={"vocab": rows})
    # Gate and up together.
    width = fields.integer("intermediate_size", least=2) // 2
    bias = fields.flag("qkv_bias", default=False)
    body = _vision(shape, width) + _added_rows(shape) + _attention(fields, shape, bias=bias)
    return decoder(
        shape,
        body
        + gated_mlp(shape.hidden, width, layers=shape.every, names=("ff_proj", "ff_out"))
        + layer_norms(shape, ("attn_norm", "ff_norm")),
        layers=same_layers(shape, window=None),
        intermediate=width,
        tied=fields.flag("weight_tying", "tie_word_embeddings", default=False),
        ends=_ENDS,
    )


def _attention(fields: Fields, shape: DecoderShape, *, bias: bool) -> Weights:
    weights = attention(shape, qkv="att_proj", out="attn_out", qkv_bias=bias)
    if fields.flag("attention_layer_norm", default=False):
        sizes = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim)
        weights += qk_norms(shape, sizes, names=("q_norm", "k_norm"))
    return weights


def _added_rows(shape: DecoderShape) -> Weights:
    return linear(
        "wte.new_embedding",
        (_ADDED, shape.hidden),
        component="embedding",
        sharding="replicated",
        place="embedding",
    )


def _vision(shape: DecoderShape, width: int) -> Weights:
    hidden = _TOWER.hidden
    pooled: Weights = ()
    for name in ("wq", "wk", "wv"):
        size = (hidden, _CHOSEN * hidden)
        pooled += tower_linear(f"image_pooling_2d.{name}", size, "column", bias=True)
    pooled += tower_linear("image_pooling_2d.wo", (hidden, hidden), "row", bias=True)
    for name in ("w1", "w3"):
        pooled += tower_linear(f"image_projector.{name}", (width, hidden), "column")
    return (
        tower_vector("class_embedding", hidden)
        + tower_linear("positional_embedding", (577, hidden))
        + tower_linear("patch_embedding", (hidden, 3 * 14 * 14))
        + tower_norm("pre_ln", hidden, bias=True)
        + layers(_TOWER, _FORM)
        + pooled
        + tower_linear("image_projector.w2", (shape.hidden, width), "row")
        + tower_linear("pad_embed", (2, _CHOSEN * hidden))
    )
