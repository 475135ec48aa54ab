"""What a rule is, and what it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kvplan.check_result import Level, TrafficResult
from kvplan.hardware import GpuSpec
from kvplan.models.spec import ModelSpec
from kvplan.plan import Plan
from kvplan.scenario.facts import Facts
from kvplan.scenario.question import Question
from kvplan.sources.yaml_document import KeyPath


@dataclass(frozen=True, slots=True)
class Shown:
    """One variant as rules see it.

    Attributes:
        plan: None where nothing could be planned; rules that read only the file still run.
        model, gpu: None where they could not be had.
        traffic: What requests that come and go do to the plan, where there are such.
    """

    question: Question
    plan: Plan | None = None
    model: ModelSpec | None = None
    gpu: GpuSpec | None = None
    traffic: TrafficResult | None = None

    @property
    def engine(self) -> str:
        """The engine's name without its version."""
        return self.question.engine.partition("==")[0]

    def written(self, option: str) -> str | None:
        """How the scenario spells an option that it states: with dashes or underscores."""
        for name in self.question.options:
            if name.strip().removeprefix("--").replace("-", "_") == option:
                return name
        return None

    @property
    def facts(self) -> Facts | None:
        """What figures are computed from, where there is a plan."""
        if self.plan is None:
            return None
        question = self.question
        return Facts(
            self.plan, question.workload, question.prices, question.concurrency, self.traffic
        )


@dataclass(frozen=True, slots=True)
class Hit:
    """One place where a rule applies: what is wrong, what to write, and the key."""

    message: str
    fix: str
    path: KeyPath = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes:
        code: ``KV`` and three digits; never used again for another rule.
        summary: What it looks for, as a line of a list.
    """

    code: str
    name: str
    level: Level
    summary: str
    check: Callable[[Shown], Iterator[Hit]]
