"""What requests consist of, as far as blocks can tell: chains of chunks that prompts share.

Two prompts share blocks as far as they begin with the same tokens. A chunk is a stretch of tokens
that is shared whole or not at all: a system prompt, a turn of a conversation, one block of a
trace. Chunks hang in a tree, so that equal content at another place is another chunk, as vLLM's
hashes of blocks chain (vllm/v1/core/kv_cache_utils.py, hash_block_tokens).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator
from itertools import accumulate

from kvplan.planning.simulate.runs import Run
from kvplan.workloads.requests import Request

Piece = tuple[Hashable, int]
"""What a stretch of tokens is, and how many tokens it has."""


class Chunk:
    """A stretch of content.

    Attributes:
        end: Tokens from the start of the prompt to its end.
        after: What was seen to follow it.
        runs: By slot (a group of blocks in a tier), its resident blocks in order.
    """

    __slots__ = ("after", "end", "runs")

    def __init__(self, end: int) -> None:
        self.end: int = end
        self.after: dict[Piece, Chunk] = {}
        self.runs: dict[int, list[Run]] = {}


class Chain:
    """One request's content: prompt and output.

    Args:
        chunks: In order; the last one ends at or after the request's last token.
    """

    __slots__ = ("_ends", "chunks")

    def __init__(self, chunks: list[Chunk]) -> None:
        self.chunks: list[Chunk] = chunks
        self._ends: dict[int, list[int]] = {}

    def parts(self, low: int, high: int, block_tokens: int) -> Iterator[tuple[Chunk, int, int]]:
        """Blocks ``low`` to ``high`` by chunk: a block belongs to the chunk that it ends in."""
        ends = self.ends(block_tokens)
        index = bisect_right(ends, low)
        while low < high and index < len(ends):
            stop = min(high, ends[index])
            if stop > low:
                yield self.chunks[index], low, stop
                low = stop
            index += 1

    def ends(self, block_tokens: int) -> list[int]:
        """For each chunk, whole blocks up to its end."""
        found = self._ends.get(block_tokens)
        if found is None:
            found = [chunk.end // block_tokens for chunk in self.chunks]
            self._ends[block_tokens] = found
        return found


class Contents:
    """All content that a simulation has seen."""

    def __init__(self) -> None:
        self._root = Chunk(0)
        self._turns: dict[str, list[Piece]] = {}

    def chain(self, request: Request) -> Chain:
        """The chunks of one request; what nobody can share is a chunk of its own."""
        pieces = self._pieces(request)
        chunk, chunks = self._root, []
        for piece, end in zip(pieces, accumulate(tokens for _, tokens in pieces), strict=True):
            following = chunk.after.get(piece)
            if following is None:
                following = chunk.after[piece] = Chunk(end)
            chunk = following
            chunks.append(chunk)
        known = chunk.end
        if known < request.total_tokens:
            chunks.append(Chunk(request.total_tokens))
        return Chain(chunks)

    def _pieces(self, request: Request) -> list[Piece]:
        if request.blocks is not None:
            return _listed(request)
        pieces: list[Piece] = []
        if request.prefix is not None and request.prefix.tokens:
            pieces.append((("prefix", request.prefix.id), request.prefix.tokens))
        if request.session is None:
            return pieces
        earlier = self._turns.get(request.session, pieces)
        pieces = _within(earlier, request.prompt_tokens) if request.turn else pieces
        known = sum(tokens for _, tokens in pieces)
        own = (("turn", request.session, request.turn), request.total_tokens - known)
        pieces = [*pieces, own]
        self._turns[request.session] = pieces
        return pieces


def _listed(request: Request) -> list[Piece]:
    """The blocks that a trace lists, the last of them as long as the prompt has it."""
    blocks = request.blocks
    if blocks is None:
        return []
    pieces: list[Piece] = []
    left = request.prompt_tokens
    for block in blocks.ids:
        if left <= 0:
            break
        pieces.append((block, min(blocks.block_tokens, left)))
        left -= blocks.block_tokens
    return pieces


def _within(pieces: list[Piece], tokens: int) -> list[Piece]:
    """The first pieces that lie within so many tokens; an edited history ends the sharing."""
    kept: list[Piece] = []
    for piece in pieces:
        tokens -= piece[1]
        if tokens < 0:
            break
        kept.append(piece)
    return kept
