"""Pools as SGLang allocated them: a selection that lives here, and every case there is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sglang_cases import case_of, computed, expected

_DATA = Path(__file__).parents[2] / "data" / "sglang_cases.json"
CASES: list[dict[str, Any]] = json.loads(_DATA.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['pool']}-{case['model']}")
def test_a_pool_takes_what_sglang_allocated(case: dict[str, Any]) -> None:
    assert computed(case) == expected(case)


def test_every_class_of_pool_is_covered() -> None:
    assert {case["pool"] for case in CASES} == {
        "MHATokenToKVPool", "MLATokenToKVPool", "DSATokenToKVPool", "SWAKVPool", "MambaPool",
        "ReqToTokenPool",
    }  # fmt: skip


def test_all_cases_are_equal(oracle: Callable[[str], Iterator[dict[str, Any]]]) -> None:
    counted: Counter[str] = Counter()
    wrong = []
    for row in oracle("sglang_cases.jsonl.gz"):
        case = case_of(row)
        counted[case["pool"]] += 1
        if computed(case) != expected(case):
            wrong.append((case, computed(case)))
    assert wrong == []
    assert counted == {
        "MHATokenToKVPool": 130,
        "MLATokenToKVPool": 7,
        "DSATokenToKVPool": 2,
        "SWAKVPool": 5,
        "MambaPool": 14,
        "ReqToTokenPool": 2,
    }
