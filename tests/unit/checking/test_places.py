"""What can't be planned is said at the key that is to blame."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenario_files import checked


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ("gpu: H1000", "gpu: H1000"),
        ("gpu: A100", "gpu: A100"),
        ("model: nobody/nothing", "model: nobody"),
        ("kv_dtype: fp9", "kv_dtype"),
        ("weights: int3", "weights"),
        ("dtype: float12", "dtype"),
        ("options: {max_num_sec: 4}", "options"),
        ("workload: {trace: monday.jsonl}", "workload"),
    ],
)
def test_an_error_is_at_its_key(body: str, key: str, tmp_path: Path) -> None:
    result = checked(tmp_path, f"context: 8k\nconcurrency: 4\n{body}")
    assert result.problem is not None
    line = Path(result.place.file).read_text(encoding="utf-8").split("\n")[result.place.line - 1]
    assert line.strip().startswith(key)
