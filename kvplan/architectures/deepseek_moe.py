"""DeepSeek MoE, the first of its line: plain attention before many experts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, layer_norms
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import read_shape
from kvplan.architectures.sparse import dense_and_sparse, read_sparse

_NONE: Mapping[str, int] = MappingProxyType({"first_k_dense_replace": 0})


def deepseek(fields: Fields) -> Anatomy:
    """DeepSeek MoE 16B, and the text part of DeepSeek-VL2 where it turns latent attention off.

    Its class is remote code, so every size has to be stated.
    Source: vLLM v0.33.0 vllm/model_executor/models/deepseek_v2.py DeepseekAttention.
    """
    shape = read_shape(fields)
    sparse = read_sparse(fields, shape, _NONE)
    bias = fields.flag("attention_bias", default=False)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias) + dense_and_sparse(shape, sparse) + layer_norms(shape),
        layers=same_layers(shape, window=None),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )
