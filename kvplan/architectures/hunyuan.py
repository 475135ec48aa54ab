"""Hunyuan dense and MoE (A13B, Large), HY 3."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    gated_mlp,
    layer_norms,
    qk_norms,
)
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.mtp import mtp_weights, read_modules
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.architectures.sparse import Sparse, dense_and_sparse, listed_sparse
from kvplan.errors import NotModelledError
from kvplan.models.caches import SharedCache
from kvplan.models.spec import Layer

_QK_NORMS = ("self_attn.query_layernorm", "self_attn.key_layernorm")
_DRAFT_NORMS = ("enorm", "hnorm", "final_layernorm")
_SHARED = tuple(f"mlp.shared_mlp.{part}_proj" for part in ("gate", "up", "down"))


def hunyuan_dense(fields: Fields) -> Anatomy:
    """Hunyuan 0.5B to 7B."""
    shape = _shape(fields)
    intermediate = fields.integer("intermediate_size")
    factor = _share_factor(fields)
    return decoder(
        shape,
        _attention(fields, shape, factor)
        + gated_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            bias=fields.flag("mlp_bias", default=False),
        )
        + layer_norms(shape),
        layers=_layers(shape, factor),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )


def hunyuan_moe(fields: Fields) -> Anatomy:
    """Hunyuan A13B and Large: experts in every layer beside a shared feed-forward."""
    shape = _shape(fields)
    sparse = _sparse(fields, shape)
    factor = _share_factor(fields)
    return decoder(
        shape,
        _attention(fields, shape, factor)
        + dense_and_sparse(shape, sparse, shared=_SHARED, gate="mlp.gate.wg")
        + layer_norms(shape),
        layers=_layers(shape, factor),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )


def hunyuan(fields: Fields) -> Anatomy:
    """The type of remote code, which covers both: a single expert is a dense model."""
    count = _one_for_all(fields, "num_experts", default=1)
    return hunyuan_moe(fields) if count > 1 else hunyuan_dense(fields)


def hy_v3(fields: Fields) -> Anatomy:
    """HY 3: experts behind the first layer, draft modules where the file states them."""
    shape = read_shape(fields, kv_heads=8, head_dim=128)
    sparse = _hy_v3_sparse(fields, shape)
    bias = fields.flag("attention_bias", default=False)
    body = (
        attention(shape, qkv_bias=bias, out_bias=bias)
        + qk_norms(shape, (shape.head_dim, shape.head_dim))
        + dense_and_sparse(
            shape,
            sparse,
            bias=fields.flag("mlp_bias", default=False),
            shared=_SHARED,
            gate="mlp.router.gate",
        )
        + layer_norms(shape)
    )
    return decoder(
        shape,
        # The modules read the decoder's embedding and head.
        body
        + mtp_weights(shape, body, read_modules(fields, shape), own_ends=False, norms=_DRAFT_NORMS),
        layers=same_layers(shape, window=None),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )


def _shape(fields: Fields) -> DecoderShape:
    shape = read_shape(fields)
    # Files of remote code name the head size differently: vllm-project/vllm@00f8d445
    # vllm/model_executor/models/hunyuan_v1.py HunYuanAttention.
    stated = fields.optional_integer("head_dim", "attention_head_dim")
    return shape if stated is None else shape.model_copy(update={"head_dim": stated})


def _share_factor(fields: Fields) -> int:
    """How many layers in a row read one cache; the factor counts only where it is switched on."""
    if fields.flag("use_mla", default=False):
        raise NotModelledError(
            "Hunyuan with latent attention (`use_mla`) is not modelled.",
            hint="Known are its grouped-query and cross-layer attention.",
        )
    if not fields.flag("use_cla", default=False):
        return 1
    return fields.integer("cla_share_factor", default=1, most=MAX_LAYERS)


def _attention(fields: Fields, shape: DecoderShape, factor: int) -> Weights:
    bias = fields.flag("attention_bias", default=False)
    own = shape.every[::factor]
    weights = attention(shape, qkv_bias=bias, out_bias=bias)
    weights = tuple(
        weight.model_copy(update={"layers": own}) if weight.sharding == "kv_heads" else weight
        for weight in weights
    )
    if fields.flag("use_qk_norm", default=True):
        weights += qk_norms(shape, (shape.head_dim, shape.head_dim), names=_QK_NORMS)
    return weights


def _layers(shape: DecoderShape, factor: int) -> tuple[Layer, ...]:
    full = same_layers(shape, window=None)
    return tuple(
        Layer(caches=(SharedCache(layer=layer - layer % factor),))
        if layer % factor
        else full[layer]
        for layer in shape.every
    )


def _sparse(fields: Fields, shape: DecoderShape) -> Sparse:
    count = _one_for_all(fields, "num_experts", default=1)
    dense_width = fields.integer("intermediate_size")
    shared = _one_for_all(fields, "num_shared_expert", default=1)
    return Sparse(
        dense_layers=(),
        sparse_layers=shape.every,
        dense_width=dense_width,
        experts=count,
        active=min(_one_for_all(fields, "moe_topk", "num_experts_per_tok", default=1), count),
        expert_width=_one_for_all(fields, "moe_intermediate_size", default=dense_width),
        shared_width=dense_width * shared if fields.flag("use_mixed_mlp_moe", default=True) else 0,
    )


def _one_for_all(fields: Fields, *names: str, default: int) -> int:
    """A number, or the one number that a list states for every layer.

    Raises:
        InputError: the value is neither.
        NotModelledError: the layers differ.
    """
    for name in names:
        if isinstance(fields.raw(name), list):
            stated = set(fields.integers(name, least=1, most=2**24) or ())
            if len(stated) == 1:
                return stated.pop()
            raise NotModelledError(
                f"Layers that differ in `{name}` are not modelled for this family.",
                hint="Known are lists that repeat one number.",
            )
    return fields.integer(*names, default=default)


def _hy_v3_sparse(fields: Fields, shape: DecoderShape) -> Sparse:
    layers = listed_sparse(fields, shape)
    if layers is None:
        first = fields.integer("first_k_dense_replace", default=1, least=0, most=MAX_LAYERS)
        layers = shape.every[first:]
    count = fields.integer("num_experts", default=192, most=MAX_EXPERTS)
    # vLLM's name of the width: v0.33.0 vllm/model_executor/models/hy_v3.py HYV3MoEFused.
    width = fields.integer("moe_intermediate_size", "expert_hidden_dim", default=1536)
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
