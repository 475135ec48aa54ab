"""Two results, figure by figure: what became better, what worse, and that nothing else differs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from kvplan.check_diff import Diff
from kvplan.check_result import CheckResult, Cost, Place, ScenarioResult
from kvplan.planning.diff import diff
from kvplan.reports.diff_markdown import MARKER, diff_markdown
from kvplan.reports.diff_text import diff_text
from tests.sample_plans import fits, refused


def result(**changes: object) -> ScenarioResult:
    plan = fits()
    base = ScenarioResult(
        name="chat",
        place=Place(file="chat.yaml", line=3, column=3),
        outcome="passed",
        verdict="fits",
        requests=50,
        cost=Cost(currency="USD", per_hour=10.0, per_request=0.004),
        plan=plan,
    )
    return base.model_copy(update=changes)


def compared(old: ScenarioResult, new: ScenarioResult) -> Diff:
    return diff(
        CheckResult(scenarios=(old,)), CheckResult(scenarios=(new,)), names=("main", "here")
    )


def changed() -> ScenarioResult:
    plan = fits()
    assert plan.capacity is not None
    capacity = plan.capacity.model_copy(update={"tokens": plan.capacity.tokens - 1600})
    engine = plan.engine.model_copy(
        update={"version": "0.34.0", "options": {**plan.engine.options, "max_num_seqs": 64}}
    )
    line = plan.ledger[0].model_copy(update={"bytes": plan.ledger[0].bytes + 2**30, "high": 2**60})
    return result(
        requests=47,
        cost=Cost(currency="USD", per_hour=9.0, per_request=0.005),
        plan=plan.model_copy(
            update={"capacity": capacity, "engine": engine, "ledger": (line, *plan.ledger[1:])}
        ),
    )


def test_the_same_is_the_same() -> None:
    (scenario,) = compared(result(), result()).scenarios
    assert (scenario.status, scenario.rows) == ("same", ())


def test_every_change_is_a_row_with_its_way() -> None:
    (scenario,) = compared(result(), changed()).scenarios
    assert scenario.status == "changed"
    assert {row.name: row.way for row in scenario.rows} == {
        "requests": "worse",
        "cost_per_hour": "better",
        "cost_per_request": "worse",
        "engine": "other",
        "tokens": "worse",
        "options.max_num_seqs": "other",
        f"ledger.{fits().ledger[0].name}": "other",
    }


def test_both_ways_are_opposites() -> None:
    forth = compared(result(), changed()).scenarios[0].rows
    back = compared(changed(), result()).scenarios[0].rows
    opposite = {"better": "worse", "worse": "better", "other": "other"}
    assert {row.name: opposite[row.way] for row in forth} == {row.name: row.way for row in back}


@given(st.integers(0, 100), st.integers(0, 100))
def test_fewer_requests_are_worse_and_more_are_better(old: int, new: int) -> None:
    found = compared(result(requests=old), result(requests=new))
    ways = [row.way for row in found.scenarios[0].rows]
    assert ways == ([] if old == new else ["worse" if new < old else "better"])
    assert found.worse == (new < old)


def test_a_refusal_is_worse_than_a_plan() -> None:
    plan = refused()
    found = compared(result(), result(verdict="refused", requests=None, plan=plan))
    ways = {row.name: row.way for row in found.scenarios[0].rows}
    assert ways["verdict"] == "worse"


@pytest.mark.parametrize("added", [True, False])
def test_a_scenario_on_one_side_only(added: bool) -> None:  # noqa: FBT001
    both = (result(), result(name="more"))
    old, new = CheckResult(scenarios=both[:1]), CheckResult(scenarios=both)
    found = diff(old, new, names=("a", "b")) if added else diff(new, old, names=("a", "b"))
    status = {each.name: each.status for each in found.scenarios}
    assert status == {"chat": "same", "more": "added" if added else "removed"}


def test_two_plans_are_compared_whatever_they_are_called() -> None:
    (scenario,) = compared(result(name="x"), result(name="y")).scenarios
    assert scenario.status == "same"


def test_a_diff_as_it_looks(snapshot: SnapshotAssertion) -> None:
    found = compared(result(), changed())
    assert diff_text(found) == snapshot(name="text")
    assert diff_markdown(found) == snapshot(name="markdown")
    assert diff_markdown(found).startswith(f"{MARKER}\n")


def _two(first: ScenarioResult, second: ScenarioResult) -> CheckResult:
    places = (Place(file="a.yaml"), Place(file="b.yaml"))
    named = zip((first, second), places, strict=True)
    return CheckResult(
        scenarios=tuple(each.model_copy(update={"place": place}) for each, place in named)
    )


def test_scenarios_of_one_name_are_told_apart_by_their_files() -> None:
    old, new = _two(result(), result()), _two(result(), result(requests=47))
    found = {each.name: each.status for each in diff(old, new, names=("a", "b")).scenarios}
    assert found == {"b.yaml: chat": "changed", "a.yaml: chat": "same"}


@pytest.mark.parametrize(
    ("old", "new", "worse"),
    [
        ("passed", "failed", True),
        ("failed", "passed", False),
        ("passed", "unreadable", True),
        ("unreadable", "passed", False),
    ],
)
def test_an_outcome_becomes_worse_or_better(old: str, new: str, *, worse: bool) -> None:
    found = compared(result(outcome=old), result(outcome=new))
    assert found.worse is worse


def test_a_new_file_that_nobody_can_read_is_worse() -> None:
    broken = result(name="new.yaml", outcome="unreadable", verdict=None, plan=None, requests=None)
    old = CheckResult(scenarios=(result(),))
    assert diff(old, CheckResult(scenarios=(result(), broken)), names=("a", "b")).worse
