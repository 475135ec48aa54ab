"""MLA in its absorbed form, with a paged cache of latent vectors, and the room that vLLM keeps.

Source: vLLM 0.33.0, vllm/model_executor/layers/mla.py (order of projections) and
vllm/model_executor/layers/attention/mla_attention.py forward_impl (the profile run's buffer).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from kvplan.measure.attention import BLOCK, SEQUENCE, spans
from kvplan.measure.operands import Operands
from kvplan.measure.piece import Piece, normed
from kvplan.measure.roles import Projections
from kvplan.measure.store import Matrix
from kvplan.models.formats import ceil_div


@dataclass(frozen=True, slots=True)
class LatentHeads:
    """MLA on one rank.

    Attributes:
        heads: Query heads.
        latent, rope: Elements of the compressed vector without and with positions.
        nope, value: Elements of a head's query without positions, and of its value.
        context_rows: Tokens of context that room is made for.
    """

    heads: int
    latent: int
    rope: int
    nope: int
    value: int
    context_rows: int


@dataclass(frozen=True, slots=True)
class LatentParts:
    """MLA's matrices by what they do; ``query_up`` is None where queries have no low rank."""

    query: Matrix
    query_up: Matrix | None
    compress: Matrix
    expand: Matrix


def latent_parts(part: Projections, latent: int, rope: int) -> LatentParts:
    """Tells the projections apart by their widths."""
    compress = next(m for m in part.inward if m.rows == latent + rope)
    query = max((m for m in part.inward if m is not compress), key=lambda m: m.rows)
    expand = max((m for m in part.middle if m.columns == latent), key=lambda m: m.rows)
    ups = (m for m in part.middle if m is not expand and m.columns == query.rows)
    return LatentParts(query, max(ups, key=lambda m: m.rows, default=None), compress, expand)


def attend_latent(piece: Piece, parts: LatentParts, heads: LatentHeads, operands: Operands) -> Any:
    """One layer's MLA but the last projection: (tokens, heads × value). Ends the piece."""
    fused = operands.project(piece.take(), (parts.query, parts.compress))
    tokens = fused.shape[0]
    queries = fused[:, : parts.query.rows]
    if parts.query_up is not None:
        queries = operands.project(normed(queries), (parts.query_up,))
    compressed = fused[:, parts.query.rows :]
    latent = normed(compressed[:, : heads.latent])
    positions = compressed[:, heads.latent :]
    piece.end()
    output = operands.empty(tokens, heads.heads, heads.value)
    room = operands.empty(heads.context_rows, heads.heads, heads.nope + heads.value)
    del room
    expand = operands.of(parts.expand).view(heads.heads, heads.nope + heads.value, heads.latent)
    up_keys, up_values = expand[:, : heads.nope], expand[:, heads.nope :]
    queries = queries.unflatten(1, (heads.heads, heads.nope + heads.rope))
    pages = _LatentPages(heads, operands)
    for first, last in spans(tokens):
        held = pages.write_and_read(latent[first:last], positions[first:last])
        wide = operands.empty(heads.heads, last - first, heads.latent + heads.rope)
        mine = queries[first:last].transpose(0, 1)
        torch.bmm(mine[..., : heads.nope], up_keys, out=wide[..., : heads.latent])
        wide[..., heads.latent :] = mine[..., heads.nope :]
        mixed = _softmax(wide, held, heads)
        output[first:last] = torch.bmm(mixed, up_values.transpose(1, 2)).transpose(0, 1)
    return output.flatten(1)


def _softmax(queries: Any, held: Any, heads: LatentHeads) -> Any:
    """Every head reads the same vectors: (heads, tokens, latent)."""
    keys = held[None, None]
    return scaled_dot_product_attention(
        queries[None], keys, keys[..., : heads.latent], is_causal=True, enable_gqa=True
    )[0]


class _LatentPages:
    """Pages for one request, used again by the next one."""

    def __init__(self, heads: LatentHeads, operands: Operands) -> None:
        blocks = ceil_div(SEQUENCE, BLOCK)
        self._pages = operands.empty(blocks, BLOCK, heads.latent + heads.rope)
        table = torch.arange(blocks, device=operands.device).flip(0)
        offsets = torch.arange(BLOCK, device=operands.device)
        self._slots = (table[:, None] * BLOCK + offsets).flatten()
        self._latent = heads.latent

    def write_and_read(self, latent: Any, positions: Any) -> Any:
        """Writes a request's vectors to its slots and gathers them again, in order."""
        slots = self._slots[: latent.shape[0]]
        flat = self._pages.flatten(0, 1)
        flat[:, : self._latent].index_copy_(0, slots, latent)
        flat[:, self._latent :].index_copy_(0, slots, positions)
        return flat.index_select(0, slots)
