"""Types of a workload's values that speak of traffic: lengths, rates, a day, a risk."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from kvplan.errors import shown
from kvplan.planning.traffic.traffic import LEAST_RISK, MOST_RISK
from kvplan.scenario.fields import Share, sentence
from kvplan.sources.trace_columns import parse_columns
from kvplan.workloads.arrivals import HOURS, daily_profile, peaked
from kvplan.workloads.wording import parse_lengths

_RATE = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*([kM]?)\s*/\s*(s|min|h|day)", re.ASCII)
_THOUSANDS = {"": 1.0, "k": 1e3, "M": 1e6}
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "day": 86_400.0}
_MOST_KINDS = 20
_HIGHEST_RATE = 1e9
_PEAK = re.compile(r"peak\s*=\s*(\d{1,3}(?:\.\d{1,6})?)", re.ASCII)


def _lengths(value: str) -> str:
    kinds = sentence(parse_lengths, value).lengths.kinds
    if len(kinds) > _MOST_KINDS:
        raise ValueError(f"{len(kinds)} kinds of requests are mixed, at most {_MOST_KINDS} can be")
    return value


def _columns(value: str) -> str:
    sentence(parse_columns, value)
    return value


def _rate(value: Any) -> Any:
    match = _RATE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or not float(match[1]):
        said = shown(value) if isinstance(value, str) else value
        raise ValueError(f"{said} is not a rate. Write 5/s, 300/min, 20k/h or 1M/day")
    rate = float(match[1]) * _THOUSANDS[match[2]] / _SECONDS[match[3]]
    if rate > _HIGHEST_RATE:
        raise ValueError(f"{shown(value)} is more than anybody serves. Write 5/s or 20k/h")
    return rate


def _daily(value: Any) -> Any:
    """The weights of 24 hours, whose mean is 1."""
    if isinstance(value, str):
        match = _PEAK.fullmatch(value.strip())
        if match is None:
            raise ValueError(f"{shown(value)} is no day. Write peak=2.5, or a list of 24 weights")
        return sentence(lambda text: peaked(float(text)).hours, match[1])
    if isinstance(value, list) and all(_is_weight(each) for each in value):
        weights = tuple(float(each) for each in value)
        return sentence(lambda _text: daily_profile(weights).hours, "")
    return value


def _is_weight(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _risk(value: float) -> float:
    if not LEAST_RISK <= value <= MOST_RISK:
        raise ValueError(f"A risk of {value:g} can't be planned for. Write 0.1%: up to 50 %")
    return value


Lengths = Annotated[
    str,
    AfterValidator(_lengths),
    Field(max_length=10_000, examples=["p50=1k,p95=8k/p50=200,p95=900", "70% 1k/300 + 30% 8k/100"]),
]
Columns = Annotated[
    str,
    AfterValidator(_columns),
    Field(max_length=1000, examples=["arrival=ts:ms,prompt=n_in,output=n_out"]),
]
Rate = Annotated[
    float,
    BeforeValidator(_rate),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*[kM]?\s*/\s*(s|min|h|day)\s*$",
            "examples": ["5/s", "20k/h"],
        }
    ),
]
Daily = Annotated[
    tuple[float, ...],
    BeforeValidator(_daily),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^\s*peak\s*=\s*[0-9]+(\.[0-9]+)?\s*$"},
                {
                    "type": "array",
                    "items": {"type": "number", "minimum": 0},
                    "minItems": HOURS,
                    "maxItems": HOURS,
                },
            ],
            "examples": ["peak=2.5"],
        }
    ),
]
Speed = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Risk = Annotated[
    Share,
    AfterValidator(_risk),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": LEAST_RISK, "maximum": MOST_RISK},
                {
                    "type": "string",
                    "pattern": r"^\s*(?=[0-9.]*[1-9])(50(\.0+)?|[1-4]?[0-9](\.[0-9]+)?)\s*%\s*$",
                },
            ],
            "examples": ["0.1%"],
        }
    ),
]
