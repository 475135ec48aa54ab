"""Dated rules: what a release of vLLM does, and the one before it."""

from __future__ import annotations

from typing import Any

import pytest
from real_models import device, real

from kvplan.engines.base import Setup, parse_version
from kvplan.engines.vllm.engine import Vllm
from kvplan.engines.vllm.history import (
    CHANGES,
    NEWEST,
    OLDEST,
    V0_GONE,
    V1_DEFAULT,
    Rules,
    is_newer_than_modelled,
    rules_for,
)
from kvplan.errors import EngineRefusesError, UsageError

WINDOWS = frozenset({"window", "kept_whole"})
# Rule, last release with the old value, old value, first release with the new one, new value.
ROWS: list[tuple[str, str, Any, str, Any]] = [
    ("context_in_budget", "0.7.3", False, "0.8.0", True),
    ("context_in_budget", "0.8.5", True, "0.9.0", False),
    ("one_group", "0.8.5", True, "0.9.0", False),
    ("tokens", "0.8.5", "blocks", "0.9.0", "per_group"),
    ("decode_context", "0.9.2", False, "0.10.0", True),
    ("chunks_whole", "0.9.2", True, "0.10.0", False),
    ("chunks_whole", "0.10.0", False, "0.10.1", True),
    ("nccl_in_budget", "0.10.2", True, "0.11.0", False),
    ("uniform_type", "0.10.2", False, "0.11.0", True),
    ("strided_groups", "0.10.2", False, "0.11.0", True),
    ("encoder_tokens", "0.10.2", "model", "0.11.0", "batch"),
    ("state_blocks", "0.10.2", "one", "0.11.0", "by_length"),
    ("group_slack", "0.11.2", None, "0.12.0", 1.25),
    ("chunks_whole", "0.13.0", True, "0.14.0", False),
    ("async_scheduling", "0.13.0", False, "0.14.0", True),
    ("key_twice", "0.13.0", WINDOWS | {"full"}, "0.14.0", WINDOWS),
    ("state_blocks", "0.14.1", "by_length", "0.15.0", "by_mode"),
    ("mode_all", "0.14.1", False, "0.15.0", True),
    ("group_slack", "0.17.1", 1.25, "0.18.0", 1.5),
    ("utilization", "0.19.1", 0.90, "0.20.0", 0.92),
    ("graphs_in_budget", "0.19.1", False, "0.20.0", True),
    ("key_twice", "0.19.1", WINDOWS, "0.20.0", frozenset({"kept_whole"})),
    ("tokens", "0.20.0", "per_group", "0.21.0", "concurrency"),
    ("key_twice", "0.20.0", frozenset({"kept_whole"}), "0.21.0", frozenset()),
    ("pads", "0.23.0", frozenset(), "0.24.0", frozenset({"attention"})),
    ("window_tokens", "0.25.1", "batch", "0.26.0", "in_flight"),
    ("pads", "0.25.1", frozenset({"attention"}), "0.26.0", frozenset({"attention", "recurrent"})),
    ("packed", "0.26.0", False, "0.27.0", True),
    ("full_fallback", "0.26.0", False, "0.27.0", True),
    ("checkpoint_blocks", "0.28.0", False, "0.29.0", True),
    ("null_block_reserved", "0.28.0", False, "0.29.0", True),
    ("mode_all", "0.31.0", True, "0.32.0", False),
    ("delta_checkpoints", "0.32.0", False, "0.33.0", True),
]


@pytest.mark.parametrize(("rule", "last", "old", "first", "new"), ROWS)
def test_a_rule_changes_with_its_release(
    rule: str, last: str, old: Any, first: str, new: Any
) -> None:
    assert getattr(rules_for(last), rule) == old
    assert getattr(rules_for(first), rule) == new


def test_every_row_of_the_table_is_tested_here() -> None:
    stated = [(change.rule, (*change.since, 0)[:3]) for change in CHANGES]
    assert sorted(stated) == sorted((row[0], parse_version(row[3])) for row in ROWS)
    assert all(change.source for change in CHANGES)


