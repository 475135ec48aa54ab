"""Words of `kvplan fit` → numbers. Each error names its flag."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from kvplan.cli.arguments import parse_count, parse_options
from kvplan.cli.compare import parse_options as by_engine
from kvplan.cli.traffic_words import parse_time
from kvplan.errors import UsageError, shown
from kvplan.units import parse_tokens

_BUDGET = re.compile(
    r"(\d{1,12}(?:\.\d{1,6})?)\s*([kM]?)\s*(?:[A-Z]{3}\s*)?(?:(?:/|per\s+)\s*(h|hour|day|month|year))?",
    re.ASCII,
)
_THOUSANDS = {"": 1.0, "k": 1e3, "M": 1e6}
_HOURS_OF_A_YEAR, _HOURS_OF_A_DAY = 8760.0, 24.0
_SLO = ("tpot", "ttft")
_SHARES = ("bandwidth", "flops")


def parse_budget(text: str | None, hours_per_month: float) -> float | None:
    """Money an hour.

    >>> parse_budget("20/h", 730), parse_budget("14.6k/month", 730), parse_budget("48 per day", 730)
    (20.0, 20.0, 2.0)
    """
    if text is None:
        return None
    match = _BUDGET.fullmatch(text.strip())
    if match is None or not float(match[1]):
        raise UsageError(
            f"{shown(text)} is not a budget.",
            hint="Write 20/h, 480/day or 15k/month.",
            location="--budget",
        )
    hours = {
        "day": _HOURS_OF_A_DAY,
        "month": hours_per_month,
        "year": _HOURS_OF_A_YEAR,
    }.get(match[3] or "h", 1.0)
    return float(match[1]) * _THOUSANDS[match[2]] / hours


def parse_slo(text: str | None) -> dict[str, float]:
    """Limits in seconds by name.

    >>> parse_slo("tpot=50ms,ttft=2s")
    {'tpot': 0.05, 'ttft': 2.0}
    """
    limits: dict[str, float] = {}
    for name, value in _pairs("--slo", text, _SLO, "tpot=50ms,ttft=2s"):
        if value[-1:].isdigit():
            raise UsageError(
                f"{shown(value)} has no unit.", hint=f"Write {name}={value}ms.", location="--slo"
            )
        limits[name] = parse_time("--slo", value)
        if not limits[name]:
            raise UsageError("A limit is above 0.", hint="Write tpot=50ms.", location="--slo")
    return limits


def parse_efficiency(text: str | None) -> dict[str, float]:
    """Shares of the peak by name.

    >>> parse_efficiency("bandwidth=0.9")
    {'bandwidth': 0.9}
    """
    shares: dict[str, float] = {}
    for name, value in _pairs("--efficiency", text, _SHARES, "bandwidth=0.8,flops=0.5"):
        if not re.fullmatch(r"(0?\.\d{1,6}|1(\.0+)?|1)", value):
            raise UsageError(
                f"{shown(value)} is not a share above 0 and at most 1.",
                hint="Write bandwidth=0.8.",
                location="--efficiency",
            )
        shares[name] = float(value)
    return shares


def _pairs(
    flag: str, text: str | None, known: tuple[str, ...], example: str
) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for part in (text or "").split(",") if text is not None else ():
        name, equals, value = (word.strip() for word in part.partition("="))
        if name not in known or not equals or name in seen:
            raise UsageError(
                f"{shown(part.strip())} is not one of {', '.join(known)}, once each.",
                hint=f"Write {flag} {example}.",
                location=flag,
            )
        seen.add(name)
        yield name, value


def parse_names(flag: str, text: str | None) -> tuple[str, ...] | None:
    """Names between commas; None where the flag was not given."""
    if text is None:
        return None
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise UsageError(f"{flag} names nothing.", hint="Leave it out.", location=flag)
    return names


def parse_sizes(flag: str, text: str | None) -> tuple[int, ...] | None:
    """Whole numbers between commas; None where the flag was not given."""
    names = parse_names(flag, text)
    return None if names is None else tuple(parse_count(flag, name) for name in names)


def parse_length(flag: str, text: str | None) -> int | None:
    """Tokens; None where the flag was not given."""
    if text is None:
        return None
    try:
        return parse_tokens(text)
    except UsageError as error:
        raise UsageError(error.message, hint=error.hint, location=flag) from None


def options_of(texts: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """``-o`` by engine: with one engine its name may be left out."""
    plain = [name.partition("==")[0] for name in names]
    if len(plain) == 1 and not any(text.startswith(f"{plain[0]}.") for text in texts):
        return {plain[0]: parse_options(texts)} if texts else {}
    return by_engine(texts, plain)
