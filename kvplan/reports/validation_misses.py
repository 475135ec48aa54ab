"""The records that are off, a table a check, worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kvplan.reports.clean import clean
from kvplan.reports.text_console import INDENT, table
from kvplan.reports.validation_tables import percent, signed
from kvplan.validation import CheckedRecord, KvCheck

_MOST_SHOWN = 10
# Closer than this is no miss.
_CLOSE = 0.02


def miss_tables(records: Sequence[CheckedRecord], *, ascii_only: bool) -> Iterator[Table]:
    """One table for each check that missed something."""
    for made in (
        _memory_table(
            records, "Cache from flags alone", lambda each: each.end_to_end, ascii_only=ascii_only
        ),
        _memory_table(
            records, "Cache from logged weights", lambda each: each.overhead, ascii_only=ascii_only
        ),
        _weights_table(records, ascii_only=ascii_only),
        _geometry_table(records, ascii_only=ascii_only),
        _verdict_table(records, ascii_only=ascii_only),
    ):
        if made.row_count:
            yield made


def _memory_table(
    records: Sequence[CheckedRecord],
    title: str,
    check_of: Callable[[CheckedRecord], KvCheck | None],
    *,
    ascii_only: bool,
) -> Table:
    numbers = ("Predicted", "Logged", "Error", "Of the card")
    pairs = [(each, check) for each in records if (check := check_of(each)) and _is_off(check)]
    heading = _heading(f"{title}, GiB", len(pairs))
    made = table(words=(heading,), numbers=numbers, ascii_only=ascii_only)
    for each, check in sorted(pairs, key=lambda pair: -pair[1].share_of_card)[:_MOST_SHOWN]:
        made.add_row(
            _named(each, check.cause),
            f"{check.predicted_kv_gib:.2f}",
            f"{check.measured_kv_gib:.2f}",
            signed(check.relative_error),
            percent(check.share_of_card),
        )
    return made


def _is_off(check: KvCheck) -> bool:
    return check.relative_error is None or abs(check.relative_error) > _CLOSE


def _weights_table(records: Sequence[CheckedRecord], *, ascii_only: bool) -> Table:
    numbers = ("Predicted", "Logged", "Error")
    pairs = [
        (each, check)
        for each in records
        if (check := each.weights) and abs(check.relative_error) > _CLOSE
    ]
    heading = _heading("Weights, GiB", len(pairs))
    made = table(words=(heading,), numbers=numbers, ascii_only=ascii_only)
    for each, check in sorted(pairs, key=lambda pair: -abs(pair[1].relative_error))[:_MOST_SHOWN]:
        made.add_row(
            _named(each),
            f"{check.predicted_weights_gib:.2f}",
            f"{check.measured_weights_gib:.2f}",
            signed(check.relative_error),
        )
    return made


def _geometry_table(records: Sequence[CheckedRecord], *, ascii_only: bool) -> Table:
    numbers = ("Predicted tokens", "Logged", "Error")
    pairs = [
        (each, check)
        for each in records
        if (check := each.geometry) and not check.within_print_rounding
    ]
    heading = _heading("Not reachable from the printed bytes", len(pairs))
    made = table(words=(heading,), numbers=numbers, ascii_only=ascii_only)
    for each, check in sorted(pairs, key=lambda pair: -abs(pair[1].relative_error))[:_MOST_SHOWN]:
        logged = check.measured_tokens
        flag = check.reachable_with
        remark = f"reachable with {flag}" if flag else "no flag that it leaves out explains it"
        made.add_row(
            _named(each, remark),
            f"{check.low_tokens:,} to {check.high_tokens:,}",
            "-" if logged is None else f"{logged:,}",
            signed(check.relative_error),
        )
    return made


def _verdict_table(records: Sequence[CheckedRecord], *, ascii_only: bool) -> Table:
    made = table(
        words=("Wrong verdicts", "Predicted", "Real", "From"), numbers=(), ascii_only=ascii_only
    )
    for each in records:
        if each.verdict and not each.verdict.agrees and made.row_count < _MOST_SHOWN:
            basis = "flags" if each.verdict.basis == "flags" else "logged bytes"
            made.add_row(_named(each), each.verdict.predicted, each.verdict.measured, basis)
    return made


def _heading(title: str, count: int) -> str:
    """The title, and how many there are where not all are shown."""
    return f"{title}: the worst {_MOST_SHOWN} of {count}" if count > _MOST_SHOWN else title


def _named(record: CheckedRecord, remark: str = "") -> Padding:
    """The record's name, and below it what it is of and what is to be said of it."""
    text = Text(clean(record.id), overflow="fold")
    named = ", ".join(clean(part) for part in (record.model, record.engine, record.gpu) if part)
    if named:
        text.append(f"\n{named}", style="dim")
    if remark:
        text.append(f"\n{clean(remark)}", style="cyan")
    return Padding(text, (0, 0, 0, INDENT))
