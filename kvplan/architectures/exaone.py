"""EXAONE 3, EXAONE 4 and K-EXAONE."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, attention, gated_mlp, layer_norms, qk_norms
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.layers import (
    FULL,
    read_layer_types,
    read_pattern,
    read_window,
    same_layers,
    typed_layers,
)
from kvplan.architectures.mtp import mtp_weights, read_modules
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.architectures.sparse import Sparse, dense_and_sparse, listed_sparse
from kvplan.models.spec import Layer

_DRAFT_NORMS = ("pre_fc_norm_hidden", "pre_fc_norm_embedding", "norm")
_EXAONE3 = tuple(f"attn.attention.{part}_proj" for part in ("q", "k", "v"))


def exaone(fields: Fields) -> Anatomy:
    """EXAONE 3 and 3.5: Llama with names of its own."""
    shape = read_shape(fields, kv_heads=8, layer_names=("num_layers", "num_hidden_layers"))
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", default=False)
    q, k, v = _EXAONE3
    return decoder(
        shape,
        attention(shape, qkv=(q, k, v), out="attn.attention.out_proj", qkv_bias=bias, out_bias=bias)
        + gated_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.c_fc_0", "mlp.c_fc_1", "mlp.c_proj"),
            bias=fields.flag("mlp_bias", default=False),
        )
        + layer_norms(shape, ("ln_1", "ln_2")),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(embed="wte", norm="ln_f"),
    )


def exaone4(fields: Fields) -> Anatomy:
    """EXAONE 4 and the text part of 4.5: three windowed layers, then a full one, or all full."""
    shape = read_shape(fields, kv_heads=32)
    intermediate = fields.integer("intermediate_size")
    body = (
        attention(shape)
        + qk_norms(shape, (shape.head_dim, shape.head_dim))
        + gated_mlp(shape.hidden, intermediate, layers=shape.every)
        + layer_norms(shape, ("post_attention_layernorm", "post_feedforward_layernorm"))
    )
    # 4.5's module reads the decoder's embedding and head: vLLM v0.33.0
    # vllm/model_executor/models/exaone4_5_mtp.py.
    modules = read_modules(fields, shape)
    return decoder(
        shape,
        body + mtp_weights(shape, body, modules, own_ends=False),
        layers=_layers(fields, shape),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )


def exaone_moe(fields: Fields) -> Anatomy:
    """K-EXAONE: EXAONE 4's attention, experts behind the first layers."""
    shape = read_shape(fields, kv_heads=32)
    sparse = _sparse(fields, shape)
    body = (
        attention(shape)
        + qk_norms(shape, (shape.head_dim, shape.head_dim))
        + dense_and_sparse(shape, sparse)
        + layer_norms(shape)
    )
    return decoder(
        shape,
        body + _drafts(fields, shape, sparse.dense_width),
        layers=_layers(fields, shape),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )


def _drafts(fields: Fields, shape: DecoderShape, width: int) -> Weights:
    """Modules with a dense feed-forward, which read the decoder's embedding and head.

    vLLM v0.33.0 vllm/model_executor/models/exaone_moe_mtp.py.
    """
    last = (shape.layers - 1,)
    body = (
        attention(shape, layers=last)
        + qk_norms(shape, (shape.head_dim, shape.head_dim), layers=last)
        + gated_mlp(shape.hidden, width, layers=last)
        + layer_norms(shape)
    )
    return mtp_weights(
        shape,
        body,
        read_modules(fields, shape),
        own_ends=False,
        norms=_DRAFT_NORMS,
        projection="fc",
    )


def _sparse(fields: Fields, shape: DecoderShape) -> Sparse:
    layers = listed_sparse(fields, shape)
    if layers is None:
        first = fields.integer("first_k_dense_replace", default=1, least=0, most=MAX_LAYERS)
        layers = shape.every[first:]
    count = fields.integer("num_experts", default=64, most=MAX_EXPERTS)
    width = fields.integer("moe_intermediate_size", default=1024)
    shared = fields.integer("num_shared_experts", default=1, least=0, most=MAX_EXPERTS)
    return Sparse(
        dense_layers=tuple(sorted(set(shape.every) - set(layers))),
        sparse_layers=layers,
        dense_width=fields.integer("intermediate_size"),
        experts=count,
        active=fields.integer("num_experts_per_tok", default=8, most=count),
        expert_width=width,
        shared_width=width * shared,
    )


def _layers(fields: Fields, shape: DecoderShape) -> tuple[Layer, ...]:
    # A window that is null in the file is off, and the pattern with it.
    window = read_window(fields, default=4096)
    if window is None:
        types = read_layer_types(fields, shape.layers) or (FULL,) * shape.layers
    else:
        types = read_pattern(fields, shape.layers, default=4)
    return typed_layers(fields, shape, types, window=window)
