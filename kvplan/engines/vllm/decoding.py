"""Blocks that a request holds while it decodes, which windows make fewer than at its start.

A start is sized for a chunk of prompt in flight; a decoding step has a token of each request (and
those drafted) in flight. Source: vLLM 0.33.0, vllm/v1/core/single_type_kv_cache_manager.py
(remove_skipped_blocks, get_num_skipped_tokens).
"""

from __future__ import annotations

from dataclasses import replace

from kvplan.engines.vllm.pages import WHOLE, PageSpec, blocks_held, shared_by
from kvplan.engines.vllm.pool import Pool
from kvplan.engines.vllm.settings import Settings
from kvplan.models.formats import ceil_div

_WINDOWS = frozenset({"window", "latent_window"})


def tokens_in_flight(settings: Settings) -> int:
    """Tokens of one request that decoding steps may have scheduled and not settled."""
    steps = max(1, settings.in_flight_tokens // settings.max_num_batched_tokens)
    drafts = settings.speculative
    return steps * (1 + (drafts.num_speculative_tokens or 0 if drafts else 0))


def decoding_blocks(pool: Pool, tokens: int, *, in_flight: int, encoded: int | None = None) -> int:
    """Blocks over all groups of a decoding request of ``tokens`` tokens.

    Args:
        pool: The engine's groups of layers.
        tokens: Length of the request so far.
        in_flight: Of `tokens_in_flight`.
        encoded: Tokens that an encoder's output really has; None: as many as it is sized for.
    """
    pages = [_encoded(group.page, encoded) for group in pool.groups]
    return sum(_held(page, tokens, in_flight, pool.dcp) for page in pages)


def _encoded(page: PageSpec, tokens: int | None) -> PageSpec:
    if page.kind != "cross" or tokens is None:
        return page
    return replace(page, span=min(page.span, tokens))


def shared_blocks(pool: Pool, tokens: int, shared: int, *, in_flight: int) -> int:
    """Of those blocks, the ones whose tokens are all among the first ``shared``.

    Only whole blocks are shared, and a recurrent state is its request's own.
    """
    found = 0
    for group in pool.groups:
        page = group.page
        whole = shared // (page.block_size * shared_by(page, pool.dcp))
        if page.kind in _WINDOWS:
            # What has left the window is held no more, shared or not.
            blocks = ceil_div(tokens, page.block_size)
            gone = blocks - _held(page, tokens, in_flight, pool.dcp)
            found += max(0, min(whole, blocks) - gone)
        elif page.kind in WHOLE:
            found += min(whole, _held(page, tokens, in_flight, pool.dcp))
    return found


def _held(page: PageSpec, tokens: int, in_flight: int, dcp: int) -> int:
    held = blocks_held(page, tokens, in_flight=in_flight, dcp=dcp)
    # A start counts one block more for a window that is not aligned, also where it isn't full.
    return min(held, ceil_div(tokens, page.block_size)) if page.kind in _WINDOWS else held
