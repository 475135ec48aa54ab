"""StableLM."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, attention, gated_mlp, layer_norms, qk_norms
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, read_shape


def stablelm(fields: Fields) -> Anatomy:
    """StableLM 3B and 2: shifting normalizations, optional biases on query, key and value."""
    shape = read_shape(fields, kv_heads=32)
    intermediate = fields.integer("intermediate_size")
    return decoder(
        shape,
        attention(shape, qkv_bias=fields.flag("use_qkv_bias", default=False))
        + gated_mlp(shape.hidden, intermediate, layers=shape.every)
        + _norms(fields, shape),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(norm_bias=True),
    )


def _norms(fields: Fields, shape: DecoderShape) -> Weights:
    parallel = fields.flag("use_parallel_residual", default=False)
    names = ("input_layernorm",) if parallel else ("input_layernorm", "post_attention_layernorm")
    norms = layer_norms(shape, names, bias=True)
    if fields.flag("qk_layernorm", default=False):
        # One scale a head: transformers v5.24.0 modeling_stablelm.py StableLmLayerNormPerHead.
        sizes = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim)
        names = ("self_attn.q_layernorm", "self_attn.k_layernorm")
        norms += qk_norms(shape, sizes, names=names)
    return norms
