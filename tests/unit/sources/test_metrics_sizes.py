"""Blocks of 0 tokens on a page of metrics are no size."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvplan.sources.metrics import read_metrics

FOLDER = Path(__file__).parents[2] / "data" / "metrics"


@pytest.mark.parametrize(
    ("name", "label"),
    [("vllm-0.33.0-dp.prom", 'block_size="'), ("sglang-0.5.10.prom", 'page_size="')],
)
def test_a_size_of_nothing_is_unknown(name: str, label: str, tmp_path: Path) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    _, found, after = text.partition(label)
    assert found
    stated = after.partition('"')[0]
    (tmp_path / name).write_text(text.replace(f'{label}{stated}"', f'{label}0"'))
    assert {record.block_size for record in read_metrics(str(FOLDER / name))} == {int(stated)}
    assert {record.block_size for record in read_metrics(str(tmp_path / name))} == {None}
