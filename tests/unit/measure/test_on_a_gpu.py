"""The way over a GPU, on a card that is played: every call as torch takes it, every line judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from simulated_cuda import MIB, SimulatedCuda, simulated  # noqa: E402 - torch may be missing
from small_models import SMALL, small_model  # noqa: E402

from kvplan import api  # noqa: E402
from kvplan.errors import FactsError, NoDeviceError, UsageError  # noqa: E402
from kvplan.measure import meters, session  # noqa: E402
from kvplan.measure.session import Surroundings, Wanted, run  # noqa: E402
from kvplan.measured_plan import MeasuredLine, MeasuredPlan  # noqa: E402

GIB = 2**30


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedCuda]:
    """A free card of 4 GiB."""
    with simulated(SimulatedCuda(total=4 * GIB), monkeypatch) as simulation:
        yield simulation


def around(card: SimulatedCuda, **changes: Any) -> Surroundings:
    """As NVML would tell of the card."""
    alone = Surroundings(used=card.taken, shared=False, consent=lambda _: False)
    return replace(alone, **changes)


def measured(
    card: SimulatedCuda, name: str = "GQA", wanted: Wanted | None = None, **changes: Any
) -> MeasuredPlan:
    """A small model's plan, measured on the card."""
    model = small_model(name)
    plan = api.size(
        model,
        "custom:4GiB",
        context=64,
        engine_options={"max_num_batched_tokens": 48, "max_num_seqs": 4},
        advice=False,
    )
    return run(plan, model, wanted or Wanted("cuda"), around(card, **changes))


def lines(found: MeasuredPlan) -> dict[str, MeasuredLine]:
    return {line.name: line for line in found.lines}


@pytest.mark.parametrize("name", SMALL)
def test_every_line_that_can_be_is_measured(name: str, card: SimulatedCuda) -> None:
    found = lines(measured(card, name))
    told = {line.name for line in found.values() if line.measured is not None}
    assert {"kv_cache", "activation_peak", "non_torch", "cuda_context", "device_total"} <= told
    assert {line for line in found if line.startswith("weights.")} <= told
    assert found["kv_cache"].off_by == 0
    assert found["device_total"].measured == 4 * GIB


def test_what_lies_outside_torch_is_told_apart(card: SimulatedCuda) -> None:
    found = lines(measured(card))
    assert found["cuda_context"].measured == card.context
    assert found["non_torch"].measured == card.libraries


def test_the_rest_is_tried_to_the_last_mebibyte(card: SimulatedCuda) -> None:
    comparison = measured(card)
    beyond = comparison.figures["beyond_pool"]
    taken = card.context + card.libraries + comparison.figures["pool_allocated"]
    taken += comparison.figures["weights_allocated"]
    assert card.total - taken - 8 * MIB <= beyond <= card.total - taken
    assert lines(comparison)["free_beside_pool"].measured == beyond


def test_all_of_it_is_given_back(card: SimulatedCuda) -> None:
    measured(card)
    assert card.tracker.live == 0
    assert card.reserved() == 0
    assert card.calls[-1] == "empty_cache"


def test_the_record_names_the_device(card: SimulatedCuda) -> None:
    record = measured(card).record
    extra = record.model_extra or {}
    assert (extra["measured_on"], record.gpu_total_gib) == (card.name, 4.0)
    assert record.non_torch_gib == card.libraries / GIB


def test_a_pool_that_does_not_fit_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with simulated(SimulatedCuda(total=4 * GIB, others=2 * GIB), monkeypatch) as card:
        comparison = measured(card, shared=True, consent=lambda _: True)
    assert lines(comparison)["kv_cache"].outcome == "off"
    assert not comparison.agrees
    assert comparison.record.outcome != "started"
    assert card.tracker.live == 0


def test_weights_that_do_not_fit_are_fewer_layers(
    card: SimulatedCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_WEIGHTS_SHARE", 1.6 * MIB / (card.total - card.context))
    comparison = measured(card)
    assert 1 <= comparison.layers < comparison.layers_planned
    assert "layers were allocated" in comparison.remarks[-1]
    assert comparison.record.weights_gib is None


def test_without_nvml_the_driver_counts(card: SimulatedCuda) -> None:
    """ROCm has no NVML: no line for the context, all else as torch and the driver tell it."""
    found = lines(measured(card, used=lambda: None, shared=None))
    assert found["cuda_context"].measured is None
    assert found["non_torch"].measured == card.libraries
    assert found["kv_cache"].off_by == 0


def test_without_nvml_others_are_told_by_what_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    questions: list[str] = []
    with (
        simulated(SimulatedCuda(total=8 * GIB, others=3 * GIB), monkeypatch) as card,
        pytest.raises(UsageError, match="others use this device"),
    ):
        measured(card, used=lambda: None, shared=None, consent=questions.append)
    assert "used by others" in questions[0]
    assert card.tracker.live == 0


def test_an_interrupt_gives_all_back(card: SimulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        assert card.tracker.live > 0
        raise KeyboardInterrupt

    monkeypatch.setattr("kvplan.measure.run.allocate_pool", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measured(card)
    assert card.tracker.live == 0
    assert card.reserved() == 0


@pytest.mark.parametrize(
    "error",
    [
        torch.AcceleratorError("CUDA error: no kernel image is available for execution"),
        RuntimeError("HIP error: invalid device function"),
        RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling cublasCreate"),
    ],
)
def test_a_device_that_fails_is_no_bug(card: SimulatedCuda, error: RuntimeError) -> None:
    card.fails = error
    with pytest.raises(FactsError, match="failed: ") as caught:
        measured(card)
    assert caught.value.exit_code == 3
    assert caught.value.hint


def test_an_error_of_ours_stays_one(card: SimulatedCuda) -> None:
    card.fails = RuntimeError("shapes do not match")
    with pytest.raises(RuntimeError, match="shapes"):
        measured(card)


def test_no_room_for_a_context(card: SimulatedCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise torch.AcceleratorError("CUDA error: out of memory\nCompile with TORCH_USE_CUDA_DSA")

    monkeypatch.setattr(torch.cuda, "synchronize", full)
    with pytest.raises(FactsError, match="GPU 0 failed: 'CUDA error: out"):
        measured(card)


def test_a_second_gpu_is_not_there(card: SimulatedCuda) -> None:
    with pytest.raises(NoDeviceError, match="sees no GPU 1"):
        measured(card, wanted=Wanted("cuda", index=1))
    with pytest.raises(NoDeviceError):
        meters.describe(1)
    assert meters.describe(0) == (card.name, 4 * GIB)
