"""What `kvplan check` found: every assertion, every finding, each at its place.

`kvplan.scenario` fills it, reports read it. The JSON form is `kvplan.check/1`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import PurePath
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from kvplan._version import __version__
from kvplan.plan import Plan, Verdict
from kvplan.traffic_plan import TrafficPlan

Status = Literal["holds", "fails", "unknown"]
Level = Literal["error", "warning"]
Outcome = Literal["passed", "failed", "unreadable", "unobtainable", "refused"]
EXIT_CODES: dict[Outcome, int] = {
    "passed": 0,
    "failed": 1,
    "unreadable": 2,
    "unobtainable": 3,
    "refused": 4,
}


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )


class Place(_Part):
    """A place in a file; line and column count from 1. What a flag says has neither."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        if self.file.startswith("--"):
            return self.file
        return f"{self.file}:{self.line}:{self.column}"


class Assertion(_Part):
    """One expectation and what came of it.

    Attributes:
        text: As it stands in the file; ``verdict == fits`` where the file says nothing of it.
        status: ``unknown``: the value can't be computed, which never passes.
        value: What the plan says, with its unit; None where it says nothing.
        limit: What was expected, with its unit.
        message: One sentence.
    """

    text: str
    status: Status
    value: str | None
    limit: str
    message: str
    place: Place


class Finding(_Part):
    """Something that a rule, the lock or the baseline found.

    Attributes:
        code: Of the rule: ``KV101``; its page is ``docs/rules/CODE.md``.
        rule: Its name: ``prefix-across-tenants``.
        fix: What to write instead, in one line.
        ignored: The reason for which it is ignored, or None.
    """

    code: str
    rule: str
    level: Level
    message: str
    fix: str
    place: Place
    ignored: str | None = None


class Problem(_Part):
    """Why there is no plan: an error, as `kvplan.errors` words it."""

    slug: str
    message: str
    hint: str | None = None


class Cost(_Part):
    """Money, in the currency that the scenario states."""

    currency: str
    per_hour: float
    per_request: float | None = None


class TrafficResult(_Part):
    """What real traffic does to a plan.

    Attributes:
        overload_risk: Share of the busiest hour in which the cache is too small; None where
            nothing says how many requests there are.
        replicas_needed: Replicas at which that is the chosen risk or less; None: no number is.
    """

    plan: TrafficPlan
    overload_risk: float | None = None
    replicas_needed: int | None = None


class ScenarioResult(_Part):
    """One scenario, or one variant of its matrix.

    Attributes:
        name: ``chat`` or ``chat[tp=2, gpu=L4-24GB]``.
        place: Of its name in the file.
        requests, verdict: Of the plan, also where the plan itself is left out.
        traffic: Of requests that come and go, where the workload has such.
        notes: What the scenario says and the plan does not take into account.
        problem: Why nothing could be planned.
    """

    name: str
    place: Place
    outcome: Outcome
    description: str | None = None
    headline: str | None = None
    verdict: Verdict | None = None
    requests: int | None = None
    cost: Cost | None = None
    assertions: tuple[Assertion, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    problem: Problem | None = None
    plan: Plan | None = None
    traffic: TrafficResult | None = None

    @property
    def exit_code(self) -> int:
        """The code of this scenario alone."""
        return EXIT_CODES[self.outcome]


class CheckResult(_Part):
    """Everything that was checked.

    Attributes:
        scenarios: Each with its assertions and findings, the worst first.

    Example:
        >>> CheckResult(scenarios=()).exit_code  # nothing was checked: no all-clear
        2
    """

    schema_: Literal["kvplan.check/1"] = Field("kvplan.check/1", alias="schema")
    kvplan_version: str = __version__
    scenarios: tuple[ScenarioResult, ...]

    @property
    def exit_code(self) -> int:
        """The worst code of all scenarios."""
        return max((each.exit_code for each in self.scenarios), default=2)

    def count(self, *outcomes: Outcome) -> int:
        """Scenarios that ended so."""
        return sum(each.outcome in outcomes for each in self.scenarios)


def worst_first(results: tuple[ScenarioResult, ...]) -> tuple[ScenarioResult, ...]:
    """The worst outcome first; those alike in the order in which they came."""

    def rank(result: ScenarioResult) -> tuple[int, int]:
        open_findings = sum(each.ignored is None for each in result.findings)
        return -result.exit_code, -open_findings

    return tuple(sorted(results, key=rank))


def shared_names(*sides: Iterable[str]) -> frozenset[str]:
    """Names that several scenarios of a side have, so that their files tell them apart."""
    return frozenset(name for side in sides for name, count in Counter(side).items() if count > 1)


def scenario_key(result: ScenarioResult, shared: frozenset[str]) -> str:
    """A scenario's name, behind its file's where others are called the same."""
    if result.name not in shared:
        return result.name
    return f"{PurePath(result.place.file).as_posix()}: {result.name}"
