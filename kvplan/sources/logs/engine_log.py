"""EngineLog: everything that is known of one engine's log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kvplan.sources.logs.facts import Fact, Value
from kvplan.sources.logs.starts import Start
from kvplan.sources.logs.unsure import nothing_unsure
from kvplan.sources.logs.wording import Wording


def nothing_more(_: Mapping[str, Value]) -> dict[str, Value]:
    """For an engine whose log prints every figure of its own."""
    return {}


@dataclass(frozen=True)
class EngineLog:
    """The sentences of an engine and how they become a record.

    Attributes:
        name: As the contract of a record names it.
        facts: How each of its facts is read.
        wordings: Its sentences.
        order: Keys of a record → the facts that give them, most telling first.
        derive: Further facts of a rank from those it has.
        carried: Facts that hold for every later start in the same log too.
        rank_of: The rank that a device's name stands for, or None for what is no GPU; None where
            lines name processes.
        unsure: Keys of a record that a start has not said in full so far.
        fronts: How processes are called that only repeat what ranks say.
    """

    name: str
    facts: Mapping[str, Fact]
    wordings: tuple[Wording, ...]
    order: Mapping[str, tuple[str, ...]]
    derive: Callable[[Mapping[str, Value]], dict[str, Value]] = nothing_more
    carried: frozenset[str] = frozenset()
    rank_of: Callable[[str], str | None] | None = None
    unsure: Callable[[Start], frozenset[str]] = nothing_unsure
    fronts: tuple[str, ...] = ()
