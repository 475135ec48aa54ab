"""Blocks, tokens and concurrency from bytes that were printed with two digits."""

from __future__ import annotations

from typing import Any

import pytest
from measured_starts import BLOCK_BYTES, start

from kvplan.planning.validate.geometry import check, logged_bytes
from kvplan.planning.validate.lacking import LackingError
from kvplan.planning.validate.printed import between, byte_ends, prints_as
from kvplan.units import GIB

# What prints as 1.00 GiB holds so many blocks of the small model.
FEWEST = round(0.995 * GIB) // BLOCK_BYTES
MOST = round(1.005 * GIB) // BLOCK_BYTES


def test_a_log_that_agrees() -> None:
    found = check(start())
    assert (found.predicted_blocks, found.predicted_tokens) == (16_384, 262_144)
    assert found.predicted_concurrency == 64
    assert (found.low_tokens, found.high_tokens) == (16 * FEWEST, 16 * MOST)
    assert found.within_print_rounding
    assert found.relative_error == 0
    assert found.reachable_with is None


@pytest.mark.parametrize(
    ("blocks", "reachable"),
    [(FEWEST, True), (MOST, True), (FEWEST - 1, False), (MOST + 1, False)],
)
def test_every_count_that_the_printed_bytes_allow_is_reachable(
    *, blocks: int, reachable: bool
) -> None:
    found = check(start(num_gpu_blocks=blocks, kv_tokens=None, max_concurrency=None))
    assert found.within_print_rounding is reachable
    assert found.relative_error == 16_384 / blocks - 1


@pytest.mark.parametrize(
    ("changes", "reachable"),
    [
        ({"kv_tokens": 262_144 + 16}, True),
        ({"kv_tokens": 262_144 + 8}, False),  # no whole number of blocks
        ({"kv_tokens": 16 * (MOST + 1)}, False),
        ({"max_concurrency": 64.01}, True),
        ({"max_concurrency": 65.0}, False),
    ],
)
def test_a_figure_alone(*, changes: dict[str, Any], reachable: bool) -> None:
    alone = {"num_gpu_blocks": None, "kv_tokens": None, "max_concurrency": None} | changes
    assert check(start(**alone)).within_print_rounding is reachable


def test_all_figures_must_come_from_the_same_blocks() -> None:
    """Each is reachable alone, by different counts."""
    found = check(start(num_gpu_blocks=16_400, kv_tokens=16 * 16_390, max_concurrency=None))
    assert not found.within_print_rounding


def test_the_printed_count_is_compared_where_a_record_keeps_another() -> None:
    found = check(start(kv_tokens=999, kv_tokens_printed=262_144))
    assert (found.measured_tokens, found.within_print_rounding) == (262_144, True)
    found = check(start(kv_tokens=999, kv_tokens_printed=None))
    assert (found.measured_tokens, found.within_print_rounding) == (None, True)


def test_the_rank_with_least_decides() -> None:
    found = check(start(available_kv_gib=2.0, available_kv_gib_per_rank=[2.0, 1.0]))
    assert (found.kv_gib, found.within_print_rounding) == (1.0, True)


def test_a_flag_that_the_record_leaves_out_is_found() -> None:
    """fp8 halves the bytes of a token: the log of such a start does not fit bfloat16."""
    found = check(start(num_gpu_blocks=32_768, kv_tokens=524_288, max_concurrency=128.0))
    assert not found.within_print_rounding
    assert found.reachable_with == "kv_cache_dtype=fp8"


def test_a_flag_that_the_record_states_is_not_doubted() -> None:
    found = check(
        start(
            num_gpu_blocks=32_768, kv_tokens=None, max_concurrency=None, kv_cache_dtype="bfloat16"
        )
    )
    assert (found.within_print_rounding, found.reachable_with) == (False, None)


def test_an_assumed_flag_is() -> None:
    found = check(
        start(
            num_gpu_blocks=32_768,
            kv_tokens=None,
            max_concurrency=None,
            kv_cache_dtype="bfloat16",
            kv_cache_dtype_assumed=True,
        )
    )
    assert found.reachable_with == "kv_cache_dtype=fp8"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"available_kv_gib": None}, "available_kv_gib is not stated"),
        ({"available_kv_gib": -0.5}, "no memory was left"),
        ({"available_kv_gib": 1e12}, "is no amount of memory"),
        ({"num_gpu_blocks": None, "kv_tokens": None, "max_concurrency": None}, "neither"),
        ({"num_gpu_blocks": 0, "kv_tokens": 0, "max_concurrency": -1.0}, "neither"),
    ],
)
def test_what_a_record_lacks(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(LackingError, match=reason):
        check(start(**changes))


def test_without_a_gpu_the_rules_of_a_bare_memory_hold() -> None:
    nowhere = start(gpu=None)
    assert not nowhere.gpu_stated
    assert "gpu" in nowhere.assumed
    assert check(nowhere).within_print_rounding


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, GIB),
        ({"available_kv_gib": None}, 16_384 * BLOCK_BYTES),
        ({"available_kv_gib": None, "num_gpu_blocks": None}, GIB),
    ],
)
def test_bytes_of_the_logged_cache(changes: dict[str, Any], expected: int) -> None:
    assert logged_bytes(start(**changes)) == expected


def test_printed_figures() -> None:
    assert byte_ends(1.0) == (round(0.995 * GIB), round(1.005 * GIB))
    assert byte_ends(0.0)[0] == 1
    assert prints_as(2.3649, 2.36)
    assert prints_as(2.365, 2.36)
    assert not prints_as(2.3651, 2.36)
    assert between(1.0, 0.996, 2.0)
    assert between(1.0, 2.004, 2.0)
    assert not between(1.0, 0.994, 2.0)
    assert not between(1.0, 2.006, 2.0)
