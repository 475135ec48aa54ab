"""Prefixes that many requests share: their blocks are held once, not once a request.

Only whole blocks can be shared: the block in which the prefix ends also holds the first tokens
that differ, so every request has its own. Source: vLLM's prefix caching hashes full blocks
(vllm/v1/core/kv_cache_utils.py, hash_block_tokens).
"""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.errors import UsageError


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """Blocks with and without sharing.

    Attributes:
        shared_blocks: Held once for each distinct prefix.
        own_blocks: Held by each request beside that.
    """

    shared_blocks: int
    own_blocks: int

    def blocks_for(self, requests: int, *, distinct_prefixes: int = 1) -> int:
        """Blocks that ``requests`` requests hold over ``distinct_prefixes`` prefixes."""
        return distinct_prefixes * self.shared_blocks + requests * self.own_blocks

    def requests_in(self, blocks: int, *, distinct_prefixes: int = 1) -> int:
        """Whole requests that fit in ``blocks`` with their prefixes resident."""
        left = blocks - distinct_prefixes * self.shared_blocks
        return max(0, left // self.own_blocks)


def share_prefix(*, request_blocks: int, block_size: int, prefix_tokens: int) -> SharedPrefix:
    """Splits a request's blocks into those of a shared prefix and its own.

    Args:
        request_blocks: Blocks one request holds without sharing.
        block_size: Tokens a block.
        prefix_tokens: Length of the shared prefix.

    Raises:
        UsageError: a prefix that is negative or leaves the request no block of its own.

    >>> share_prefix(request_blocks=2048, block_size=16, prefix_tokens=8200)
    SharedPrefix(shared_blocks=512, own_blocks=1536)
    """
    if prefix_tokens < 0:
        raise UsageError("A prefix has at least 0 tokens.")
    shared = prefix_tokens // block_size
    if shared >= request_blocks:
        raise UsageError(
            f"A prefix of {prefix_tokens:,} tokens fills the whole request.",
            hint="The prefix is a part of the request's context.",
        )
    return SharedPrefix(shared_blocks=shared, own_blocks=request_blocks - shared)
