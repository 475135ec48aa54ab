"""Words of the traffic flags → numbers and rules. Each error names its flag."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kvplan.cli.arguments import parse_count
from kvplan.errors import UsageError, shown
from kvplan.planning.traffic.offload import TierAsked
from kvplan.units import parse_bytes, parse_tokens
from kvplan.workloads.arrivals import EVERY_HOUR_ALIKE, DailyProfile, daily_profile, peaked
from kvplan.workloads.sharing import PrefixRule, Scope

_NUMBER = r"(\d{1,12}(?:\.\d{1,9})?)"
_RATE = re.compile(_NUMBER + r"\s*([kM]?)\s*/\s*(s|min|h|day)", re.ASCII)
_TIME = re.compile(_NUMBER + r"\s*(ms|s|min|h|d)?", re.ASCII)
_SHARE = re.compile(_NUMBER + r"\s*(%?)", re.ASCII)
_PER = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": 86_400.0}
_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_THOUSANDS = {"": 1.0, "k": 1e3, "M": 1e6}
_PERCENT = 100
TIER_NAMES = ("host", "disk", "remote")


def parse_rate(text: str) -> float:
    """Requests a second.

    >>> parse_rate("300/min"), parse_rate("18k/h")
    (5.0, 5.0)
    """
    match = _RATE.fullmatch(text.strip())
    if match is None or not float(match[1]):
        raise UsageError(
            f"{shown(text)} is not a rate.", hint="Write 5/s, 300/min or 20k/h.", location="--rate"
        )
    return float(match[1]) * _THOUSANDS[match[2]] / _PER[match[3]]


def parse_time(flag: str, text: str) -> float:
    """Seconds.

    >>> parse_time("--think", "1.5min")
    90.0
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{shown(text)} is not a time.", hint="Write 30s, 5min or 24h.", location=flag
        )
    return float(match[1]) * _SECONDS[match[2] or "s"]


def parse_share(flag: str, text: str) -> float:
    """A share from 0 to 1.

    >>> parse_share("--risk", "0.1%"), parse_share("--risk", "0.001")
    (0.001, 0.001)
    """
    match = _SHARE.fullmatch(text.strip())
    share = None if match is None else float(match[1]) / (_PERCENT if match[2] else 1)
    if share is None or share > 1:
        raise UsageError(f"{shown(text)} is not a share.", hint="Write 0.1%.", location=flag)
    return share


def parse_speed(flag: str, text: str | None) -> float | None:
    """Tokens a second, if they were given."""
    if text is None:
        return None
    match = re.fullmatch(_NUMBER, text.strip(), re.ASCII)
    if match is None or not float(match[1]):
        raise UsageError(
            f"{shown(text)} is no number of tokens a second.",
            hint=f"Write {flag} 30.",
            location=flag,
        )
    return float(match[1])


def parse_limit(flag: str, text: str | None) -> float | None:
    """Seconds above 0, if they were given."""
    if text is None:
        return None
    seconds = parse_time(flag, text)
    if not seconds:
        raise UsageError("A limit is above 0.", hint="Write 2s or 50ms.", location=flag)
    return seconds


def parse_planned_tiers(texts: Sequence[str]) -> tuple[TierAsked, ...]:
    """``host=200GiB@pcie``, ``disk=2TB@6GB``, ``remote=10TB@ib-200``, as given.

    >>> parse_planned_tiers(["host=1GiB@pcie-5"])
    (TierAsked(name='host', bytes=1073741824, link='pcie-5'),)
    """
    found: dict[str, TierAsked] = {}
    for text in texts:
        name, _, rest = (word.strip() for word in text.partition("="))
        size, _, link = (word.strip() for word in rest.partition("@"))
        if name not in TIER_NAMES or name in found or not size or not link:
            raise UsageError(
                f"{shown(text)} is no tier.",
                hint="Write host=200GiB@pcie, disk=2TB@6GB or remote=10TB@ib-200; each once.",
                location="--tier",
            )
        found[name] = TierAsked(name, parse_bytes(size), link)
    return tuple(found.values())


def parse_daily(text: str | None) -> DailyProfile:
    """A day: its peak factor, or 24 weights."""
    if text is None:
        return EVERY_HOUR_ALIKE
    name, equals, value = text.partition("=")
    numbers = [part.strip() for part in (value if equals else text).split(",")]
    if not all(re.fullmatch(_NUMBER, number, re.ASCII) for number in numbers):
        raise UsageError(
            f"{shown(text)} is no profile of a day.",
            hint="Write peak=2.5, or 24 weights with commas.",
            location="--daily",
        )
    weights = tuple(float(number) for number in numbers)
    if not equals:
        return daily_profile(weights)
    if name.strip() != "peak" or len(weights) != 1:
        raise UsageError(f"{shown(name)} is no peak.", hint="Write peak=2.5.", location="--daily")
    return peaked(weights[0])


def parse_prefix(text: str | None) -> PrefixRule | None:
    """``2k,tenants=20,share=80%,change=24h,global,personal``, if it was given."""
    if text is None:
        return None
    tokens, *rest = (part.strip() for part in text.split(","))
    given = dict(_setting(part) for part in rest)
    scope: Scope = "global" if "global" in given else "tenant"
    return PrefixRule(
        name="prefix",
        tokens=parse_tokens(tokens),
        scope=scope,
        personal="personal" in given,
        share=parse_share("--prefix", given.get("share", "100%")),
        tenants=parse_count("--prefix", given.get("tenants", "1")),
        change_every_s=parse_time("--prefix", given["change"]) if "change" in given else None,
    )


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if name in ("global", "personal") and not equals:
        return name, ""
    if name in ("tenants", "share", "change") and value:
        return name, value
    raise UsageError(
        f"{shown(text)} says nothing of a prefix.",
        hint="Write 2k,tenants=20,share=80%,change=24h, and global or personal.",
        location="--prefix",
    )
