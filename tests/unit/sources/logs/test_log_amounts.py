"""Amounts below 0: what no engine means is unknown, what engines print so is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvplan.measurement import Measurement
from kvplan.sources.logs.reader import starts_in
from kvplan.sources.text_lines import opened

LOG = """\
INFO 06-01 10:00:00 [api_server.py:100] vLLM API server version 0.30.0
INFO 06-01 10:00:09 [model_runner.py:10] Model loading took {weights} GiB memory and 9 seconds
INFO 06-01 10:00:30 [gpu_worker.py:100] Available KV cache memory: {cache} GiB
"""


def record_of(folder: Path, weights: str, cache: str) -> Measurement:
    path = folder / "serve.log"
    path.write_text(LOG.format(weights=weights, cache=cache), encoding="utf-8")
    with opened(str(path)) as stream:
        (record,) = starts_in(stream, "serve.log")
    return record


@pytest.mark.parametrize(("weights", "expected"), [("5.79", 5.79), ("0.0", 0.0), ("-1.0", None)])
def test_weights(weights: str, expected: float | None, tmp_path: Path) -> None:
    assert record_of(tmp_path, weights, "13.72").weights_gib == expected


def test_what_is_left_for_the_cache_may_be_less_than_nothing(tmp_path: Path) -> None:
    assert record_of(tmp_path, "5.79", "-2.14").available_kv_gib == -2.14
