"""Lengths of requests: prompt and output of each kind of traffic, and kinds mixed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from kvplan.errors import UsageError
from kvplan.units import MAX_TOKENS
from kvplan.workloads.distributions import Distribution, atoms, draw

Pair: TypeAlias = tuple[int, int, float]
"""Prompt tokens, output tokens, and the share of requests that have both."""

_MOST_PAIRS = 40_000


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of traffic, such as chat: its prompts and outputs know nothing of each other.

    Attributes:
        weight: Its share of the requests, before all kinds are scaled to sum to 1.
        output: None: every request has its whole length from the start, which is ``prompt``; its
            last token then counts as the output.
    """

    weight: float
    prompt: Distribution
    output: Distribution | None = None


@dataclass(frozen=True, slots=True)
class Lengths:
    """Kinds of traffic that come mixed.

    Attributes:
        kinds: At least one.
        limit: Tokens that a prompt, and an output, has at most; the whole request too.
    """

    kinds: tuple[Kind, ...]
    limit: int = MAX_TOKENS

    def __post_init__(self) -> None:
        weights = [kind.weight for kind in self.kinds]
        if not weights or not all(0 < weight < math.inf for weight in weights):
            raise UsageError(
                "Every kind of traffic needs a share above 0.", hint="Write 70% 1k/300 + 30% 8k."
            )

    @property
    def grows(self) -> bool:
        """Whether outputs are stated, so that requests grow."""
        return any(kind.output is not None for kind in self.kinds)

    def draw(self, random: Random) -> tuple[int, int]:
        """Prompt and output tokens of one request."""
        kind = random.choices(self.kinds, [kind.weight for kind in self.kinds])[0]
        if kind.output is None:
            return draw(kind.prompt, random, limit=self.limit, least=2) - 1, 1
        prompt = draw(kind.prompt, random, limit=self.limit - 1)
        return prompt, min(draw(kind.output, random, limit=self.limit), self.limit - prompt)

    def pairs(self) -> tuple[Pair, ...]:
        """Prompts and outputs with their shares, which sum to 1."""
        whole = math.fsum(kind.weight for kind in self.kinds)
        return gathered(
            (prompt, output, share * kind.weight / whole)
            for kind in self.kinds
            for prompt, output, share in self._pairs_of(kind)
        )

    def _pairs_of(self, kind: Kind) -> Iterator[Pair]:
        if kind.output is None:
            for tokens, share in atoms(kind.prompt, limit=self.limit, least=2):
                yield tokens - 1, 1, share
            return
        prompts = atoms(kind.prompt, limit=self.limit - 1)
        outputs = atoms(kind.output, limit=self.limit)
        thinner = max(1, len(prompts) * len(outputs) // _MOST_PAIRS)
        for prompt, share in prompts:
            for output, part in _thinned(outputs, thinner):
                yield prompt, min(output, self.limit - prompt), share * part


def _thinned(outputs: tuple[tuple[int, float], ...], step: int) -> Iterator[tuple[int, float]]:
    """Neighbours put together at their mean, where a product would have too many parts."""
    for start in range(0, len(outputs), step):
        part = outputs[start : start + step]
        share = math.fsum(weight for _, weight in part)
        if share:
            yield round(math.fsum(t * weight for t, weight in part) / share), share


def gathered(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """The same with equal requests added up."""
    found: dict[tuple[int, int], float] = {}
    for prompt, output, share in pairs:
        key = (prompt, output)
        found[key] = found.get(key, 0.0) + share
    return tuple((prompt, output, share) for (prompt, output), share in found.items())
