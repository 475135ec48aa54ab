"""Starts: what one start of an engine has said so far, rank by rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kvplan.sources.logs.facts import Fact, Value, together
from kvplan.sources.logs.lines import MIXED, Line
from kvplan.sources.logs.wording import Wording

STARTED, OTHER_FAILURE, OUT_OF_MEMORY = "started", "other_failure", "out_of_memory"
# A log of thousands of restarts is one start after another; one start has no more than this.
_MOST_RANKS, _MOST_SIGHTINGS = 4096, 4096

Sightings = dict[str, list[Value]]


@dataclass
class Start:
    """One start while its lines are read.

    Attributes:
        engine: Its engine's name.
        line: Where it begins.
        shared: Facts of the start as a whole.
        ranks: Facts of each rank, by the name of its process or device.
        cores: Engine processes that have begun, by name.
        outcome: How it ended, or nothing yet.
        begun: Whether its first line was seen; else its head is cut off.
        closed: Whether figures are no longer taken: those that follow are of another model.
        spoiled: Facts of which a sighting was lost: the others do not tell it.
    """

    engine: str
    line: int
    shared: Sightings = field(default_factory=dict)
    ranks: dict[str, Sightings] = field(default_factory=dict)
    cores: set[str] = field(default_factory=set)
    outcome: str = ""
    begun: bool = False
    closed: bool = False
    spoiled: set[str] = field(default_factory=set)

    @property
    def says_something(self) -> bool:
        """Whether more than the engine's version is known."""
        return bool(self.ranks or self.outcome or self.shared.keys() - _OF_EVERY_START)

    def carry(self, sightings: Sightings) -> None:
        """Takes facts that an earlier line said of every start to come."""
        for name, values in sightings.items():
            self.shared[name] = list(values)

    def add(self, values: Mapping[str, Value], facts: Mapping[str, Fact], rank: str) -> None:
        """Takes what one line says, unless it is of another model."""
        if self.closed:
            return
        for name, value in values.items():
            if not facts[name].of_rank:
                note(self.shared, name, value)
            elif rank == MIXED:
                self.spoil((name,))
            elif rank in self.ranks or len(self.ranks) < _MOST_RANKS:
                note(self.ranks.setdefault(rank, {}), name, value)

    def spoil(self, names: Iterable[str]) -> None:
        """Notes that a sighting of these was lost, unless it was of another model."""
        if not self.closed:
            self.spoiled.update(names)

    def end(self, outcome: str) -> None:
        """Notes how it ended; the first reason given is the cause of those that follow.

        Engines that try again with less may run out of memory and start nevertheless.
        """
        tried_again = outcome == STARTED and self.outcome.startswith(OUT_OF_MEMORY)
        if self.outcome in ("", OTHER_FAILURE) or tried_again:
            self.outcome = self._phase() if outcome == OUT_OF_MEMORY else outcome

    def forget(self, names: tuple[str, ...]) -> None:
        """Drops facts that are about to be said anew."""
        if not self.closed:
            self.spoiled.difference_update(names)
            for sightings in (self.shared, *self.ranks.values()):
                for name in names:
                    sightings.pop(name, None)

    def _phase(self) -> str:
        """When memory ran out: while the model was loaded, or once it was there.

        A log without its head does not tell.
        """
        loaded = any(_LOADED & rank.keys() for rank in self.ranks.values())
        if not loaded and not self.begun:
            return OUT_OF_MEMORY
        return f"{OUT_OF_MEMORY}_in_warm_up" if loaded else f"{OUT_OF_MEMORY}_at_load"

    def is_begun_by(self, wording: Wording, line: Line) -> bool:
        """Whether a line that begins a start can belong to this one."""
        if wording.begins == "server":
            return False
        if wording.begins == "program":
            return not self.says_something
        if wording.begins == "process":
            return not (self.outcome or _POOL in self.shared)
        name = line.process.partition(" pid=")[0]
        return name not in self.cores and not self.outcome

    def begin(self, wording: Wording, line: Line) -> None:
        """Notes that it has begun, and which of its processes."""
        self.begun = True
        if wording.begins == "core":
            self.cores.add(line.process.partition(" pid=")[0])


_OF_EVERY_START = frozenset({"engine_version", "build", "compute_name", "compute_total_gib"})
_POOL = "kv_tokens"
# Any of these is printed once the model has been loaded.
_LOADED = frozenset({"weights_gib", "load_end_avail_gib", "model_buffer_gib", "device_weights_gib"})


def note(sightings: Sightings, name: str, value: Value) -> None:
    """Adds one sighting of a fact."""
    values = sightings.setdefault(name, [])
    if len(values) < _MOST_SIGHTINGS:
        values.append(value)


@dataclass(frozen=True)
class Settled:
    """One value a fact.

    Attributes:
        shared: Of the start as a whole.
        ranks: Of each rank, in the order of their names.
        contradictory: Facts that one process gave two values for: they are in neither.
    """

    shared: Mapping[str, Value]
    ranks: Mapping[str, Mapping[str, Value]]
    contradictory: tuple[str, ...]


def settle(start: Start, facts: Mapping[str, Fact], fronts: tuple[str, ...]) -> Settled:
    """What the sightings of a start come to.

    Args:
        start: What was seen.
        facts: How several sightings of each are taken together.
        fronts: How processes are called that only repeat what ranks say, where there are ranks.
    """
    bad: set[str] = set()
    shared = _settled(start, start.shared, facts, bad)
    names = sorted(start.ranks)
    workers = [name for name in names if not name.startswith(fronts)] if fronts else names
    ranks = {name: _settled(start, start.ranks[name], facts, bad) for name in workers or names}
    return Settled(shared, ranks, tuple(sorted(bad)))


def _settled(
    start: Start, sightings: Sightings, facts: Mapping[str, Fact], bad: set[str]
) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, seen in sightings.items():
        if name in start.spoiled:
            continue
        value = together(facts[name].several, seen)
        if value is None:
            bad.add(name)
        else:
            values[name] = value
    return values
