"""The times of a trace: numbers in some unit or dates, in order, counted from the first."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from kvplan.errors import InputError, shown

_LONGEST_S = 10 * 366 * 86_400.0
"""Ten years: a trace that spans more has its times in mixed units."""
# Seconds since 1970 have ten digits; as many more are a finer unit.
_SINCE_1970 = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
_UNIT_HINT = "Write all times in one unit, and name it: --trace-columns arrival=NAME:ms."


class TraceClock:
    """Reads the time of one row after the other.

    Args:
        location: What the trace is called in messages.
        unit_s: Seconds of one unit of a time that is a number, or None: seconds, or what the
            number of digits of a time since 1970 says.
    """

    def __init__(self, location: str, unit_s: float | None) -> None:
        self._location = location
        self._unit_s = unit_s
        self._first: float | None = None
        self._before = 0.0
        self._kind = ""

    @property
    def timed(self) -> bool:
        """Whether rows say when they came."""
        return self._kind in {"number", "date"}

    def seconds(self, number: int, value: Any) -> float:
        """Seconds from the first row to this one; 0 where no row has a time.

        Raises:
            InputError: a time that is missing, none, or earlier than the one before.
        """
        kind, time_s = ("none", 0.0) if value is None else self._read(number, value)
        if self._first is None:
            self._first, self._before, self._kind = time_s, time_s, kind
        self._check(number, kind, time_s)
        self._before = time_s
        return time_s - self._first

    def _check(self, number: int, kind: str, time_s: float) -> None:
        if kind != self._kind:
            missing = "none" in (kind, self._kind)
            what = "The time of arrival is missing" if missing else "Dates and numbers are mixed"
            raise self._error(number, f"{what}: other rows have another kind.", _UNIT_HINT)
        if abs(time_s - self._before) > _LONGEST_S:
            raise self._error(
                number, "The time is ten years and more from the one above it.", _UNIT_HINT
            )
        if time_s < self._before:
            raise self._error(
                number,
                f"The request arrives {self._before - time_s:g} s before the one above it.",
                "Sort the trace by time of arrival.",
            )

    def _read(self, number: int, value: Any) -> tuple[str, float]:
        try:
            amount = float(value)
        except (TypeError, ValueError, OverflowError):
            return "date", self._date(number, value)
        if not math.isfinite(amount) or isinstance(value, bool):
            raise self._error(number, f"{shown(value)} is no time.", "Write seconds or a date.")
        if self._unit_s is None:
            self._unit_s = next((unit for least, unit in _SINCE_1970 if amount >= least), 1.0)
        return "number", amount * self._unit_s

    def _date(self, number: int, value: Any) -> float:
        try:
            when = datetime.fromisoformat(str(value).strip())
        except ValueError:
            raise self._error(
                number,
                f"{shown(value)} is no time of arrival.",
                "Write seconds, or a date like 2023-11-16 18:17:03.97.",
            ) from None
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()

    def _error(self, number: int, sentence: str, hint: str) -> InputError:
        return InputError(sentence, hint=hint, location=f"{self._location}:{number}")
