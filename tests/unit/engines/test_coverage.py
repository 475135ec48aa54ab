"""Which starts the calibration covers, and what an input beyond it does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_models import device, full, toy

from kvplan.engines.base import Setup
from kvplan.engines.vllm.calibration import Measured, nearest
from kvplan.engines.vllm.coverage import (
    LEAST_STARTS,
    STEP,
    Conditions,
    conditions,
    coverage,
    device_of,
)
from kvplan.engines.vllm.engine import Vllm
from kvplan.models.caches import LatentCache
from kvplan.plan import Parallelism

MEASURED = Measured(
    sizes={
        "tp": (1, 8),
        "pp": (1, 1),
        "vocabulary": (32_000, 256_000),
        "tokens": (512, 32_768),
        "requests": (1, 1024),
    },
    kinds={"experts": 10, "latent": LEAST_STARTS - 1},
    devices={"9.0": 40, "10.0": LEAST_STARTS - 1},
)
BAND = replace(nearest((0, 30), v0=False), measured=MEASURED)
KNOWN = Conditions(
    sizes={"tp": 2, "pp": 1, "vocabulary": 128_256, "tokens": 8192, "requests": 256},
    kinds=("experts",),
    device="9.0",
)


def found(version: tuple[int, ...] = (0, 30), **changes: Any) -> tuple[float, tuple[str, ...]]:
    made = coverage(replace(KNOWN, **changes), BAND, version)
    return made.factor, made.beyond


def test_a_start_like_those_measured_is_covered() -> None:
    assert found() == (1, ())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"device": "10.0"}, "compute capability 10.0"),
        ({"device": "12.0"}, "compute capability 12.0"),
        ({"device": "amd"}, "devices of amd"),
        ({"kinds": ("latent",)}, "latent attention"),
        ({"kinds": ("towers",)}, "towers for images or sound"),
        ({"kinds": ("recurrent",)}, "recurrent layers"),
        ({"sizes": {"tp": 16}}, "tensor parallel size 16 (measured up to 8)"),
        ({"sizes": {"pp": 2}}, "pipeline stages 2 (measured up to 1)"),
        ({"sizes": {"vocabulary": 16_000}}, "vocabulary 16,000 (measured from 32,000)"),
        ({"sizes": {"tokens": 65_536}}, "max_num_batched_tokens 65,536 (measured up to 32,768)"),
        ({"sizes": {"requests": 2000}}, "max_num_seqs 2,000 (measured up to 1,024)"),
    ],
)
def test_one_input_beyond_widens_by_one_step_and_is_named(
    changes: dict[str, Any], words: str
) -> None:
    assert found(**changes) == (1 + STEP, (words,))


def test_a_release_beyond_is_named_with_the_last_measured() -> None:
    assert found((0, 33, 0)) == (1 + STEP, ("vLLM 0.33.0 (measured up to 0.30)",))
    assert found((0, 30, 9)) == (1, ())


def test_a_size_widens_by_a_step_a_doubling_and_inputs_add_up() -> None:
    assert found(sizes={"tokens": 8 * 32_768})[0] == 1 + 3 * STEP
    factor, beyond = found(sizes={"tokens": 8 * 32_768}, device="amd")
    assert factor == 1 + 4 * STEP
    assert len(beyond) == 2


@given(tokens=st.integers(1, 2**24), more=st.integers(0, 2**20), tp=st.integers(1, 64))
def test_further_out_is_never_narrower(tokens: int, more: int, tp: int) -> None:
    near, _ = found(sizes={"tokens": max(512, tokens), "tp": tp})
    far, _ = found(sizes={"tokens": max(512, tokens) + more, "tp": tp})
    assert 1 <= near <= far


def test_below_the_smallest_is_one_step_however_far() -> None:
    assert found(sizes={"tokens": 1})[0] == 1 + STEP
    assert found(sizes={"tokens": 256})[0] == 1 + STEP


def test_a_little_below_the_smallest_is_a_little_wider() -> None:
    factor, beyond = found(sizes={"vocabulary": 31_000})
    assert 1 < factor < 1 + STEP / 10
    assert beyond == ("vocabulary 31,000 (measured from 32,000)",)


def test_a_bare_amount_of_memory_stands_for_an_h100() -> None:
    assert device_of("custom", (9, 0)) == "9.0"
    assert device_of("nvidia", (8, 9)) == "8.9"
    assert device_of("amd", (9, 0)) == "amd"


def made(model: Any, **changes: Any) -> Any:
    setup = Setup(model=model, gpu=device(), version="0.30.0", context=1024, **changes)
    prepared = Vllm().prepare(setup)
    assert prepared.stages is not None
    return prepared


def test_conditions_of_a_model() -> None:
    latent = toy(LatentCache(latent_dim=512, rope_dim=64), vocab_size=50_000)
    settings = made(latent, options={"max_num_seqs": 64, "max_num_batched_tokens": 4096}).settings
    assert conditions(latent, settings, tp=2, pp=3, device="8.0") == Conditions(
        sizes={"tp": 2, "pp": 3, "vocabulary": 50_000, "tokens": 4096, "requests": 64},
        kinds=("latent",),
        device="8.0",
    )


def test_what_other_releases_saw_does_not_count() -> None:
    """Hopper and two ranks are measured before 0.20 and from 0.27 on, not between."""
    between = nearest((0, 26), v0=False)
    start = replace(KNOWN, kinds=(), sizes={**KNOWN.sizes, "vocabulary": 200_000})
    found = coverage(start, between, (0, 26))
    assert found.beyond == ("compute capability 9.0",)
    assert found.releases == "0.20-0.26"
    assert coverage(start, nearest((0, 19), v0=False), (0, 19)).beyond == ()


def test_a_plan_beyond_says_so_and_has_a_wider_range() -> None:
    model = toy(full(), full(), vocab_size=150_000)
    near = made(model)
    far = made(model, parallelism=Parallelism(pp=2))
    assert near.uncovered == ()
    assert far.uncovered == ("pipeline stages 2 (measured up to 1)",)
    ranges = [prepared.stages[0].interval for prepared in (near, far)]
    assert ranges[1].low == ranges[0].low * (1 + STEP)
    reasons = {reason.code: reason for reason in far.answer(1024, None).reasons}
    assert reasons["runtime_not_calibrated"].message == (
        "Runtime memory was fitted on starts of vLLM 0.27-0.30 without pipeline stages 2 (measured"
        " up to 1); its range is widened."
    )
    assert "runtime_not_calibrated" not in {r.code for r in near.answer(1024, None).reasons}
