"""Makes `sglang_cases.json` from a full collection of reference cases (see README.md).

python tests/data/compact_sglang_cases.py CASES.jsonl.gz
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from sglang_cases import case_of, computed, expected

TARGET = Path(__file__).with_name("sglang_cases.json")
_COVERED = ("dtype", "ssm_dtype", "page_size", "tp", "model")


def traits(case: dict[str, Any]) -> set[tuple[Any, ...]]:
    """What a selection has to cover: every value of every argument, in every class of pool."""
    return {(case["pool"], name, case[name]) for name in _COVERED if name in case}


def select(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The fewest cases, greedily, that have every trait that some case has."""
    chosen: list[dict[str, Any]] = []
    missing = set().union(*(traits(case) for case in cases))
    while missing:
        best = max(cases, key=lambda case: len(traits(case) & missing))
        missing -= traits(best)
        chosen.append(best)
    return sorted(chosen, key=lambda case: (case["pool"], case["model"], case["tensor_bytes"]))


def main() -> None:
    """Writes one line a case, so that changes can be read."""
    with gzip.open(sys.argv[1], "rt", encoding="utf-8") as lines:
        cases = [case_of(json.loads(line)) for line in lines]
    chosen = select(cases)
    for case in chosen:
        if computed(case) != expected(case):
            sys.exit(f"{case}: {computed(case)}")
    text = ",\n".join(f" {json.dumps(case)}" for case in chosen)
    TARGET.write_text(f"[\n{text}\n]\n", encoding="utf-8")
    sys.stdout.write(f"{len(chosen)} of {len(cases)} cases\n")


if __name__ == "__main__":
    main()