def test_rows_stand_in_order_of_their_releases() -> None:
    # A later row must not be overruled by an earlier one that is read after it.
    releases = [change.since for change in CHANGES]
    assert releases == sorted(releases)
    assert releases[0] > OLDEST


def test_the_oldest_release_has_the_defaults_and_the_engine_before_v1() -> None:
    old = Rules(v0=True)
    assert rules_for("0.6") == rules_for("0.6.6.post1") == rules_for("0.7.0") == old
    assert (old.tokens, old.one_group, old.nccl_in_budget) == ("blocks", True, True)
    assert rules_for("0.8.5") == Rules(context_in_budget=True)


def test_the_newest_release_has_every_change() -> None:
    assert rules_for(NEWEST) == Rules(
        utilization=0.92,
        nccl_in_budget=False,
        graphs_in_budget=True,
        window_tokens="in_flight",
        async_scheduling=True,
        tokens="concurrency",
        group_slack=1.5,
        strided_groups=True,
        uniform_type=True,
        null_block_reserved=True,
        decode_context=True,
        key_twice=frozenset(),
        one_group=False,
        chunks_whole=False,
        pads=frozenset({"attention", "recurrent"}),
        full_fallback=True,
        packed=True,
        state_blocks="by_mode",
        checkpoint_blocks=True,
        delta_checkpoints=True,
        encoder_tokens="batch",
    )


@pytest.mark.parametrize(
    ("between", "older"),
    [
        ("0.6.9", "0.6.0"),
        ("0.7.9", "0.7.1"),
        ("0.8.99", "0.8.0"),
        ("0.13.7", "0.12.0"),
        ("0.16.2", "0.15.0"),
        ("0.19.99", "0.18.0"),
        ("0.25.9", "0.24.0"),
        ("0.28.4", "0.27.0"),
        ("0.31.2", "0.29.0"),
        ("0.40.0", NEWEST),
        ("1.0", NEWEST),
    ],
)
def test_a_release_between_two_takes_the_rules_of_the_older(between: str, older: str) -> None:
    assert rules_for(between) == rules_for(older)


@pytest.mark.parametrize(
    "written",
    ["0.20", "0.20.0", "0.20.0rc1", "0.20.0.dev3+gabc", "0.20.0+cu129", "v0.20.0", " 0.20.0 ",
     "0.20.0.post1", "0.20rc2"],
)  # fmt: skip
def test_suffixes_do_not_count(written: str) -> None:
    assert rules_for(written) == rules_for("0.20.0") != rules_for("0.19.1")
    assert parse_version(written)[:2] == (0, 20)


def test_a_version_is_its_leading_numbers() -> None:
    assert parse_version("0.33.0") == (0, 33, 0)
    assert parse_version("0.20.1rc1") == (0, 20, 1)
    assert parse_version("0.11.2.post1") == (0, 11, 2)
    assert parse_version("123456.1") == (123456, 1)


@pytest.mark.parametrize("older", ["0.5.5", "0.5.99", "0", "0.0.1"])
def test_a_release_older_than_all_is_refused(older: str) -> None:
    with pytest.raises(EngineRefusesError, match=r"older than the oldest .* \(0\.6\)") as raised:
        rules_for(older)
    assert raised.value.hint == f"Plan for a newer one, for example vllm=={NEWEST}."


@pytest.mark.parametrize("version", ["0.8.0", "0.8.5", "0.9.2", "0.10.2", "0.10.99"])
def test_v0_is_an_option_up_to_0_10_and_stays_as_it_was(version: str) -> None:
    assert V1_DEFAULT == (0, 8)
    assert V0_GONE == (0, 11)
    assert rules_for(version, use_v1=False) == Rules(v0=True)
    assert rules_for(version, use_v1=True) == rules_for(version)
    assert not rules_for(version).v0


