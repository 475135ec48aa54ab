"""Lengths as people write them on one line → `Lengths`.

``8k`` · ``p50=1k,p95=8k,p99=32k`` · ``lognormal:median=1k,sigma=0.9`` ·
``pareto:min=200,alpha=1.5`` · ``hist:512=3,1024=1``. Outputs follow a slash:
``p50=1k,p95=8k/p50=200,p95=900``. Kinds are mixed with plus and a share:
``70% 1k/300 + 30% 8k/100``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kvplan.errors import UsageError, shown
from kvplan.units import MAX_TOKENS, parse_tokens
from kvplan.workloads.distributions import Distribution, Fixed, Lognormal, Pareto, histogram
from kvplan.workloads.lengths import Kind, Lengths
from kvplan.workloads.percentiles import Fit, fit

_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s*%\s+(.+)", re.ASCII | re.DOTALL)
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,4})?)", re.ASCII)
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,9})?", re.ASCII)
_HINT = "Write 8k, p50=1k,p95=8k, lognormal:median=1k,sigma=0.9 or pareto:min=200,alpha=1.5."
_LONGEST = 10_000


@dataclass(frozen=True, slots=True)
class Worded:
    """Lengths that were written down, and the fits that percentiles led to."""

    lengths: Lengths
    fits: tuple[Fit, ...]


def parse_lengths(text: str, *, limit: int = MAX_TOKENS) -> Worded:
    """Reads one line of lengths.

    Args:
        text: As the module says.
        limit: Tokens that a whole request has at most.

    >>> parse_lengths("70% 1k/300 + 30% 8k").lengths.kinds[1].prompt
    Fixed(tokens=8192)

    Raises:
        UsageError: not such a line.
    """
    if len(text) > _LONGEST:
        raise UsageError("The lengths are too long to be read.", hint="Put them into a file.")
    fits: list[Fit] = []
    parts = text.split("+")
    kinds = tuple(_kind(part.strip(), fits, alone=len(parts) == 1) for part in parts)
    return Worded(Lengths(kinds, limit), tuple(fits))


def _kind(text: str, fits: list[Fit], *, alone: bool) -> Kind:
    weight, match = 1.0, _SHARE.fullmatch(text)
    if match is not None:
        weight, text = float(match[1]) / 100, match[2].strip()
    elif not alone:
        raise UsageError(
            f"{shown(text)} does not say its share of the requests.",
            hint="Write 70% 1k/300 + 30% 8k/100.",
        )
    prompt, slash, output = text.partition("/")
    return Kind(
        weight=weight,
        prompt=_law(prompt.strip(), fits),
        output=_law(output.strip(), fits) if slash else None,
    )


def _law(text: str, fits: list[Fit]) -> Distribution:
    name, colon, rest = text.partition(":")
    if not colon and "=" not in text:
        return Fixed(parse_tokens(text))
    values = _values(rest if colon else text)
    if not colon:
        fits.append(fit(_percentiles(values)))
        return fits[-1].law
    match name.strip().lower():
        case "lognormal":
            median, sigma = _two(values, "median", "sigma")
            return Lognormal(_positive(median), _number(sigma))
        case "pareto":
            minimum, alpha = _two(values, "min", "alpha")
            return Pareto(_positive(minimum), _above_zero(alpha))
        case "hist":
            return histogram((parse_tokens(at), _number(count)) for at, count in values.items())
    raise UsageError(f"There is no distribution {shown(name)}.", hint=_HINT)


def _values(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not name or not value:
            raise UsageError(f"{shown(part)} says no length.", hint=_HINT)
        if name in found:
            raise UsageError(f"{shown(name)} is given twice.", hint="Keep one of the two.")
        found[name] = value
    return found


def _percentiles(values: Mapping[str, str]) -> dict[float, int]:
    found: dict[float, int] = {}
    for name, value in values.items():
        match = _PERCENTILE.fullmatch(name.lower())
        if match is None:
            raise UsageError(f"{shown(name)} is no percentile.", hint="Write p50=1k,p95=8k.")
        found[float(match[1]) / 100] = parse_tokens(value)
    return found


def _two(values: Mapping[str, str], *names: str) -> tuple[str, ...]:
    if set(values) != set(names):
        raise UsageError(f"It takes {' and '.join(names)}, not {', '.join(values)}.", hint=_HINT)
    return tuple(values[name] for name in names)


def _positive(text: str) -> float:
    return float(parse_tokens(text))


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise UsageError(f"{shown(text)} is not a number.", hint="Write it like 0.9.")
    return float(text)


def _above_zero(text: str) -> float:
    number = _number(text)
    if number <= 0:
        raise UsageError("alpha is above 0.", hint="Write it like 1.5.")
    return number
