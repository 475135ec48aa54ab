"""ERNIE 4.5 with experts."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import Weights, attention, gated_mlp, layer_norms, vector
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.mtp import mtp_weights, read_modules
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.architectures.sparse import Sparse, dense_and_sparse


def ernie4_5_moe(fields: Fields) -> Anatomy:
    """ERNIE 4.5 21B and 300B: one flag for all biases, the head's too."""
    shape = read_shape(fields, kv_heads=4)
    sparse = _sparse(fields, shape)
    bias = fields.flag("use_bias", default=False)
    body = (
        attention(shape, qkv_bias=bias, out_bias=bias)
        + dense_and_sparse(shape, sparse, bias=bias)
        # Unlike the routing biases of other classes, this one is a parameter.
        + vector(
            "mlp.moe_statics.e_score_correction_bias",
            sparse.experts,
            component="router",
            layers=sparse.sparse_layers,
        )
        + layer_norms(shape)
    )
    if bias:
        body += vector(
            "lm_head.bias", shape.vocab, component="lm_head", place="head", sharding="vocab"
        )
    return decoder(
        shape,
        body + _drafts(fields, shape, sparse.dense_width),
        layers=same_layers(shape, window=None),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=True),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )


def _drafts(fields: Fields, shape: DecoderShape, width: int) -> Weights:
    """Modules with a dense feed-forward: vLLM v0.33.0 vllm/model_executor/models/ernie_mtp.py."""
    last = (shape.layers - 1,)
    body = (
        attention(shape, layers=last)
        + gated_mlp(shape.hidden, width, layers=last)
        + layer_norms(shape)
    )
    return mtp_weights(
        shape,
        body,
        read_modules(fields, shape),
        own_ends=False,
        norms=("mtp_emb_norm", "mtp_hidden_norm"),
        projection="mtp_linear_proj",
    )


def _sparse(fields: Fields, shape: DecoderShape) -> Sparse:
    first = fields.integer("moe_layer_start_index", default=1, least=0, most=MAX_LAYERS)
    last = fields.integer("moe_layer_end_index", default=-1, least=-1, most=MAX_LAYERS)
    step = fields.integer("moe_layer_interval", default=1, most=MAX_LAYERS)
    end = shape.layers - 1 if last == -1 else last
    layers = tuple(
        layer for layer in shape.every if first <= layer <= end and (layer + 1) % step == 0
    )
    count = fields.integer("moe_num_experts", "num_experts", default=64, most=MAX_EXPERTS)
    width = fields.integer("moe_intermediate_size", default=1536)
    shared = fields.integer("moe_num_shared_experts", default=2, least=0, most=MAX_EXPERTS)
    return Sparse(
        dense_layers=tuple(sorted(set(shape.every) - set(layers))),
        sparse_layers=layers,
        dense_width=fields.integer("intermediate_size"),
        experts=count,
        active=fields.integer("moe_k", "num_experts_per_tok", default=6, most=count),
        expert_width=width,
        shared_width=width * shared,
    )
