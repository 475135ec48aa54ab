"""Cells: what llama.cpp rounds, and where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.engines.llamacpp.context import Context, context_of


def context(requested: int, sequences: int = 1, *, unified: bool = False, **more: int) -> Context:
    sizes = {"n_batch": 2048, "n_ubatch": 512} | more
    return context_of(requested, sequences, unified=unified, **sizes)


@pytest.mark.parametrize(
    ("made", "cells"),
    [
        (context(1000), (1024, 1024, 1)),
        (context(1024), (1024, 1024, 1)),
        (context(1025), (1280, 1280, 1)),
        (context(1000, 7), (1792, 256, 7)),  # 1024 // 7 = 146, and that rounded up
        (context(1000, 7, unified=True), (1024, 1024, 1)),
        (context(8192, 3), (8448, 2816, 3)),
        (context(256, 64), (16_384, 256, 64)),
        (context(32_768, 4), (32_768, 8192, 4)),
    ],
)
def test_a_context_is_rounded_by_stream(made: Context, cells: tuple[int, int, int]) -> None:
    assert (made.n_ctx, made.n_ctx_seq, made.streams) == cells


def test_a_batch_is_no_larger_than_what_was_asked_for_before_rounding() -> None:
    assert context(300).n_ubatch == 300
    assert context(4096, n_ubatch=4096).n_ubatch == 2048
    assert context(4096, n_ubatch=0).n_ubatch == 2048  # 0: as n_batch
    assert context(4096, n_batch=128).n_ubatch == 128


@pytest.mark.parametrize(
    ("made", "cells"),
    [
        (context(32_768), 1536),  # 1024 + 512, a multiple of 256
        (context(32_768, n_ubatch=2048), 3072),
        (context(1024), 1024),  # never more than the stream
        (context(32_768, 4), 1536),  # a stream for each sequence
        (context(32_768, 4, unified=True), 4608),  # 4 × 1024 + 512
        (context(32_768, n_ubatch=100), 1280),
    ],
)
def test_a_window_holds_what_is_attended_to_and_a_batch(made: Context, cells: int) -> None:
    assert made.window_cells(1024) == cells


@given(st.integers(1, 10**7), st.integers(1, 256), st.booleans(), st.integers(1, 8192))
def test_laws_of_a_context(
    requested: int,
    sequences: int,
    unified: bool,  # noqa: FBT001 - drawn
    window: int,
) -> None:
    made = context(requested, sequences, unified=unified)
    assert made.n_ctx % 256 == 0
    assert made.n_ctx == made.n_ctx_seq * made.streams
    assert made.n_ctx >= requested or sequences > 1
    assert made.n_ctx <= requested + 256 + 256 * sequences
    assert 256 <= made.window_cells(window) <= made.n_ctx_seq
    larger = context(requested + 256 * sequences, sequences, unified=unified)
    assert larger.n_ctx_seq >= made.n_ctx_seq
