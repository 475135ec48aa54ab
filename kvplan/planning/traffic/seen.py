"""What one looks at when one looks at a server: requests somewhere in their lives.

A request that lasts twice as long is seen twice as often, and it is as likely to be seen early as
late in its life. So the tokens of a request that is seen are not those of a request that arrives:
each arriving one counts with every step of its life (residual-life weighting; the inspection
paradox of renewal theory).

The clock is decoding steps. A prompt is computed before; it counts with the steps that this takes
and its tokens grow from none to all meanwhile, as chunks are allocated one by one. Where the cache
comes over a link (disaggregated prefill), all of the prompt is held while it does; where sessions
are kept for their next turn, all of a request is held for a while after its last token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from kvplan.errors import UsageError
from kvplan.models.formats import ceil_div
from kvplan.workloads.distributions import Atom
from kvplan.workloads.lengths import Pair

_MOST_CELLS = 16_384
"""Lengths that units are worked out for; beyond, tokens are rounded up to a wider step."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Tokens of requests that are seen, and how long they last.

    Attributes:
        tokens: Atoms: tokens, rounded up to a step of the engine's, and shares that sum to 1.
        steps: Mean time that blocks are held, in decoding steps.
        kept_steps: Of these, steps after the last token.
    """

    tokens: tuple[Atom, ...]
    steps: float
    kept_steps: float = 0.0


@dataclass(frozen=True)
class Units:
    """Units of one pool that a seen request holds.

    Attributes:
        atoms: Units and shares, ascending.
    """

    atoms: tuple[Atom, ...]

    @cached_property
    def mean(self) -> float:
        """Units on average."""
        return math.fsum(units * share for units, share in self.atoms)

    @cached_property
    def variance(self) -> float:
        """Mean squared distance from that."""
        mean = self.mean
        return math.fsum((units - mean) ** 2 * share for units, share in self.atoms)

    @property
    def least(self) -> int:
        """The fewest units."""
        return self.atoms[0][0]

    @property
    def most(self) -> int:
        """The most units."""
        return self.atoms[-1][0]


@dataclass(frozen=True, slots=True)
class Life:
    """What of a request's life is not generating, in decoding steps.

    Attributes:
        prompt: For each token of a prompt, steps to compute it.
        arriving: For each token of a prompt, steps that the whole prompt is held while its cache
            comes over a link.
        kept: Steps that a request of (prompt, output) tokens is held after its last one.
    """

    prompt: float = 0.0
    arriving: float = 0.0
    kept: Callable[[int, int], float] | None = None


NOTHING_BUT_GENERATING = Life()


def seen(pairs: Iterable[Pair], *, step: int, life: Life = NOTHING_BUT_GENERATING) -> Seen:
    """Weighs requests by their lives.

    Args:
        pairs: Prompt and output tokens of arriving requests, with shares of any scale.
        step: Tokens at which an engine's units change.
        life: How long they are held beside generating.

    Raises:
        UsageError: no request at all.
    """
    requests = tuple(pairs)
    if not requests:
        raise UsageError("There is no request to plan for.", hint="Check the trace or --lengths.")
    longest = max(prompt + output for prompt, output, _ in requests)
    step *= ceil_div(ceil_div(longest, step), _MOST_CELLS)
    cells = _Cells(step, ceil_div(longest, step))
    kept = 0.0
    for prompt, output, share in requests:
        cells.add(prompt + 1, prompt + output, share)
        if life.prompt:
            cells.add(1, prompt, share * life.prompt)
        if life.arriving:
            cells.add(prompt, prompt, share * life.arriving * prompt)
        if life.kept is not None:
            after = share * life.kept(prompt, output)
            cells.add(prompt + output, prompt + output, after)
            kept += after
    weights = cells.weights()
    whole = math.fsum(weights)
    arrived = math.fsum([share for _, _, share in requests])
    atoms = [((index + 1) * step, part / whole) for index, part in enumerate(weights) if part > 0]
    return Seen(tuple(atoms), whole / arrived, kept / arrived)


class _Cells:
    """Sums over runs of tokens, in time that does not depend on the runs' lengths."""

    def __init__(self, step: int, count: int) -> None:
        self._step = step
        self._whole = [0.0] * (count + 1)
        self._part = [0.0] * count

    def add(self, first: int, last: int, weight: float) -> None:
        """Adds ``weight`` for each number of tokens from ``first`` to ``last``."""
        step, low, high = self._step, (first - 1) // self._step, (last - 1) // self._step
        if low == high:
            self._part[low] += weight * (last - first + 1)
            return
        self._part[low] += weight * ((low + 1) * step - first + 1)
        self._part[high] += weight * (last - high * step)
        self._whole[low + 1] += weight * step
        self._whole[high] -= weight * step

    def weights(self) -> list[float]:
        """The weight of each cell."""
        # What remains of a run that has ended is rounding.
        runs = (run if abs(run) > _ROUNDING else 0.0 for run in accumulate(self._whole))
        return [run + part for run, part in zip(runs, self._part, strict=False)]


_ROUNDING = 1e-12


def units_of(
    tokens: Iterable[Atom], held: Callable[[int], tuple[int, ...]], pools: int
) -> tuple[Units, ...]:
    """Units of each pool, by the engine's own rule for a request of so many tokens."""
    found: tuple[dict[int, float], ...] = tuple({} for _ in range(pools))
    for count, share in tokens:
        for pool, units in zip(found, held(count), strict=True):
            pool[units] = pool.get(units, 0.0) + share
    return tuple(Units(tuple(sorted(pool.items()))) for pool in found)
