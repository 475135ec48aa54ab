"""Qwen 1 (qwen)."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import attention, gated_mlp, layer_norms
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape
from kvplan.architectures.towers.qwen_vl import qwen_vl
from kvplan.errors import NotModelledError


def qwen_v1(fields: Fields) -> Anatomy:
    """Qwen 1.8B to 72B and Qwen-VL: all heads of their own, a bias on query, key and value only."""
    if fields.has("audio"):
        raise NotModelledError(
            "Qwen with a tower (`audio`) is not modelled.",
            hint="Plan the text model that it was made from.",
        )
    visual = fields.section("visual")
    shape = _shape(fields)
    # The file counts gate and up together.
    intermediate = max(1, fields.integer("intermediate_size", "ffn_hidden_size") // 2)
    bias = not fields.flag("no_bias", default=True)
    return decoder(
        shape,
        (qwen_vl(visual) if visual else ())
        + attention(shape, qkv="attn.c_attn", out="attn.c_proj", qkv_bias=True, out_bias=bias)
        + gated_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.w2", "mlp.w1", "mlp.c_proj"),
            bias=bias,
        )
        + layer_norms(shape, ("ln_1", "ln_2")),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(embed="wte", norm="ln_f"),
    )


def _shape(fields: Fields) -> DecoderShape:
    # The first files of the class name their sizes as GPT-2 does.
    heads = fields.integer("num_attention_heads", "n_head")
    return DecoderShape(
        layers=fields.integer("num_hidden_layers", "n_layer", most=MAX_LAYERS),
        hidden=fields.integer("hidden_size", "n_embd"),
        heads=heads,
        kv_heads=heads,
        head_dim=fields.integer("kv_channels", default=128),
        vocab=fields.integer("vocab_size"),
    )
