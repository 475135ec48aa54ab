"""DBRX."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, attention, experts, layer_norms, router
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, checked, split_evenly

_EXPERT = ("ffn.experts.mlp.w1", "ffn.experts.mlp.v1", "ffn.experts.mlp.w2")
_PREFIX = "norm_attn_norm"


def dbrx(fields: Fields) -> Anatomy:
    """DBRX: grouped-query attention, experts in every layer, scale-only normalizations."""
    shape = _shape(fields)
    feed = fields.section("ffn_config") or fields
    width = feed.integer("ffn_hidden_size", default=3584)
    count = feed.integer("moe_num_experts", default=4, most=MAX_EXPERTS)
    active = feed.integer("moe_top_k", default=1, most=count)
    every, hidden = shape.every, shape.hidden
    body: Weights = (
        attention(shape, qkv=f"{_PREFIX}.attn.Wqkv", out=f"{_PREFIX}.attn.out_proj")
        + experts(hidden, width, count=count, active=active, layers=every, names=_EXPERT)
        + router(hidden, count, layers=every, name="ffn.router.layer")
        + layer_norms(shape, (f"{_PREFIX}.norm_1", f"{_PREFIX}.norm_2"))
    )
    return decoder(
        shape,
        body,
        layers=same_layers(shape, window=None),
        intermediate=width,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(embed="wte", norm="norm_f"),
        experts=count,
        experts_per_token=active,
    )


def _shape(fields: Fields) -> DecoderShape:
    hidden = fields.integer("d_model", "hidden_size")
    heads = fields.integer("n_heads", "num_attention_heads")
    rules = fields.section("attn_config") or fields
    shape = DecoderShape(
        layers=fields.integer("n_layers", "num_hidden_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=rules.integer("kv_n_heads", default=1),
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )
    return checked(fields, shape)
