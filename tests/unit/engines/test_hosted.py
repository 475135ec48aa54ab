"""Ledger lines with a host's own factors and offset."""

from __future__ import annotations

import pytest
from real_models import device, full, toy

from kvplan.engines.base import Setup
from kvplan.engines.vllm.deployment import VllmDeployment
from kvplan.engines.vllm.engine import Vllm
from kvplan.engines.vllm.hosted import corrected
from kvplan.host_profile import Factor, HostProfile, Offset
from kvplan.ledger import Draft
from kvplan.units import GIB

PROFILE = HostProfile(
    name="host profile host.yaml",
    engine="vllm",
    gpus=("H100",),
    starts=4,
    weights=Factor(value=1.1, starts=4),
    activation=Factor(value=0.5, starts=3),
    non_torch=Offset(gib=0.25, starts=1),
    graphs=Factor(value=2, starts=2),
)


def prepared(profile: HostProfile | None, version: str = "0.30.0") -> VllmDeployment:
    model = toy(full(), full(), vocab_size=50_000, hidden_size=1024, intermediate_size=4096)
    return Vllm().prepare(
        Setup(model=model, gpu=device(), version=version, context=1024, profile=profile)
    )


def drafts(made: VllmDeployment) -> dict[str, Draft]:
    assert made.stages is not None
    return {draft.name: draft for draft in (*made.stages[0].budget, *made.stages[0].outside)}


def test_each_part_is_corrected_and_names_its_source() -> None:
    before, after = drafts(prepared(None)), drafts(prepared(PROFILE))
    assert before.keys() == after.keys()
    changed = {
        "activation_peak": round(before["activation_peak"].value() * 0.5),
        "compilation": round(before["compilation"].value() * 0.5),
        "non_torch": before["non_torch"].value() + GIB // 4,
        "cuda_graphs": before["cuda_graphs"].value() * 2,
    }
    for name, value in changed.items():
        assert after[name].value() == pytest.approx(value, abs=1)
        assert after[name].source.startswith("host profile host.yaml, ")
        after[name].line()  # its value lies within its range
    assert after["non_torch"].source.startswith("host profile host.yaml, 1 start; ")
    assert after["cuda_context"] == before["cuda_context"]


def test_weights_take_their_factor_and_stay_out_of_the_range() -> None:
    before, after = prepared(None), prepared(PROFILE)
    line = next(name for name in drafts(before) if name.startswith("weights."))
    assert drafts(after)[line].value() == pytest.approx(drafts(before)[line].value() * 1.1, abs=1)
    assert before.stages is not None
    assert after.stages is not None
    assert after.stages[0].fitted < before.stages[0].fitted + GIB


def test_graphs_outside_the_budget_never_take_more_than_there_is() -> None:
    many = PROFILE.model_copy(update={"graphs": Factor(value=10, starts=9)})
    graphs = drafts(prepared(many, version="0.16.0"))["cuda_graphs"]
    assert graphs.section == "outside"
    draft = Draft(
        "cuda_graphs",
        "outside",
        "min(bytes, room_bytes)",
        {"bytes": 5, "room_bytes": 12},
        source="by hand",
        confidence="calibrated",
    )
    (line,) = corrected((draft,), many)
    assert line.value() == 12


def test_an_offset_below_zero_stops_at_nothing() -> None:
    less = PROFILE.model_copy(update={"non_torch": Offset(gib=-100, starts=3)})
    assert drafts(prepared(less))["non_torch"].value() == 0


def test_a_part_without_starts_is_left_alone() -> None:
    empty = HostProfile(engine="vllm", gpus=("H100",), starts=1)
    assert drafts(prepared(empty)) == drafts(prepared(None))