@pytest.mark.parametrize(
    ("version", "bytes_"),
    [("0.6.6", 1), ("0.7.0", 1), ("0.7.1", 256), ("0.7.3", 256), ("0.8.0", 1), ("0.10.2", 1)],
)
def test_v0_rounded_tokens_of_a_latent_cache_up_for_a_while(version: str, bytes_: int) -> None:
    assert rules_for(version, use_v1=False) == Rules(v0=True, latent_alignment=bytes_)
    assert rules_for("0.33.0").latent_alignment == 1


def test_before_0_8_v1_is_a_trial_and_since_0_11_v0_is_gone() -> None:
    assert rules_for("0.7.3", use_v1=False) == rules_for("0.7.3")
    with pytest.raises(EngineRefusesError, match=r"trial form of V1 in vLLM 0\.7\.3") as raised:
        rules_for("0.7.3", use_v1=True)
    assert raised.value.hint == "Leave out use_v1, or plan for 0.8 or later."
    with pytest.raises(EngineRefusesError, match=r"vLLM 0\.11\.0 has no V0 engine") as raised:
        rules_for("0.11.0", use_v1=False)
    assert raised.value.hint == "Leave out use_v1."
    with pytest.raises(EngineRefusesError, match="has no V0 engine"):
        rules_for("0.11", use_v1=False)
    assert rules_for("0.11.0", use_v1=True) == rules_for("0.11.0")


@pytest.mark.parametrize("wrong", ["", "newest", "=0.33", "latest.1", "-1", "1234567.0", "٣.٣"])
def test_what_is_no_version_is_an_error(wrong: str) -> None:
    with pytest.raises(UsageError, match="not an engine version") as raised:
        rules_for(wrong)
    assert raised.value.hint == "Write vllm==0.33.0."


@pytest.mark.parametrize(
    ("version", "newer"),
    [("0.34.0", True), ("0.34.0rc1", True), ("1.0", True), (NEWEST, False), ("0.33.9", False),
     ("0.32.0", False)],
)  # fmt: skip
def test_only_a_newer_minor_release_is_unknown(version: str, newer: bool) -> None:  # noqa: FBT001
    assert is_newer_than_modelled(version) is newer


# 40.5 GiB for the cache, 16,384 tokens a request, 8,192 batched tokens: the bytes never change,
# the reports do.
REPORTS = [
    ("llama-3.1-8b", "0.9.2", 20.25, 331_776),
    ("llama-3.1-8b", "0.33.0", 20.25, 331_776),
    ("mistral-7b-v0.1", "0.20.0", 26.96, 331_776),
    ("mistral-7b-v0.1", "0.21.0", 26.96, 441_792),
    ("mistral-7b-v0.1", "0.25.1", 26.96, 441_792),
    ("mistral-7b-v0.1", "0.26.0", 20.23, 331_452),
    ("gemma-3-27b", "0.20.0", 7.40, 75_824),
    ("gemma-3-27b", "0.21.0", 7.40, 121_170),
    ("gemma-3-27b", "0.26.0", 4.62, 75_769),
    ("gpt-oss-20b", "0.20.0", 71.58, 884_736),
    ("gpt-oss-20b", "0.21.0", 71.58, 1_172_776),
    ("gpt-oss-20b", "0.26.0", 53.97, 884_304),
]


@pytest.mark.parametrize(("name", "version", "concurrency", "tokens"), REPORTS)
def test_what_a_release_reports(name: str, version: str, concurrency: float, tokens: int) -> None:
    prepared = Vllm().prepare(
        Setup(
            model=real(name),
            gpu=device(),
            version=version,
            kv_budget=(43_486_543_872,),
            context=16_384,
            options={"max_num_batched_tokens": 8192, "async_scheduling": True},
        )
    )
    figures = prepared.figures(16_384)
    assert round(figures.max_concurrency, 2) == concurrency
    assert figures.tokens == tokens
