"""The language of `expect:`: one comparison a line.

``NAME OPERATOR VALUE``, as in ``headroom >= 10%``. The name is a field of the plan or one of
`kvplan.scenario.figures`; the value has the name's unit, or is another name of the same kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from kvplan.errors import UsageError, nearest, shown
from kvplan.scenario import figures, kinds
from kvplan.scenario.kinds import ARE, EXAMPLES, ORDERED, Kind, Quantity

Operator = Literal[">=", "<=", ">", "<", "==", "!="]
_FORM = re.compile(r"\s*([\w.-]{1,200}?)\s*(>=|<=|==|!=|=>|=<|>|<|=)\s*(.{1,200}?)\s*", re.ASCII)
_NAME = re.compile(r"[a-z][a-z_]*(?:\.[\w-]+)*", re.ASCII)
_MEANT = {"=>": ">=", "=<": "<=", "=": "=="}
_EXAMPLE = "Write it like: requests >= 50, headroom >= 10%, verdict == fits."


@dataclass(frozen=True, slots=True)
class Expectation:
    """One comparison, with units and types checked.

    Attributes:
        text: As it was written.
        name: The figure on the left.
        kind: What both sides are.
        limit: The value on the right, or None where a name stands there.
        other: The name on the right, or None where a value stands there.
    """

    text: str
    name: str
    operator: Operator
    kind: Kind
    limit: Quantity | None
    other: str | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.operator} {self.right()}"

    def right(self) -> str:
        """The right side, for people."""
        if self.limit is None:
            return self.other or ""
        return kinds.show(self.limit.value, self.kind, self.limit.currency)


def parse(text: str) -> Expectation:
    """Reads one line of ``expect:``.

    Raises:
        UsageError: it is no comparison, an unknown name, or a value of another kind or unit.

    >>> str(parse("kv.tokens_low>=400k"))
    'kv.tokens_low >= 409,600 tokens'
    """
    match = _FORM.fullmatch(text)
    if match is None:
        raise UsageError(f"{shown(text)} is not a comparison.", hint=_EXAMPLE)
    name, written, right = match.groups()
    if written in _MEANT:
        raise UsageError(
            f"There is no operator {written} (in {shown(text)}).", hint=f"Write {_MEANT[written]}."
        )
    operator = cast("Operator", written)
    kind = figures.kind_of(name)
    _check_order(name, operator, kind)
    other = _other_name(right, kind)
    limit = None if other else _limit(name, right, kind)
    return Expectation(text.strip(), name, operator, kind, limit, other)


def _check_order(name: str, operator: Operator, kind: Kind) -> None:
    if operator not in ("==", "!=") and kind not in ORDERED:
        raise UsageError(
            f"{name} is {ARE[kind]}, which is neither more nor less than another.",
            hint=f"Write {name} == {figures.words_of(name)[0] if figures.words_of(name) else 'X'}.",
        )


def _other_name(right: str, kind: Kind) -> str | None:
    """The name on the right, if one stands there."""
    if kind in ("text", "any", "flag") or not _NAME.fullmatch(right):
        return None
    other = figures.kind_of(right)
    if other != kind:
        raise UsageError(
            f"{right} is {ARE[other]}, but {ARE[kind]} is compared with it.",
            hint=f"Write {EXAMPLES[kind]}.",
        )
    return right


def _limit(name: str, right: str, kind: Kind) -> Quantity:
    try:
        limit = kinds.read(right, kind)
    except UsageError as error:
        raise UsageError(
            f"{name} is {ARE[kind]}, and {shown(right)} is none.",
            hint=f"Write {EXAMPLES[kind]}.",
        ) from error
    words = figures.words_of(name)
    if words and limit.value not in words:
        raise UsageError(
            f"{name} is never {shown(right)}.",
            hint=nearest(right, words) or f"It is {', '.join(words[:-1])} or {words[-1]}.",
        )
    return limit
