"""Shared prefixes: whole blocks once, the rest per request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import UsageError
from kvplan.workloads.prefixes import share_prefix


def test_the_block_in_which_the_prefix_ends_is_not_shared() -> None:
    prefix = share_prefix(request_blocks=2048, block_size=16, prefix_tokens=8207)
    assert (prefix.shared_blocks, prefix.own_blocks) == (512, 1536)


def test_each_distinct_prefix_is_held_once() -> None:
    prefix = share_prefix(request_blocks=100, block_size=16, prefix_tokens=640)
    assert prefix.blocks_for(10) == 40 + 10 * 60
    assert prefix.blocks_for(10, distinct_prefixes=3) == 3 * 40 + 10 * 60
    assert prefix.requests_in(640) == 10
    assert prefix.requests_in(639) == 9
    assert prefix.requests_in(39) == 0


@pytest.mark.parametrize("tokens", [-1, 1600, 1601])
def test_a_prefix_is_a_part_of_the_request(tokens: int) -> None:
    with pytest.raises(UsageError):
        share_prefix(request_blocks=100, block_size=16, prefix_tokens=tokens)


@given(
    blocks=st.integers(0, 10**7),
    request_blocks=st.integers(1, 10**5),
    share=st.floats(0, 0.999),
)
def test_sharing_never_holds_fewer_once_the_prefix_pays_for_itself(
    blocks: int, request_blocks: int, share: float
) -> None:
    tokens = int(request_blocks * 16 * share)
    prefix = share_prefix(request_blocks=request_blocks, block_size=16, prefix_tokens=tokens)
    held = prefix.requests_in(blocks)
    assert held >= blocks // request_blocks
    assert prefix.blocks_for(held) <= blocks or held == 0
    assert prefix.blocks_for(held + 1) > blocks
