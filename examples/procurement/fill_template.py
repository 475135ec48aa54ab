"""Fills a team's own spreadsheet: what each line of it needs; nothing else is touched.

    python examples/procurement/fill_template.py [TEMPLATE.xlsx [FILLED.xlsx]]

The template is whatever a team uses. This one has a sheet "Demand" with a row for each service; the
script reads its first columns, writes the columns named in `RESULTS`, and leaves the team's own
formulas (the money) and formats as they are. Needs openpyxl. Runs offline, from the bundled specs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import openpyxl

import kvplan

HERE = Path(__file__).parent
SHEET = "Demand"
RESULTS = ("Requests a replica", "Replicas", "GPUs", "Headroom", "What kvplan says")


def columns(sheet: Any) -> dict[str, int]:
    """The number of each column by its heading."""
    return {str(cell.value): cell.column for cell in sheet[1] if cell.value}


def fill(sheet: Any, row: int, at: dict[str, int]) -> None:
    """Plans one row of the sheet and writes what it takes."""

    def given(name: str) -> Any:
        return sheet.cell(row, at[name]).value

    plan = kvplan.size(
        given("Model"),
        given("GPU"),
        engine=given("Engine"),
        tp=given("GPUs a replica"),
        context=given("Tokens a request"),
        offline=True,
        advice=False,
    )
    asked = given("Requests at once")
    each = plan.capacity.requests if plan.capacity else 0
    replicas = -(-asked // each) if each else None
    held = each * (replicas or 0)
    values = {
        "Requests a replica": each,
        "Replicas": replicas,
        "GPUs": replicas and replicas * plan.gpu.count,
        "Headroom": held / asked - 1 if held else None,
        "What kvplan says": plan.reasons[0].message if not each and plan.reasons else "holds them",
    }
    for name in RESULTS:
        sheet.cell(row, at[name]).value = values[name]


def main() -> None:
    """Reads the template, writes the filled copy beside where the script is run."""
    template = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "team_template.xlsx"
    filled = Path(sys.argv[2]) if len(sys.argv) > 2 else Path("filled.xlsx")
    book = openpyxl.load_workbook(template)
    sheet = book[SHEET]
    at = columns(sheet)
    for row in range(2, sheet.max_row + 1):
        if sheet.cell(row, at["Model"]).value:
            fill(sheet, row, at)
            shown = [sheet.cell(row, at[name]).value for name in ("Service", *RESULTS[:4])]
            print("{:<18} {} a replica, {} replicas, {} GPUs, {:.0%} to spare".format(*shown))
    book.save(filled)
    print(f"Written to {filled}.")


if __name__ == "__main__":
    main()
