"""Tokens a block: what backends share, beside recurrent states, beside unquantized layers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.engines.vllm.backends import TURBOQUANT_BACKEND, Backend
from kvplan.engines.vllm.block_size import (
    block_beside_states,
    block_beside_unquantized,
    common_block,
    token_bytes_beside_states,
)
from kvplan.engines.vllm.cells import Cell
from kvplan.engines.vllm.pages import Kind
from kvplan.errors import EngineRefusesError

FLASH = Backend("FLASH_ATTN", 16)
FLASHMLA = Backend("FLASHMLA", 64, (64,))


def cell(
    token: int, backend: Backend = FLASH, kind: Kind = "full", *, unpacked: int | None = None
) -> Cell:
    return Cell(kind, backend, token, token if unpacked is None else unpacked)


@pytest.mark.parametrize(
    ("bases", "asked", "size"),
    [
        ([16], None, 16),
        ([32], None, 32),
        ([64], None, 64),
        ([8], None, 16),  # takes 16
        ([12], None, 12),  # 16 is no multiple
        ([1, 16], None, 16),
        ([16, 64], None, 64),
        ([32, 48], None, 96),  # the smallest that both take
        ([16], 16, 16),
        ([16], 48, 48),
        ([64], 128, 128),
        ([16, 64], 192, 192),
    ],
)
def test_the_size_that_backends_share(bases: list[int], asked: int | None, size: int) -> None:
    assert common_block([Backend("X", base) for base in bases], asked) == size


@pytest.mark.parametrize(
    ("bases", "asked", "base"),
    [([16], 8, 16), ([16], 24, 16), ([64], 16, 64), ([32], 48, 32), ([16], 0, 16),
     ([16], -16, 16), ([16, 64], 32, 64)],
)  # fmt: skip
def test_a_block_size_that_a_backend_does_not_take(bases: list[int], asked: int, base: int) -> None:
    with pytest.raises(EngineRefusesError, match=f"multiples of {base} tokens, not {asked}") as it:
        common_block([Backend("X", each) for each in bases], asked)
    assert it.value.hint == f"Use -o block_size={base} or leave it out."


# kernel block × ceil(state / (kernel block × bytes a token)), at least the block so far.
@pytest.mark.parametrize(
    ("token", "state", "block", "grid", "expected"),
    [
        # Qwen3-Next on one H100: 2 KV heads of 256 in bf16 are 2,048 bytes a token; the state is
        # conv 3 × 8,192 × 2 and 32 × 128 × 128 × 2, together 1,097,728: 536 tokens. In steps of
        # 16 that is 544, and of 64 (checkpoints, since 0.33) 576.
        (2048, 1_097_728, 16, None, 544),
        (2048, 1_097_728, 16, 64, 576),
        (1024, 1_097_728, 16, 64, 1088),  # fp8: half the bytes, twice the tokens
        (2048, 1_097_728, 16, 1, 544),  # Mamba 2 aligns to nothing
        (2048, 1_097_728, 128, None, 640),  # 5 × 128
        (2048, 1_097_728, 1024, None, 1024),  # the block asked for covers it already
        (2048, 2048 * 544, 16, None, 544),  # exactly covered
        (2048, 2048 * 544 + 1, 16, None, 560),
        (100, 1, 16, None, 16),
    ],
)
def test_attention_covers_a_state(
    token: int, state: int, block: int, grid: int | None, expected: int
) -> None:
    found = block_beside_states(
        [cell(token)], state, token_bytes=token, block=block, checkpoint_grid=grid
    )
    assert found == expected


def beside(cells: list[Cell], state: int) -> int:
    return block_beside_states(
        cells, state, token_bytes=cells[0].token_bytes, block=16, checkpoint_grid=None
    )


def test_latent_attention_takes_blocks_of_128_beside_states() -> None:
    """Kimi-Linear: a state of 2,170,880 bytes, 1,152 a token: 1,885 tokens are 15 × 128."""
    assert beside([cell(1152, kind="latent")], 2_170_880) == 1920
    assert beside([cell(1152, kind="latent")], 1) == 128
    assert beside([cell(1152, Backend("X", 256), "latent")], 2_170_880) == 2048


def test_the_first_backend_sets_the_steps_and_every_one_is_taken_by_the_result() -> None:
    mixed = [cell(100), cell(100, FLASHMLA)]
    # Steps of 16: 7 of them cover 11,000 bytes; rounded up to a multiple of 64.
    assert beside(mixed, 11_000) == 128
    # Steps of 64: two of them.
    assert beside(mixed[::-1], 11_000) == 128
    assert beside(mixed[::-1], 6401) == 128
    assert beside(mixed, 6400) == 64


def test_steps_are_multiples_of_the_kernels_block_and_of_the_grid() -> None:
    """Kernel blocks of 48 and checkpoints every 64 tokens meet every 192."""
    odd = [cell(1, Backend("X", 48))]
    found = block_beside_states(odd, 65, token_bytes=1, block=16, checkpoint_grid=64)
    assert found == 192


TURBO = TURBOQUANT_BACKEND


@pytest.mark.parametrize(
    ("cells", "skipped", "token"),
    [
        ([cell(512)], [False], 512),
        # The layers that are not left out count, in whatever order.
        ([cell(256), cell(512)], [False, True], 256),
        ([cell(512), cell(256)], [True, False], 256),
        ([cell(512)], [True], 512),
        # Of several, the first: a draft may keep others.
        ([cell(256), cell(300), cell(512)], [False, False, True], 256),
        # A packing is not counted by a first layer's backend that does not know it.
        ([cell(512), cell(264, Backend("TRITON_ATTN", 16), unpacked=256)], [True, False], 256),
        ([cell(264, Backend("TRITON_ATTN", 16), unpacked=256), cell(512)], [False, True], 264),
        # TurboQuant's 196 bytes and 512 meet at 25,088.
        ([cell(196, TURBO), cell(512), cell(196, TURBO)], [False, True, False], 25_088),
        ([cell(512), cell(196, TURBO)], [True, False], 25_088),
        ([cell(196, TURBO)], [False], 196),
    ],
)
def test_what_a_token_counts_beside_states(
    cells: list[Cell], skipped: list[bool], token: int
) -> None:
    assert token_bytes_beside_states(cells, skipped) == token


@given(
    st.integers(1, 5000),
    st.integers(1, 10**7),
    st.sampled_from([16, 32, 64, 128]),
    st.sampled_from([None, 1, 64]),
)
def test_a_block_covers_the_state_and_a_step_less_does_not(
    token: int, state: int, block: int, grid: int | None
) -> None:
    found = block_beside_states(
        [cell(token)], state, token_bytes=token, block=block, checkpoint_grid=grid
    )
    step = math.lcm(block, grid or 1)
    assert found % step == 0
    assert found * token >= state
    assert found == step or (found - step) * token < state


# Layers left out keep another page: the block of the rest grows until it covers one of theirs.
@pytest.mark.parametrize(
    ("token", "plain", "block", "state_page", "expected"),
    [
        # fp8 beside bf16: 16 tokens of 4,096 bytes are 32 of 2,048.
        (2048, 4096, 16, 0, (32, 32 * 2048)),
        (2048, 4096, 64, 0, (64, 64 * 2048)),  # the block asked for covers it
        # nvfp4: 1,152 bytes a token; 16 × 4,096 / (16 × 1,152) = 3.6, so four steps.
        (1152, 4096, 16, 0, (64, 64 * 1152)),
        (1152, 4096, 32, 0, (64, 64 * 1152)),  # two steps of 32
        (1152, 4096, 48, 0, (96, 96 * 1152)),
        # A state's page has to be covered too: 100,000 / (16 × 1,152) = 5.4.
        (1152, 4096, 16, 100_000, (96, 96 * 1152)),
        (4096, 4096, 16, 0, (16, None)),  # nothing differs
    ],
)
def test_blocks_cover_a_page_of_the_layers_that_are_left_out(
    token: int, plain: int, block: int, state_page: int, expected: tuple[int, int | None]
) -> None:
    cells, skipped = [cell(token), cell(plain)], [False, True]
    found = block_beside_unquantized(cells, skipped, block=block, state_page=state_page)
    assert found == expected


def test_a_packing_that_the_first_layers_backend_does_not_know_is_not_counted() -> None:
    """TurboQuant packs 1,568 bytes a token; FlashAttention, first here, counts 2,048."""
    packed, plain = cell(1568, TURBO, unpacked=2048), cell(4096)
    first_plain = block_beside_unquantized([plain, packed], [True, False], block=16, state_page=0)
    assert first_plain == (32, 32 * 2048)
    first_packed = block_beside_unquantized([packed, plain], [False, True], block=16, state_page=0)
    # 65,536 / (16 × 1,568) = 2.6: three steps.
    assert first_packed == (48, 48 * 1568)


def test_where_every_layer_is_left_out_nothing_differs() -> None:
    cells = [cell(4096), cell(4096)]
    assert block_beside_unquantized(cells, [True, True], block=16, state_page=9) == (16, None)


def test_pages_grow_in_steps_of_the_first_backends_kernel() -> None:
    # Kernel blocks of 64: 64 × 1,500 have to be covered, in steps of 64 × 1,000: two.
    odd = [cell(1000, FLASHMLA), cell(1500, FLASHMLA)]
    found = block_beside_unquantized(odd, [False, True], block=16, state_page=0)
    assert found == (128, 128_000)
    # 64 × 4,096, in steps of 64 × 2,048.
    cells = [cell(2048, FLASHMLA), cell(4096, FLASHMLA)]
    found = block_beside_unquantized(cells, [False, True], block=16, state_page=0)
    assert found == (128, 128 * 2048)
