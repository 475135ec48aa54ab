"""Rows of a recorded trace → requests. Takes any iterable; knows no file format.

Every row is checked: a trace that is wrong somewhere is refused with the row's number, because a
plan on half of a trace is a wrong plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kvplan.errors import InputError, shown
from kvplan.units import MAX_TOKENS
from kvplan.workloads.requests import ContentBlocks, Request
from kvplan.workloads.trace_clock import TraceClock

FIELDS = ("arrival", "prompt", "output", "blocks", "session", "turn")
"""What a row may say of a request."""

Row: TypeAlias = tuple[int, Sequence[Any]]
"""The number of its line, and one value for each of `FIELDS`; None where there is none."""


@dataclass(slots=True)
class Tally:
    """What was read so far, for reports.

    Attributes:
        requests: Requests given on.
        failed: Rows without an output, which are left out: the request failed or was cut off.
        last_s: Arrival of the last request.
        timed: The trace says when requests came.
    """

    requests: int = 0
    failed: int = 0
    last_s: float = 0.0
    timed: bool = False


@dataclass(frozen=True, slots=True)
class TraceReading:
    """How rows are to be understood.

    Attributes:
        location: What the trace is called in messages.
        unit_s: Seconds of one unit of a time that is a number; None: seconds, or as many digits
            as a time since 1970 has say.
        block_tokens: Tokens of a block of content.
        tally: Counts while rows are read.
    """

    location: str
    unit_s: float | None = None
    block_tokens: int = 512
    tally: Tally = field(default_factory=Tally)

    def requests(self, rows: Iterable[Row]) -> Iterator[Request]:
        """The requests, their times counted from the first one's.

        Raises:
            InputError: a value that is missing, no number, negative or out of order, with its
                line; or no request at all.
        """
        clock, tally = TraceClock(self.location, self.unit_s), self.tally
        for number, row in rows:
            request = self._request(number, row, clock)
            tally.timed = clock.timed
            if request is None:
                tally.failed += 1
                continue
            tally.requests += 1
            tally.last_s = request.arrival_s
            yield request
        if not tally.requests:
            raise self._nothing()

    def _nothing(self) -> InputError:
        failed = f": all {self.tally.failed:,} rows lack tokens" if self.tally.failed else ""
        return InputError(
            f"The trace has no request{failed}.",
            hint="It needs one request a line, with at least 1 token of prompt and of output.",
            location=self.location,
        )

    def _request(self, number: int, row: Sequence[Any], clock: TraceClock) -> Request | None:
        arrival, prompt, output, blocks, session, turn = row
        time_s = clock.seconds(number, arrival)
        prompt_tokens = self._whole(number, "prompt", prompt)
        output_tokens = self._whole(number, "output", output)
        if not prompt_tokens or not output_tokens:
            return None
        return Request(
            time_s,
            prompt_tokens,
            output_tokens,
            session=None if session is None else str(session),
            turn=0 if turn is None else self._whole(number, "turn", turn),
            blocks=None if blocks is None else self._blocks(number, blocks),
        )

    def _whole(self, number: int, what: str, value: Any) -> int:
        count = _as_int(value)
        if count is not None and 0 <= count <= MAX_TOKENS:
            return count
        if value is None or value == "":
            said = f"The {what} is missing."
        elif count is None:
            said = f"The {what} is {shown(value)}, which is no whole number."
        else:
            size = "negative" if count < 0 else "more than any request has"
            said = f"The {what} is {shown(count)}: {size}."
        raise self._error(number, said, "Every request needs whole numbers of tokens.")

    def _blocks(self, number: int, value: Any) -> ContentBlocks:
        if not isinstance(value, list) or not all(type(one) is int for one in value):
            raise self._error(
                number,
                "The ids of the prompt's blocks are no list of whole numbers.",
                "Write them as [0, 1, 2].",
            )
        return ContentBlocks(tuple(value), self.block_tokens)

    def _error(self, number: int, sentence: str, hint: str) -> InputError:
        return InputError(sentence, hint=hint, location=f"{self.location}:{number}")


def _as_int(value: Any) -> int | None:
    """A whole number from what CSV and JSON have for one, or None."""
    if type(value) is int:
        return value
    try:
        # Some writers have 374.0 for 374.
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() and not isinstance(value, bool) else None
