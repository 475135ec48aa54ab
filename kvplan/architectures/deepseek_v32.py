"""Latent attention with a sparse indexer: DeepSeek V3.2, GLM 5."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import layer_norms
from kvplan.architectures.deepseek import Latent, latent_attention, latent_shape, read_latent
from kvplan.architectures.fields import Fields
from kvplan.architectures.indexer import (
    Indexer,
    indexed_layers,
    indexer_weights,
    read_indexer,
)
from kvplan.architectures.mtp import mtp_weights, read_modules
from kvplan.architectures.sparse import dense_and_sparse, read_sparse
from kvplan.models.caches import IndexerCache, LatentCache
from kvplan.models.spec import Layer

_V32: Mapping[str, int] = MappingProxyType(
    {
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "moe_intermediate_size": 2048,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "index_n_heads": 64,
    }
)
_GLM5: Mapping[str, int] = MappingProxyType(
    {
        "q_lora_rank": 2048,
        "qk_nope_head_dim": 192,
        "v_head_dim": 256,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "moe_intermediate_size": 2048,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "index_n_heads": 32,
    }
)


def deepseek_v32(fields: Fields) -> Anatomy:
    """DeepSeek V3.2: an indexer in every layer."""
    return _indexed(fields, _V32, own_ends=True)


def glm_moe_dsa(fields: Fields) -> Anatomy:
    """GLM 5, 5.1: an indexer in every layer; 5.2, 5.3: in the first three and each fourth."""
    # Their modules read the decoder's embedding and head: the totals that headers state are
    # 2 × 951,582,720 short of copies.
    return _indexed(fields, _GLM5, own_ends=False)


def _indexed(fields: Fields, defaults: Mapping[str, int], *, own_ends: bool) -> Anatomy:
    latent = read_latent(fields, defaults)
    if latent.query_rank is None:
        raise fields.conflict("The indexer reads the compressed query, but there is none.")
    shape = latent_shape(fields, latent)
    sparse = read_sparse(fields, shape, defaults)
    indexer, indexed = read_indexer(fields, defaults), indexed_layers(fields, shape.layers)
    rest = latent_attention(shape, latent) + layer_norms(shape)
    rest += dense_and_sparse(shape, sparse, bias=fields.flag("mlp_bias", default=False))
    # A draft module always has an indexer of its own: vLLM v0.33.0
    # vllm/models/deepseek_v32/attention.py.
    draft = rest + indexer_weights(shape, indexer, latent.query_rank, shape.every[-1:])
    return decoder(
        shape,
        rest
        + indexer_weights(shape, indexer, latent.query_rank, indexed)
        + mtp_weights(shape, draft, read_modules(fields, shape), own_ends=own_ends),
        layers=_layers(latent, indexer, indexed, shape.layers),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )


def _layers(
    latent: Latent, indexer: Indexer, indexed: tuple[int, ...], count: int
) -> tuple[Layer, ...]:
    # The indexer stands first: vLLM registers it before the attention it serves.
    cache = LatentCache(latent_dim=latent.latent, rope_dim=latent.rope)
    plain = Layer(caches=(cache,))
    sparse = Layer(caches=(IndexerCache(head_dim=indexer.head_dim), cache))
    chosen = set(indexed)
    return tuple(sparse if layer in chosen else plain for layer in range(count))
