"""Measurement records to stdout, in the form asked for or the one that suits where they go."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from kvplan.cli.output import write

if TYPE_CHECKING:
    from kvplan.measurement import Measurement


def write_records(
    records: Iterable[Measurement], report_format: Literal["text", "json", "jsonl"] | None
) -> int:
    """Writes the records and says how many there were; JSON lines as soon as each is known."""
    wanted = report_format or _suiting()
    if wanted == "jsonl":
        count = 0
        for record in records:
            write(record.json_line() + "\n", None)
            count += 1
        return count

    from kvplan.reports.measurements import measurements_json, measurements_text

    found = tuple(records)
    if wanted == "json":
        write(measurements_json(found), None)
        return len(found)

    from kvplan.cli.terminal import terminal

    look = terminal()
    text = measurements_text(found, width=look.width, color=look.color, ascii_only=look.ascii_only)
    write(text, None)
    return len(found)


def _suiting() -> Literal["text", "jsonl"]:
    return "text" if sys.stdout is not None and sys.stdout.isatty() else "jsonl"
