"""Runtime constants that tests compute with by hand: round, and the same after every refit.

The figures are made up. All are sums of powers of two, so that a line is exact to the byte: a graph
of `NEWEST` is 4 MiB, and the 102 graphs of vLLM's defaults on a large GPU are 408 MiB.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from kvplan.engines.runtime import Range
from kvplan.engines.vllm import calibration
from kvplan.engines.vllm.calibration import Interval, Measured, RuntimeBand

MIB = 2**20

MEASURED = Measured(
    sizes={
        "tp": (1, 8),
        "pp": (1, 1),
        "vocabulary": (32_000, 256_000),
        "tokens": (1, 32_768),
        "requests": (1, 1024),
    },
    kinds={"experts": 10, "latent": 10, "recurrent": 10, "towers": 10},
    devices={"8.0": 10, "8.9": 10, "9.0": 40, "10.0": 10, "intel": 10},
)
NEWEST = RuntimeBand(
    engine="v1",
    since=(0, 20),
    until=(0, 30),
    logits_bytes=Range(14, 12, 20),
    hidden_bytes=Range(4, 2, 6),
    step_share=Range(1, 0.5, 1.5),
    fixed_gib=Range(0, 0, 0.125),
    multimodal_gib=Range(0.5, 0.25, 1.5),
    latent_gib=Range(0.5, 0, 5),
    compile_gib=Range(0.5, 0, 0.75),
    non_torch_gib=Range(0.375, 0.25, 0.5),
    non_torch_tp_gib=Range(2, 0.5, 2.5),
    non_torch_tp_small_gib=Range(0.75, 0.5, 1),
    non_torch_intel_gib=Range(1.5, 1, 2),
    graph_gib=Range(4 / 1024, 2 / 1024, 8 / 1024),
    interval=Interval(low=0.5, high=0.5, n=20),
    measured=MEASURED,
    source="vLLM 0.20-0.30: made for tests",
)
# 102 graphs are 816 MiB, and compiling is no part of the profile run.
BEFORE_020 = replace(
    NEWEST,
    since=(0, 17),
    until=(0, 19),
    compile_gib=Range(0, 0, 0),
    non_torch_gib=Range(0.25, 0.125, 0.5),
    non_torch_tp_small_gib=Range(0.5, 0.25, 0.75),
    graph_gib=Range(8 / 1024, 4 / 1024, 16 / 1024),
    source="vLLM 0.17-0.19: made for tests",
)
BEFORE_017 = replace(
    BEFORE_020,
    since=(0, 8),
    until=(0, 16),
    logits_bytes=Range(32, 16, 48),
    non_torch_gib=Range(0.125, 0.0625, 0.25),
    non_torch_tp_gib=Range(1, 0.5, 1.5),
    source="vLLM 0.8-0.16: made for tests",
)
BEFORE_V1 = replace(
    BEFORE_017,
    engine="v0",
    since=(0, 6),
    until=(0, 10),
    source="vLLM 0.6-0.10 with the engine before V1: made for tests",
)
BANDS = (BEFORE_V1, BEFORE_017, BEFORE_020, NEWEST)


def fix_calibration(monkeypatch: pytest.MonkeyPatch, *bands: RuntimeBand) -> None:
    """Plans with these bands (`BANDS` where none is given) until the test ends."""
    monkeypatch.setattr(calibration, "bands", lambda: bands or BANDS)
