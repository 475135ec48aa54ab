"""Attention with a paged cache: heads with keys and values, and MLA in its absorbed form.

Requests are `SEQUENCE` tokens long, so that what a kernel of ours needs for itself stays small
beside what the layer hands on; pages are written and read through a block table in mixed order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from kvplan.measure.operands import Operands
from kvplan.measure.piece import Piece
from kvplan.measure.roles import Projections
from kvplan.models.formats import ceil_div

SEQUENCE = 128
BLOCK = 16


@dataclass(frozen=True, slots=True)
class Heads:
    """Attention on one rank.

    Attributes:
        queries, keys: Query heads and KV heads.
        key_dim, value_dim: Elements of a key and of a value.
    """

    queries: int
    keys: int
    key_dim: int
    value_dim: int

    @property
    def query_width(self) -> int:
        """Elements of all queries of a token."""
        return self.queries * self.key_dim

    @property
    def output_width(self) -> int:
        """Elements that attention gives a token."""
        return self.queries * self.value_dim


def attend(piece: Piece, part: Projections, heads: Heads, operands: Operands) -> Any:
    """One layer's attention, projections included but the last: (tokens, output width).

    Takes the (tokens, hidden) input of the piece that ends here, and ends it.
    """
    fused = operands.project(piece.take(), part.inward)
    tokens = fused.shape[0]
    keys_width, values_width = heads.keys * heads.key_dim, heads.keys * heads.value_dim
    queries = operands.empty(tokens, heads.queries, heads.key_dim)
    keys = operands.empty(tokens, heads.keys, heads.key_dim)
    _turn(fused, 0, queries)
    _turn(fused, heads.query_width, keys)
    start = heads.query_width + keys_width
    values = fused[:, start : start + values_width]
    if values.shape[1] < values_width:  # the layer reads another one's cache
        values = torch.zeros_like(keys)[..., : heads.value_dim]
    values = values.unflatten(1, (heads.keys, heads.value_dim))
    piece.end()
    output = operands.empty(tokens, heads.queries, heads.value_dim)
    cache = _Pages(heads, operands)
    for first, last in spans(tokens):
        held = cache.write_and_read(keys[first:last], values[first:last])
        output[first:last] = _softmax(queries[first:last], *held)
    return output.flatten(1)


def spans(tokens: int, length: int = SEQUENCE) -> Iterator[tuple[int, int]]:
    """Consecutive ranges of at most ``length`` tokens."""
    for first in range(0, tokens, length):
        yield first, min(first + length, tokens)


def _turn(fused: Any, start: int, into: Any) -> None:
    """Rotary positions: halves of each head turned by the token's place, into a buffer."""
    width = into.shape[1] * into.shape[2]
    half = into.shape[2] // 2
    for first, last in spans(fused.shape[0]):
        vectors = fused[first:last, start : start + width]
        if vectors.shape[1] < width:
            into[first:last] = 0
            continue
        vectors = vectors.unflatten(1, into.shape[1:])
        into[first:last, :, :half] = vectors[..., half : 2 * half]
        into[first:last, :, half:] = vectors[..., : into.shape[2] - half]


class _Pages:
    """Pages for one request, used again by the next one."""

    def __init__(self, heads: Heads, operands: Operands) -> None:
        blocks = ceil_div(SEQUENCE, BLOCK)
        self._keys = operands.empty(blocks, BLOCK, heads.keys, heads.key_dim)
        self._values = operands.empty(blocks, BLOCK, heads.keys, heads.value_dim)
        table = torch.arange(blocks, device=operands.device).flip(0)
        offsets = torch.arange(BLOCK, device=operands.device)
        self._slots = (table[:, None] * BLOCK + offsets).flatten()

    def write_and_read(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Writes a request's keys and values to its slots and gathers them again, in order."""
        slots = self._slots[: keys.shape[0]]
        self._keys.flatten(0, 1).index_copy_(0, slots, keys)
        self._values.flatten(0, 1).index_copy_(0, slots, values)
        return (
            self._keys.flatten(0, 1).index_select(0, slots),
            self._values.flatten(0, 1).index_select(0, slots),
        )


def _softmax(queries: Any, keys: Any, values: Any) -> Any:
    """Causal attention of one request: (tokens, heads, dim) in and out."""
    groups = queries.shape[1] // keys.shape[1] or 1
    if queries.shape[1] != groups * keys.shape[1]:  # uneven groups: share the first head
        keys, values = keys[:, :1], values[:, :1]
    result = scaled_dot_product_attention(
        queries.transpose(0, 1)[None],
        keys.transpose(0, 1)[None].expand(1, -1, -1, -1),
        values.transpose(0, 1)[None],
        is_causal=True,
        enable_gqa=True,
    )
    return result[0].transpose(0, 1)
