"""Words of the flags of `kvplan simulate` → numbers. Each error names its flag."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kvplan.cli.traffic_words import TIER_NAMES
from kvplan.errors import UsageError, shown
from kvplan.planning.simulate.recorder import Limits
from kvplan.planning.simulate.service import Linear
from kvplan.planning.traffic.links import is_name, rate_of
from kvplan.simulator import TierMemory
from kvplan.units import parse_bytes

_TIME = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)\s*(ns|us|ms|s|min|h|d)", re.ASCII)
_SECONDS = {
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0,
}  # fmt: skip
_PARTS = ("step", "prefill", "decode", "context")


def parse_span(flag: str, text: str) -> float:
    """Seconds.

    >>> parse_span("--overhead", "2ms"), parse_span("--duration", "1.5h")
    (0.002, 5400.0)
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{shown(text)} is not a time.", hint="Write 2ms, 30s, 5min or 24h.", location=flag
        )
    return float(match[1]) * _SECONDS[match[2]]


def parse_limits(first_token: str | None, between_tokens: str | None) -> Limits:
    """What a good request keeps."""
    return Limits(
        None if first_token is None else parse_span("--first-token", first_token),
        None if between_tokens is None else parse_span("--between-tokens", between_tokens),
    )


def parse_step_time(text: str | None) -> Linear | None:
    """``step=8ms,prefill=30us``, if it was given.

    >>> parse_step_time("step=8ms,context=1ns")
    Linear(step_s=0.008, prefill_s=0.0, decode_s=0.0, context_s=1e-09)
    """
    if text is None:
        return None
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, value = (word.strip() for word in part.partition("="))
        if name not in _PARTS or name in found:
            raise UsageError(
                f"{shown(part)} is no part of a step's time.",
                hint="Write step=8ms,prefill=30us,decode=50us,context=1ns; each at most once.",
                location="--step-time",
            )
        found[name] = parse_span("--step-time", value)
    step, prefill, decode, context = (found.get(name, 0.0) for name in _PARTS)
    if not step and not (prefill and decode):
        raise UsageError(
            "A step that takes no time ends no request later.",
            hint="Give step, or prefill and decode.",
            location="--step-time",
        )
    return Linear(step, prefill, decode, context)


def parse_tiers(texts: Sequence[str]) -> tuple[TierMemory, ...]:
    """``host=200GiB@50GB``, ``disk=2TB@6GB`` and ``remote=10TB@ib-200``, the host first.

    >>> parse_tiers(["host=1GiB@2GB"])
    (TierMemory(name='host', bytes=1073741824, bytes_per_s=2000000000.0),)
    """
    found: dict[str, TierMemory] = {}
    for text in texts:
        name, _, rest = (word.strip() for word in text.partition("="))
        size, _, rate = (word.strip() for word in rest.partition("@"))
        if name not in TIER_NAMES or name in found or not size or not rate:
            raise UsageError(
                f"{shown(text)} is no tier.",
                hint="Write host=200GiB@pcie, disk=2TB@6GB or remote=10TB@ib-200; each once.",
                location="--tier",
            )
        found[name] = TierMemory(name, parse_bytes(size), _bytes_per_s(rate))
    return tuple(found[name] for name in TIER_NAMES if name in found)


def _bytes_per_s(rate: str) -> float | str:
    """A replica's rate, or the name of a GPU's link, whose rate is looked up later."""
    return rate if is_name(rate) else rate_of(rate)
