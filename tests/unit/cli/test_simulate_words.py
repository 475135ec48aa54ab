"""Words of the simulation's flags."""

from __future__ import annotations

import pytest

from kvplan.cli.simulate_words import parse_limits, parse_span, parse_step_time, parse_tiers
from kvplan.errors import UsageError
from kvplan.planning.simulate.service import Linear


def test_times() -> None:
    assert parse_span("--x", "30us") == pytest.approx(3e-5)
    assert parse_span("--x", "2 h") == 7200.0
    assert parse_limits("2s", None).first_token_s == 2.0
    assert parse_limits(None, "50ms").between_tokens_s == pytest.approx(0.05)
    assert parse_step_time(None) is None
    assert parse_step_time("step=1s,decode=2ms") == Linear(1.0, 0.0, 0.002, 0.0)


def test_tiers_come_host_first() -> None:
    tiers = parse_tiers(["disk=1TB@6GB/s", "host=1GiB@50GB"])
    assert [(tier.name, tier.bytes_per_s) for tier in tiers] == [("host", 5e10), ("disk", 6e9)]


def test_a_tier_can_be_read_over_a_link() -> None:
    tiers = parse_tiers(["host=1GiB@pcie", "remote=1TB@ib-200", "disk=1TB@400Gb"])
    assert [tier.bytes_per_s for tier in tiers] == ["pcie", 5e10, "ib-200"]


@pytest.mark.parametrize("text", ["", "5", "x=1s", "step=1", "step=1s,step=2s", "prefill=1ms"])
def test_step_times_that_make_no_sense(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_step_time(text)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    ["", "host", "host=1GiB", "tape=1GiB@1GB", "host=1GiB@0GB", "host=x@1GB", "host=1GiB@50gb"],
)
def test_tiers_that_make_no_sense(text: str) -> None:
    with pytest.raises(UsageError):
        parse_tiers([text])


def test_a_tier_is_given_once() -> None:
    with pytest.raises(UsageError, match="no tier"):
        parse_tiers(["host=1GiB@1GB"] * 2)
