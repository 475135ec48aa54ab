"""GPUs that the scenarios of a pool take together, against how many there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kvplan.check_result import Finding, Place
from kvplan.scenario.question import Question
from kvplan.scenario.schema import Pool


def overcommitted(
    questions: Sequence[Question], pools: Mapping[str, tuple[Pool, Place]]
) -> Mapping[str, Finding]:
    """A finding for each pool that is too small, by the name of the last scenario that uses it.

    The variants of a matrix are alternatives, so that a scenario counts with its largest.
    """
    used: dict[str, dict[str, int]] = {}
    last: dict[str, str] = {}
    for each in questions:
        name = each.scenario.pool
        if name is None:
            continue
        gpus = 1
        for size in ("tp", "pp", "dp"):
            gpus *= each.sizes.get(size, 1)
        of_pool = used.setdefault(name, {})
        scenario = each.variant.scenario
        of_pool[scenario] = max(gpus, of_pool.get(scenario, 0))
        last[name] = each.name
    return {
        last[name]: _finding(name, *pools[name], taken)
        for name, taken in used.items()
        if sum(taken.values()) > pools[name][0].count
    }


def _finding(name: str, pool: Pool, place: Place, taken: Mapping[str, int]) -> Finding:
    parts = " + ".join(f"{scenario} {gpus}" for scenario, gpus in taken.items())
    return Finding(
        code="KV204",
        rule="pool-overcommitted",
        level="error",
        message=f"The pool {name!r} has {pool.count:,} GPUs, and its scenarios take"
        f" {sum(taken.values()):,} ({parts}).",
        fix="Write a larger count, or smaller tp, pp or dp.",
        place=place,
    )
