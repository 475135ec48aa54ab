"""Baichuan 1 and 2, XVERSE, Orion: Llama with small differences."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, attention, gated_mlp, layer_norms
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, read_shape, split_evenly


def baichuan(fields: Fields) -> Anatomy:
    """Baichuan 7B and 13B: all heads of their own, one fused projection."""
    hidden = fields.integer("hidden_size")
    heads = fields.integer("num_attention_heads")
    shape = DecoderShape(
        layers=fields.integer("num_hidden_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )
    return _assemble(fields, shape, attention(shape, qkv="self_attn.W_pack"), shifts=False)


def xverse(fields: Fields) -> Anatomy:
    """XVERSE 7B to 65B."""
    shape = read_shape(fields)
    bias = fields.flag("bias", default=False)
    return _assemble(fields, shape, attention(shape, qkv_bias=bias, out_bias=bias), shifts=False)


def orion(fields: Fields) -> Anatomy:
    """Orion 14B: shifting normalizations."""
    shape = read_shape(fields)
    return _assemble(fields, shape, attention(shape), shifts=True)


def _assemble(
    fields: Fields, shape: DecoderShape, projections: Weights, *, shifts: bool
) -> Anatomy:
    intermediate = fields.integer("intermediate_size")
    return decoder(
        shape,
        projections
        + gated_mlp(shape.hidden, intermediate, layers=shape.every)
        + layer_norms(shape, bias=shifts),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(norm_bias=shifts),
    )
