"""GLM 4.5, 4.6 and their Air variants."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, layer_norms, qk_norms
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.mtp import mtp_weights, read_modules
from kvplan.architectures.shapes import read_shape
from kvplan.architectures.sparse import dense_and_sparse, read_sparse

_DEFAULTS: Mapping[str, int] = MappingProxyType(
    {
        "n_routed_experts": 128,
        "n_shared_experts": 1,
        "moe_intermediate_size": 1408,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 1,
    }
)


def glm4_moe(fields: Fields) -> Anatomy:
    """Grouped-query attention; dense layers first, then routed experts and a shared one."""
    shape = read_shape(fields, kv_heads=8)
    sparse = read_sparse(fields, shape, _DEFAULTS)
    body = attention(shape, qkv_bias=fields.flag("attention_bias", default=False))
    if fields.flag("use_qk_norm", default=False):
        body += qk_norms(shape, (shape.head_dim, shape.head_dim))
    body += dense_and_sparse(shape, sparse) + layer_norms(shape)
    return decoder(
        shape,
        body + mtp_weights(shape, body, read_modules(fields, shape)),
        layers=same_layers(shape, window=None),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )
