"""A whole measurement on the CPU: the tensors take what the plan says, to the byte."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from small_models import SMALL, small_model  # noqa: E402 - torch may be missing

from kvplan import api  # noqa: E402
from kvplan.errors import FactsError, NoDeviceError, UsageError  # noqa: E402
from kvplan.measure import session  # noqa: E402
from kvplan.measure.job import Job, job_of  # noqa: E402
from kvplan.measure.meters import CpuMeter, Meter, cpu_meter  # noqa: E402
from kvplan.measure.pages import page_tensors  # noqa: E402
from kvplan.measure.session import Surroundings, Wanted, run  # noqa: E402
from kvplan.measure.store import allocate  # noqa: E402
from kvplan.measure.tracker import Tracker  # noqa: E402
from kvplan.measured_plan import MeasuredPlan  # noqa: E402
from kvplan.models.spec import ModelSpec  # noqa: E402
from kvplan.models.weights import Weight  # noqa: E402
from kvplan.plan import Plan  # noqa: E402

ALONE = Surroundings(used=lambda: None, shared=False, consent=lambda _: False)


def planned(model: ModelSpec, **changes: Any) -> Plan:
    """A plan of a small model on a small device."""
    options = {"max_num_batched_tokens": 48, "max_num_seqs": 4}
    arguments = {"context": 64, "engine_options": options, "advice": False, **changes}
    return api.size(model, "custom:4GiB", **arguments)


def exact(comparison: MeasuredPlan) -> dict[str, int]:
    """Bytes measured less planned, of the lines that are arithmetic."""
    return {
        line.name: line.off_by
        for line in comparison.lines
        if line.off_by is not None and line.name.startswith(("weights.", "kv_cache"))
    }


@pytest.mark.parametrize("kind", ["cpu", "fake"])
@pytest.mark.parametrize("name", SMALL)
def test_weights_and_pool_to_the_byte(name: str, kind: Any) -> None:
    model = small_model(name)
    comparison = run(planned(model), model, Wanted(kind), ALONE)
    differences = exact(comparison)
    assert set(differences.values()) == {0}
    assert {"weights.embedding", "weights.attention", "kv_cache"} <= set(differences)
    # What the tracker saw come, not what the tensors say of themselves.
    planned_weights = sum(
        line.planned for line in comparison.lines if line.name.startswith("weights.")
    )
    assert comparison.figures["weights_allocated"] == planned_weights
    assert comparison.record.outcome == "started"
    assert comparison.figures["layer_step_peak"] > 0


@pytest.mark.parametrize("name", SMALL)
def test_no_line_of_weights_is_taken_from_the_plan(name: str) -> None:
    """Every line has matrices, or tables, of its own: none is as large as planned by decree."""
    model = small_model(name)
    own = {f"weights.{weight.component}" for weight in model.weights} | {"weights.rotary"}
    lines = {line.name for line in planned(model).ledger if line.name.startswith("weights.")}
    assert lines <= own


@pytest.mark.parametrize("place", ["rows", "columns"])
def test_a_matrix_of_another_shape_is_off(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: one row or column more, and its line says so."""
    shape_of = Weight.rank_shape

    def larger(self: Weight, **layout: Any) -> tuple[int, int]:
        rows, columns = shape_of(self, **layout)
        grown = self.component == "mlp"
        return rows + (grown and place == "rows"), columns + (grown and place == "columns")

    model = small_model("GQA")
    plan = planned(model)
    job = job_of(plan, model)
    with cpu_meter(2**32) as meter:
        true = allocate(job, meter.device).bytes_by_line()
        monkeypatch.setattr(Weight, "rank_shape", larger)
        found = allocate(job, meter.device).bytes_by_line()
    assert true == {
        line.name: line.bytes for line in plan.ledger if line.name.startswith("weights.")
    }
    assert {name for name in found if found[name] != true[name]} == {"weights.mlp"}


@pytest.mark.parametrize("name", [name for name in SMALL if name != "encoder-decoder"])
def test_a_rank_of_two(name: str) -> None:
    model = small_model(name)
    whole, half = (run(planned(model, tp=tp), model, Wanted("cpu"), ALONE) for tp in (1, 2))
    assert set(exact(half).values()) == {0}
    assert half.figures["weights_allocated"] < whole.figures["weights_allocated"]


@pytest.mark.parametrize("weights", ["fp8", "awq"])
def test_packed_weights(weights: str) -> None:
    from kvplan.architectures import quantize  # noqa: PLC0415

    model = quantize(small_model("GQA"), weights)
    comparison = run(planned(model), model, Wanted("cpu"), ALONE)
    assert set(exact(comparison).values()) == {0}
    assert comparison.figures["stand_in_for_packed_weights"] > 0


@pytest.mark.parametrize("name", SMALL)
def test_pages_by_the_shapes_of_tensors(name: str) -> None:
    """A second opinion on pages: what real tensors of a block's layers take."""
    job = job_of(planned(small_model(name)), small_model(name))
    for group in job.groups:
        for index in group.layer_indices:
            cache = next(c for c in job.model.layers[index].caches if c.kind == group.kind)
            size = sum(t.nbytes for t in page_tensors(cache, group, job, job.blocks))
            padding = group.padding_bytes if len(group.layer_indices) == 1 else 0
            assert size == job.blocks * (group.page_bytes - padding)


def test_fewer_layers_are_stated() -> None:
    model = small_model("GQA")
    comparison = run(planned(model), model, Wanted("cpu", layers=2), ALONE)
    assert (comparison.layers, comparison.layers_planned) == (2, 4)
    assert set(exact(comparison).values()) == {0}
    assert "Only 2 of the rank's 4 layers" in comparison.remarks[-1]
    assert comparison.record.weights_gib is None


def test_layers_that_do_not_fit_are_left_out() -> None:
    model = small_model("GQA")
    job = job_of(planned(model), model)
    with cpu_meter(int(job.weight_bytes() * 1.1)) as meter:
        smaller, remarks = session._scaled(job, Wanted("cpu"), meter)
    assert 1 <= len(smaller.layer_indices) < 4
    assert remarks
    with cpu_meter(1000) as meter, pytest.raises(FactsError, match="Not one layer fits"):
        session._scaled(job, Wanted("cpu"), meter)


def test_too_many_layers() -> None:
    model = small_model("GQA")
    with pytest.raises(UsageError, match="has 4 layers, not 9"):
        run(planned(model), model, Wanted("cpu", layers=9), ALONE)


def test_nothing_to_measure() -> None:
    model = small_model("GQA")
    plan = planned(model, kv_budget=10**9)
    with pytest.raises(UsageError, match="nothing to measure"):
        run(plan, model, Wanted("cpu"), ALONE)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu() -> None:
    model = small_model("GQA")
    with pytest.raises(NoDeviceError):
        run(planned(model), model, Wanted("cuda"), ALONE)


class Asked:
    """Remembers the question and answers it."""

    def __init__(self, *, answer: bool) -> None:
        self.answer = answer
        self.questions: list[str] = []

    def __call__(self, question: str) -> bool:
        self.questions.append(question)
        return self.answer


def _job_and_meter(share: float) -> tuple[Job, Meter]:
    model = small_model("GQA")
    job = job_of(planned(model), model)
    needed = job.weight_bytes() + job.pool_bytes
    return job, CpuMeter(Tracker(), int(needed / share), "card")


@pytest.mark.parametrize(
    ("share", "shared", "exhaust", "asks"),
    [
        (0.95, True, False, True),
        (0.95, False, False, False),
        (0.5, True, False, False),
        (0.5, True, True, True),
    ],
)
def test_asks_before_taking_most_of_a_shared_card(
    share: float, *, shared: bool, exhaust: bool, asks: bool
) -> None:
    job, meter = _job_and_meter(share)
    consent = Asked(answer=True)
    around = replace(ALONE, shared=shared, consent=consent)
    session._ask(job, meter, around, exhaust=exhaust)
    assert bool(consent.questions) is asks


def test_no_means_no() -> None:
    job, meter = _job_and_meter(0.95)
    around = replace(ALONE, shared=True, consent=Asked(answer=False))
    with pytest.raises(UsageError, match="Nothing was allocated"):
        session._ask(job, meter, around, exhaust=False)


def test_an_interrupt_frees_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    model = small_model("GQA")
    trackers: list[Tracker] = []
    enter = Tracker.__enter__

    def remembered(self: Tracker) -> Any:
        trackers.append(self)
        return enter(self)

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Tracker, "__enter__", remembered)
    monkeypatch.setattr("kvplan.measure.run.allocate_pool", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(planned(model), model, Wanted("cpu"), ALONE)
    assert trackers[0].peak > 0
    assert trackers[0].live == 0


def test_another_engine_is_refused() -> None:
    model = small_model("GQA")
    plan = planned(model)
    other = plan.model_copy(update={"engine": plan.engine.model_copy(update={"name": "sglang"})})
    with pytest.raises(UsageError, match="sglang can't be measured"):
        run(other, model, Wanted("cpu"), ALONE)
