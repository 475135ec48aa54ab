"""GPUs that the scenarios of a pool take together, against how many there are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kvplan.check_result import Finding, Place
from kvplan.scenario.question import Question
from kvplan.scenario.schema import Pool


@dataclass(slots=True)
class PoolUse:
    """What scenarios take of the pools: those of all files that share one count together.

    A pool is the same one where it stands at the same place. The variants of a matrix are
    alternatives, so that a scenario counts with its largest; a scenario that two files extend
    counts once.
    """

    _pools: dict[Place, tuple[str, Pool]] = field(default_factory=dict)
    _taken: dict[Place, dict[Place, tuple[str, int]]] = field(default_factory=dict)
    _last: dict[Place, Question] = field(default_factory=dict)

    def add(self, question: Question, pools: Mapping[str, tuple[Pool, Place]]) -> None:
        """Counts one variant, of a file with these pools."""
        name = question.scenario.pool
        if name is None:
            return
        pool, place = pools[name]
        self._pools[place] = name, pool
        gpus = math.prod(question.sizes.get(size, 1) for size in ("tp", "pp", "dp"))
        taken = self._taken.setdefault(place, {})
        scenario = question.variant.layered.document.place()
        _, most = taken.get(scenario, ("", 0))
        taken[scenario] = question.variant.scenario, max(gpus, most)
        self._last[place] = question

    def findings(self) -> Iterator[tuple[Question, Finding]]:
        """A finding for each pool that is too small, with the last scenario that uses it."""
        for place, (name, pool) in self._pools.items():
            taken = tuple(self._taken[place].values())
            if sum(gpus for _, gpus in taken) > pool.count:
                yield self._last[place], _finding(name, pool, place, taken)


def _finding(name: str, pool: Pool, place: Place, taken: Sequence[tuple[str, int]]) -> Finding:
    parts = " + ".join(f"{scenario} {gpus}" for scenario, gpus in taken)
    return Finding(
        code="KV204",
        rule="pool-overcommitted",
        level="error",
        message=f"The pool {name!r} has {pool.count:,} GPUs, and its scenarios take"
        f" {sum(gpus for _, gpus in taken):,} ({parts}).",
        fix="Write a larger count, or smaller tp, pp or dp.",
        place=place,
    )
