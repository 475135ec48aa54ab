"""Bytes of SGLang's pools, as its pool classes allocate them.

Every pool of tokens has one page more than it hands out, which takes the writes of padded
batches. Source: SGLang 0.5.23, sglang/srt/mem_cache/memory_pool.py.
"""

from __future__ import annotations

from kvplan.engines.sglang.kv_dtypes import Stored
from kvplan.models.formats import ceil_div

INT32 = 4
# A quantized key of the indexer has one fp32 scale for so many elements (DSATokenToKVPool).
INDEX_SCALE_BLOCK = 128
_SCALE_BYTES = 4
_ROPE_BYTES = 2


def headed_bytes(heads: int, head_dim: int, head_dim_v: int, stored: Stored) -> int:
    """Bytes of one token's keys and values in one layer on one rank (MHATokenToKVPool)."""
    elements = heads * (head_dim + head_dim_v)
    scales = elements // stored.scale_block if stored.scale_block else 0
    return elements * stored.element_bytes + scales


def latent_bytes(latent_dim: int, rope_dim: int, stored: Stored) -> int:
    """Bytes of one token's latent vector in one layer; ranks do not split it (MLATokenToKVPool)."""
    return (latent_dim + rope_dim) * stored.element_bytes


def sparse_latent_bytes(latent_dim: int, rope_dim: int, stored: Stored, *, raw: bool) -> int:
    """The same under sparse attention (DSATokenToKVPool).

    In fp8 the row carries an fp32 scale for every 128 elements and rotary positions in 16 bits,
    unless the kernels read it ``raw`` (trtllm's).
    """
    if raw or not stored.is_fp8:
        return latent_bytes(latent_dim, rope_dim, stored)
    scales = latent_dim // INDEX_SCALE_BLOCK * _SCALE_BYTES
    return latent_dim + scales + rope_dim * _ROPE_BYTES


def index_bytes(head_dim: int) -> int:
    """Bytes of one token's indexer key in one layer: 8 bits an element, with scales."""
    return head_dim + head_dim // INDEX_SCALE_BLOCK * _SCALE_BYTES


def pool_bytes(tokens: int, page_size: int, token_bytes: int) -> int:
    """Bytes of a pool of ``tokens``: whole pages, and one more."""
    return (ceil_div(tokens, page_size) + 1) * page_size * token_bytes


def state_pool_bytes(slots: int, slot_bytes: int) -> int:
    """Bytes of a pool of recurrent states: one slot more than requests get (MambaPool)."""
    return (slots + 1) * slot_bytes


def request_table_bytes(requests: int, row_tokens: int, *, padding: int) -> int:
    """Bytes of the table that maps a request to its tokens (ReqToTokenPool)."""
    return (requests + padding) * row_tokens * INT32
