"""Prefixes that stand behind one another in front of a request, and what sharing them saves.

A block of the second prefix also depends on the first, so it is there as often as the rarer of
the two is different. A request that lacks a prefix shares nothing behind it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kvplan.engines.base import Prepared
from kvplan.scenario.workload import Prefix
from kvplan.workloads.sharing import PrefixRule

# A quotient of whole numbers that prints as one may be a hair below it.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Link:
    """The chain up to one prefix.

    Attributes:
        tokens: All up to its end.
        copies: Different ones at once.
        share: Requests that have all of them.
    """

    tokens: int
    copies: int
    share: float


def links(prefixes: Sequence[Prefix]) -> Iterator[Link]:
    """The chain, front first."""
    tokens, copies, share = 0, 1, 1.0
    for each in prefixes:
        tokens += each.tokens
        copies = max(copies, each.copies)
        share = min(share, 1.0 if each.share is None else each.share)
        yield Link(tokens, copies, share)


def as_rule(prefixes: Sequence[Prefix]) -> PrefixRule | None:
    """The chain as one prefix that is never shared more than the chain is; None without one."""
    chain = list(links(prefixes))
    if not chain or chain[-1].share == 0:
        return None
    last = chain[-1]
    changes = [each.change for each in prefixes if each.change is not None]
    return PrefixRule(
        name=" + ".join(each.name for each in prefixes),
        tokens=last.tokens,
        scope="global" if last.copies == 1 else "tenant",
        share=last.share,
        tenants=last.copies,
        change_every_s=min(changes, default=None),
    )


def requests_sharing(
    prepared: Prepared, context: int, prefixes: Sequence[Prefix], whole: Sequence[int]
) -> int:
    """Whole requests that one replica holds with every prefix held once.

    Args:
        prepared: The engine's configuration.
        context: Tokens of a request, its prefixes included.
        prefixes: Front first.
        whole: Units of each pool that a request holds where nothing is shared.
    """
    pools = prepared.pools(context)
    chain = (Link(0, 1, 1.0), *links(prefixes))
    shared = [_shared(prepared, link.tokens) for link in chain]
    saved = [_saved(prepared, context, link.tokens) for link in chain]
    # How many requests have exactly so much of the chain.
    exactly = [
        link.share - (chain[at + 1].share if at + 1 < len(chain) else 0.0)
        for at, link in enumerate(chain)
    ]
    held = []
    for at, pool in enumerate(pools.pools):
        once = sum(
            link.copies * (units[at] - before[at])
            for link, units, before in zip(chain[1:], shared[1:], shared, strict=False)
        )
        need = whole[at] - math.fsum(
            part * units[at] for part, units in zip(exactly, saved, strict=True)
        )
        if need > 0:
            held.append(math.floor(max(0, pool.count - once) / need + _ROUNDING))
    return min(pools.sequences, *held)


def _saved(prepared: Prepared, context: int, tokens: int) -> tuple[int, ...]:
    """Units that a request need not hold itself, as its first tokens are shared."""
    whole, own = prepared.request_units(context), prepared.own_units(context, tokens)
    return tuple(all_ - part for all_, part in zip(whole, own, strict=True))


def _shared(prepared: Prepared, tokens: int) -> tuple[int, ...]:
    """Units of the whole blocks that requests which begin alike have in common."""
    if not tokens:
        return tuple(0 for _ in prepared.request_units(1))
    return _saved(prepared, tokens, tokens)
