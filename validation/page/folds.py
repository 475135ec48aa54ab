"""What cross-validation found: a small file that `fit_runtime.py` writes, and its table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from page.causes import cause_of
from page.markdown import header, percent, row

FILE = Path(__file__).parents[1] / "folds.json"
CALIBRATION = Path(__file__).parents[2] / "kvplan" / "engines" / "vllm" / "calibration.yaml"
_SHARES = ("median", "p90", "optimistic", "p90_of_card", "in_range", "half_width")


def table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Four rows a partition: the sweep, the others, all; and `overhead`."""
    yield from header(
        *("fitted on", "judged on", "n", "median", "p90", ">5 % too much"),
        *("p90 of the card", "in range", "median half-width of the card"),
        words=2,
    )
    for each in rows:
        shares = (percent(each[name], 2) for name in _SHARES)
        yield row(each["fitted_on"], each["judged_on"], str(each["n"]), *shares)


def far_off(starts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The starts that miss by more than a twentieth of the card when they are held out."""
    yield from header("start", "source", "check", "partitions", "of the card", "cause", words=6)
    for each in starts:
        low, high = (percent(share) for share in each["of_card"])
        yield row(
            each["start"],
            each["source"],
            each["check"],
            str(each["partitions"]),
            low if low == high else f"{low} to {high}",
            cause_of(each["known_by"], each["check"]),
        )


def fingerprint(path: Path = CALIBRATION) -> str:
    """The figures of the calibration file, whatever its layout and comments, as a digest."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read(path: Path = FILE) -> dict[str, Any]:
    """The file."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
