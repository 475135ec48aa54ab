"""MiniMax M3: grouped-query attention whose later layers read only blocks that an index picks."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import Weights, attention, layer_norms, linear, norm, qk_norms
from kvplan.architectures.fields import MAX_EXPERTS, Fields
from kvplan.architectures.recurrent import full_cache, read_kinds, where
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.architectures.sparse import Sparse, dense_and_sparse, listed_sparse
from kvplan.models.caches import IndexerCache
from kvplan.models.formats import DTYPE_BYTES, PLAIN
from kvplan.models.spec import Layer

_FULL, _PICKED = "full_attention", "minimax_m3_sparse"
_MOE = "block_sparse_moe"
_EXPERTS = tuple(f"{_MOE}.experts.{part}" for part in ("w1", "w3", "w2"))
_SHARED = tuple(f"{_MOE}.shared_experts.{part}_proj" for part in ("gate", "up", "down"))
_MOST_HEADS = 65_536


class Index(BaseModel):
    """Sizes of the index: query heads, elements of a head, and the layers that have it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    heads: int
    head_dim: int
    layers: tuple[int, ...]


def minimax_m3(fields: Fields) -> Anatomy:
    """Keys and values are all kept; a picking layer keeps one 16-bit index key a token too."""
    shape = read_shape(fields, kv_heads=4, head_dim=128)
    index = _index(fields, shape)
    sparse = _sparse(fields, shape)
    body = attention(shape) + qk_norms(shape, (shape.head_dim, shape.head_dim))
    body += _index_weights(shape, index) + layer_norms(shape)
    body += _experts(shape, sparse)
    return decoder(
        shape,
        # Published files state modules for multi-token prediction, and hold none.
        body,
        layers=_layers(shape, index),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=sparse.experts if sparse.sparse_layers else 0,
        experts_per_token=sparse.active if sparse.sparse_layers else 0,
    )


def _layers(shape: DecoderShape, index: Index) -> tuple[Layer, ...]:
    """The index keys stay in 16 bits: vLLM v0.33.0 vllm/models/minimax_m3/common/indexer.py."""
    keys = IndexerCache(
        head_dim=index.head_dim, scale_block=None, element_bytes=DTYPE_BYTES["bfloat16"]
    )
    full, picked = full_cache(shape), set(index.layers)
    plain, picking = Layer(caches=(full,)), Layer(caches=(full, keys))
    return tuple(picking if layer in picked else plain for layer in shape.every)


def _index(fields: Fields, shape: DecoderShape) -> Index:
    """Flat fields as transformers writes them, or a part of their own as published files have."""
    stated = fields.section("sparse_attention_config")
    kinds = read_kinds(fields, "layer_types", shape.layers, {_FULL: _FULL, _PICKED: _PICKED})
    if kinds is None and stated is not None:
        kinds = _by_frequency(stated, shape.layers)
    part = stated or fields
    return Index(
        heads=part.integer("sparse_num_index_heads", "index_n_heads", default=4, most=_MOST_HEADS),
        head_dim=part.integer("sparse_index_dim", "index_head_dim", default=128),
        layers=where(kinds, _PICKED) if kinds else (),
    )


def _by_frequency(stated: Fields, layers: int) -> tuple[str, ...] | None:
    flags = stated.integers("sparse_attention_freq", least=0, most=1)
    if flags is None:
        return None
    if len(flags) != layers:
        raise stated.conflict(f"`sparse_attention_freq` lists {len(flags)} layers of {layers}.")
    return tuple(_PICKED if flag else _FULL for flag in flags)


def _index_weights(shape: DecoderShape, index: Index) -> Weights:
    """Queries split like KV heads, one key on every rank.

    vLLM v0.33.0 vllm/models/minimax_m3/nvidia/model.py MiniMaxM3SparseAttention.
    """
    query = linear(
        "self_attn.index_q_proj",
        (index.heads * index.head_dim, shape.hidden),
        component="attention",
        sharding="kv_heads",
        heads=index.heads,
        layers=index.layers,
    )
    key = linear(
        "self_attn.index_k_proj",
        (index.head_dim, shape.hidden),
        component="attention",
        sharding="replicated",
        layers=index.layers,
    )
    norms: Weights = ()
    for name in ("index_q_norm", "index_k_norm"):
        norms += norm(
            f"self_attn.{name}", index.head_dim, layers=index.layers, component="attention"
        )
    return query + key + norms


def _sparse(fields: Fields, shape: DecoderShape) -> Sparse:
    sparse = listed_sparse(fields, shape)
    if sparse is None:
        flags = fields.integers("moe_layer_freq", least=0, most=1) or (1,) * shape.layers
        if len(flags) != shape.layers:
            raise fields.conflict(f"`moe_layer_freq` lists {len(flags)} layers of {shape.layers}.")
        sparse = tuple(layer for layer, flag in enumerate(flags) if flag)
    count = fields.integer("num_local_experts", default=128, most=MAX_EXPERTS)
    shared = fields.integer("n_shared_experts", default=1, least=0, most=MAX_EXPERTS)
    return Sparse(
        dense_layers=tuple(sorted(set(shape.every) - set(sparse))),
        sparse_layers=sparse,
        dense_width=fields.integer("dense_intermediate_size", default=12_288),
        experts=count,
        active=fields.integer("num_experts_per_tok", default=4, most=count),
        expert_width=fields.integer("intermediate_size", default=3072),
        shared_width=shared * fields.integer("shared_intermediate_size", default=3072),
    )


def _experts(shape: DecoderShape, sparse: Sparse) -> Weights:
    weights = dense_and_sparse(shape, sparse, routed=_EXPERTS, shared=_SHARED, gate=f"{_MOE}.gate")
    # The router is kept in float32.
    return tuple(
        weight.model_copy(update={"format": PLAIN["float32"]})
        if weight.component == "router"
        else weight
        for weight in weights
    )
