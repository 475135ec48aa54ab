"""What SGLang fills in by the size of the card, derived by hand for cards of several sizes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvplan.engines.sglang import history
from kvplan.engines.sglang.defaults import (
    Card,
    captured_batch,
    chunk_tokens,
    prefill_sizes,
    static_fraction,
)
from kvplan.errors import EngineRefusesError

NEWEST, OLDEST = history.rules_for(history.NEWEST), history.rules_for("0.5.3")
H100 = Card(
    mib=81559,
    tp=1,
    pp=1,
    attn_dp=1,
    latent=False,
    prefill_graphs=True,
    decode_graphs=True,
    deepep=False,
    draft=None,
    vision_parameters=0,
)


@pytest.mark.parametrize(
    ("gib", "chunk"),
    [(16, 2048), (20, 4096), (34.9, 4096), (48, 4096), (60, 8192), (159, 8192), (160, 16384)],
)
def test_the_chunk_follows_the_card(gib: float, chunk: int) -> None:
    assert chunk_tokens(gib * 1024, NEWEST) == chunk


def test_a_small_card_had_a_shorter_chunk() -> None:
    assert chunk_tokens(24 * 1024, OLDEST) == 2048


@pytest.mark.parametrize(
    ("gib", "tp", "batch"),
    [(16, 1, 8), (16, 4, 8), (24, 1, 48), (24, 4, 160), (48, 3, 32), (48, 4, 160), (80, 2, 256),
     (80, 8, 512), (180, 1, 512)],
)  # fmt: skip
def test_the_captured_batch_follows_card_and_ranks(gib: float, tp: int, batch: int) -> None:
    assert captured_batch(gib * 1024, tp, NEWEST) == batch


@pytest.mark.parametrize(("version", "batch"), [("0.5.3", 16), ("0.5.6", 24), ("0.5.20", 48)])
def test_the_batch_of_a_small_card_grew(version: str, batch: int) -> None:
    assert captured_batch(24 * 1024, 1, history.rules_for(version)) == batch


def test_lengths_of_captured_prefills() -> None:
    # 8 up to 32, 14 up to 256, 8 up to 512, 8 up to 1024, 12 up to 4096, 8 up to 8192.
    assert [prefill_sizes(most) for most in (4, 32, 256, 512, 1024, 4096, 8192)] == [
        1, 8, 22, 30, 38, 50, 58,
    ]  # fmt: skip


def test_the_fraction_of_an_h100() -> None:
    # 512 + 8192 × 1.5 + 1 / 8 × 1024 + 256 × 2 + 58 × 8 = 13,904 of 81,559.
    assert static_fraction(H100, NEWEST, chunk=8192, batch=256) == 0.830
    # Without graphs of prefill 13,440, and the older release had none.
    assert static_fraction(H100, OLDEST, chunk=8192, batch=256) == 0.835


def test_the_fraction_of_a_latent_model() -> None:
    # 1,536 instead of 464: 14,976.
    assert static_fraction(replace(H100, latent=True), NEWEST, chunk=8192, batch=256) == 0.816


def test_the_fraction_of_a_small_card() -> None:
    card = replace(H100, mib=24564)
    # 512 + 6144 + 128 + 96 + 50 × 8 = 7,280 of 24,564.
    assert static_fraction(card, NEWEST, chunk=4096, batch=48) == 0.704
    # 512 + 3072 + 128 + 32 = 3,744: short chunks still count as 2,048 tokens.
    assert static_fraction(card, OLDEST, chunk=512, batch=16) == 0.848


def test_a_large_card_keeps_ten_gib() -> None:
    card = replace(H100, decode_graphs=False, prefill_graphs=False)
    # 512 + 3072 + 128 = 3,712 is below the floor of 10,240.
    assert static_fraction(card, NEWEST, chunk=2048, batch=256) == 0.874


def test_groups_of_attention_and_deepep_take_more() -> None:
    card = replace(H100, tp=8, attn_dp=8, latent=True)
    # 512 + 12288 + 1024 + 512 + 256 × 8 × 3 + 1536 = 22,016.
    assert static_fraction(card, NEWEST, chunk=8192, batch=256) == 0.730
    # 2,048 more.
    deepep = replace(card, deepep=True)
    assert static_fraction(deepep, NEWEST, chunk=8192, batch=256) == 0.705
    # Wide batches: 512 + 12288 + 1024 + 1024 + 512 × 8 × 4.5 + 1536 = 34,816.
    assert static_fraction(card, NEWEST, chunk=8192, batch=512) == 0.573


def test_a_draft_was_left_room_for() -> None:
    older = history.rules_for("0.5.12")
    fractions = [
        static_fraction(replace(H100, draft=draft), older, chunk=8192, batch=256)
        for draft in (None, False, True)
    ]
    # 13,904, then 4,096 and 6,144 more.
    assert fractions == [0.830, 0.779, 0.754]


def test_images_lower_the_fraction() -> None:
    # A tower of 12 × 24 × 1024² parameters is the base: the factor is 0.95 alone.
    card = replace(H100, vision_parameters=12 * 24 * 1024**2)
    assert static_fraction(card, NEWEST, chunk=8192, batch=256) == pytest.approx(0.830 * 0.95)
    # A huge one stops at 0.8 of that.
    card = replace(H100, vision_parameters=10**11)
    assert static_fraction(card, NEWEST, chunk=8192, batch=256) == pytest.approx(0.830 * 0.76)


def test_releases() -> None:
    assert "GptOssForCausalLM" in NEWEST.windows
    assert OLDEST.windows == frozenset()
    assert history.rules_for("0.5.10") == history.rules_for("0.5.9")
    assert not history.is_newer_than_modelled(history.NEWEST)
    assert history.is_newer_than_modelled("0.5.24")
    with pytest.raises(EngineRefusesError, match=r"older than the oldest"):
        history.rules_for("0.5.2")


def test_rows_are_in_order_and_have_sources() -> None:
    assert all(change.source for change in history.CHANGES)
    assert list(history.CHANGES) == sorted(history.CHANGES, key=lambda change: change.since)
