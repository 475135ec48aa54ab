"""Lengths as people write them."""

from __future__ import annotations

import pytest

from kvplan.errors import UsageError
from kvplan.workloads.distributions import Fixed, Lognormal, Pareto, histogram
from kvplan.workloads.wording import parse_lengths


def test_lengths_of_one_kind() -> None:
    (kind,) = parse_lengths("1k/300").lengths.kinds
    assert (kind.prompt, kind.output) == (Fixed(1024), Fixed(300))
    (kind,) = parse_lengths("lognormal:median=1k,sigma=0.9/pareto:min=20,alpha=1.5").lengths.kinds
    assert (kind.prompt, kind.output) == (Lognormal(1024.0, 0.9), Pareto(20.0, 1.5))
    (kind,) = parse_lengths("hist:512=3,1k=1/9").lengths.kinds
    assert kind.prompt == histogram([(512, 3), (1024, 1)])


def test_percentiles_show_what_they_were_fitted_to() -> None:
    worded = parse_lengths("p50=1k,p95=8k/p50=200,p99.9=900")
    assert [fit.given for fit in worded.fits] == [
        ((0.5, 1024), (0.95, 8192)),
        ((0.5, 200), (pytest.approx(0.999), 900)),
    ]


def test_kinds_are_mixed_by_their_shares() -> None:
    lengths = parse_lengths("70% 1k/300 + 30% 8k/100").lengths
    assert lengths.pairs() == ((1024, 300, 0.7), (8192, 100, 0.3))


def test_without_an_output_a_request_has_its_whole_length() -> None:
    lengths = parse_lengths("8k").lengths
    ((prompt, output, _),) = lengths.pairs()
    assert prompt + output == 8192
    assert not lengths.grows


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "1k/",
        "x",
        "p50=1k",
        "q50=1k,p95=2k",
        "p50=1k,p50=2k",
        "p50=,p95=2k",
        "1k/300 + 30% 8k",
        "0% 1k + 0% 2k",
        "lognormal:median=1k",
        "lognormal:median=1k,sigma=x",
        "pareto:min=1k,alpha=0",
        "zipf:a=1",
        "hist:",
        "hist:1=0",
        "1" * 20_000,
    ],
)
def test_what_is_no_length_is_said_so(text: str) -> None:
    with pytest.raises(UsageError):
        parse_lengths(text)
