"""The planning code of 24 releases, 0.9.2 to 0.32.0, on recorded layer specs, without tolerance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from vllm_specs import planned_by_release

Rows = Callable[[str], Iterator[dict[str, Any]]]


def test_every_release_is_equal(oracle: Rows) -> None:
    rows = list(oracle("vllm_hist_cases.jsonl.gz"))
    wrong = [
        f"{row['vllm_version']} {row['model']}: {got} is not {row['out']}"
        for row in rows
        for got in [planned_by_release(row)]
        if got != row["out"]
    ]
    assert wrong == []
    assert len(rows) == 2922
    assert len({row["vllm_version"] for row in rows}) == 24
