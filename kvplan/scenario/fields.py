"""Types of a scenario's values: what a person writes → a number, with the unit checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from kvplan.engines.base import parse_version
from kvplan.engines.registry import PLACES
from kvplan.errors import KvplanError, nearest, shown
from kvplan.scenario.expectation import parse
from kvplan.units import parse_bytes, parse_tokens

Result = TypeVar("Result")

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(s|min|h|d)", re.ASCII)
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)\s*%", re.ASCII)


def sentence(read: Callable[[str], Result], text: str) -> Result:
    """What ``read`` makes of a text.

    Raises:
        ValueError: what pydantic wants where ``read`` raises a KvplanError: sentence and hint.
    """
    try:
        return read(text)
    except KvplanError as error:
        hint = f" {error.hint}" if error.hint else ""
        raise ValueError(f"{error.message}{hint}") from None


def _tokens(value: Any) -> Any:
    return sentence(parse_tokens, value) if isinstance(value, str) else value


def _context(value: Any) -> Any:
    if value in ("auto", "max"):
        return value
    tokens = _tokens(value)
    if isinstance(tokens, int) and tokens < 1:
        raise ValueError("A context has at least one token. Write 32k, auto or max.")
    return tokens


def _size(value: Any) -> Any:
    return sentence(parse_bytes, value) if isinstance(value, str) else value


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise ValueError(f"{shown(value)} is not a time. Write 15min, 2h or 30s")
    return float(match[1]) * _SECONDS[match[2]]


def _share(value: Any) -> Any:
    match = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[1]) / 100 if match else value


def _engine(value: str) -> str:
    name, pin, version = value.partition("==")
    if name not in PLACES:
        hint = nearest(name, tuple(PLACES)) or f"Modelled: {', '.join(PLACES)}"
        raise ValueError(f"There is no engine {shown(name)}. {hint}")
    if pin:
        sentence(parse_version, version)
    return value


def _expectation(value: str) -> str:
    sentence(parse, value)
    return value


def _written(number: dict[str, Any], pattern: str, example: Any) -> WithJsonSchema:
    """A number within limits, or text of a pattern."""
    return WithJsonSchema(
        {"anyOf": [number, {"type": "string", "pattern": pattern}], "examples": [example]}
    )


_SOME = r"^\s*(?=[0-9.,_]*[1-9])"  # not nothing
_SIZE_PATTERN = _SOME + r"[0-9][0-9_,]*(\.[0-9]+)?\s*([KMGTkmgt][Ii]?)?[Bb]?$"
_TOKENS_PATTERN = _SOME + r"[0-9][0-9_,]*(\.[0-9]+)?\s*[kKmM]?$"
_POSITIVE: dict[str, Any] = {"type": "integer", "minimum": 1}

Count = Annotated[int, Field(ge=1)]
Tokens = Annotated[
    int, BeforeValidator(_tokens), Field(ge=1), _written(_POSITIVE, _TOKENS_PATTERN, "32k")
]
Context = Annotated[
    int | Literal["auto", "max"],
    BeforeValidator(_context),
    WithJsonSchema(
        {
            "anyOf": [
                _POSITIVE,
                {"enum": ["auto", "max"]},
                {"type": "string", "pattern": _TOKENS_PATTERN},
            ],
            "examples": ["32k", "auto"],
        }
    ),
]
Size = Annotated[
    int, BeforeValidator(_size), Field(ge=1), _written(_POSITIVE, _SIZE_PATTERN, "40.5GiB")
]
Seconds = Annotated[
    float,
    BeforeValidator(_seconds),
    Field(gt=0),
    _written(
        {"type": "number", "exclusiveMinimum": 0},
        r"^\s*(?!0+(\.0*)?\s*[smhd])[0-9]+(\.[0-9]+)?\s*(s|min|h|d)\s*$",
        "15min",
    ),
]
Share = Annotated[
    float,
    BeforeValidator(_share),
    Field(ge=0, le=1),
    _written(
        {"type": "number", "minimum": 0, "maximum": 1},
        r"^\s*(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?)\s*%\s*$",
        "5%",
    ),
]
Word = Annotated[str, Field(min_length=1, max_length=4096)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,99}$")]
EngineName = Annotated[
    str, AfterValidator(_engine), Field(examples=["vllm==0.33.0"], max_length=100)
]
Expected = Annotated[
    str,
    AfterValidator(_expectation),
    Field(max_length=500, examples=["requests >= 50", "headroom >= 10%", "verdict == fits"]),
]
