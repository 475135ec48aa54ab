"""The ledger as CSV: one row a line."""

from __future__ import annotations

import csv
from io import StringIO

from kvplan.ledger import total
from kvplan.plan import Plan
from kvplan.reports.clean import inert_cell

COLUMNS = ("name", "section", "bytes", "low", "high", "share", "confidence", "formula", "source")


def csv_report(plan: Plan) -> str:
    """Rows of `COLUMNS`; shares are fractions of the total.

    Text that a spreadsheet would take for a formula starts with an apostrophe.
    """
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    whole = total(plan.ledger)
    for line in plan.ledger:
        writer.writerow(
            (
                inert_cell(line.name),
                line.section,
                line.bytes,
                line.low,
                line.high,
                f"{line.bytes / whole:.6f}" if whole > 0 else "",
                line.confidence,
                inert_cell(line.formula),
                inert_cell(line.source),
            )
        )
    return out.getvalue()
