"""Starts of other engines against kvplan: the script in validation/ and the page it made."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

VALIDATION = Path(__file__).parents[2] / "validation"


def test_the_page_is_what_the_script_prints(shared: Path) -> None:
    """Every cache of known geometry is equal within the print's rounding."""
    done = subprocess.run(
        [sys.executable, str(VALIDATION / "engines.py"), str(shared / "measurements")],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    equal = re.findall(r"(\d+) of (\d+) sizes equal", done.stdout)
    assert equal == [("23", "23"), ("5", "5"), ("93", "93")]
    assert done.stdout == (VALIDATION / "engines.md").read_text(encoding="utf-8")


def test_the_starts_lie_in_their_ranges_or_have_a_cause() -> None:
    """Rows of computed tokens: each beyond its range says why."""
    page = (VALIDATION / "engines.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \S+ \| .+ \| ([\d,]+) \| [\d,]+ \| ([\d,]+)–([\d,]+) \| .+ \| (.*) \|$",
                      page, re.MULTILINE)  # fmt: skip
    assert len(rows) >= 9
    for printed, low, high, cause in rows:
        inside = number(low) <= number(printed) <= number(high)
        assert inside or len(cause) > 20


def number(text: str) -> int:
    return int(text.replace(",", ""))
