"""The pool with its groups: what a request is given, what it shares, and what it leaves behind.

Source of the rules: vLLM 0.33.0, vllm/v1/core/kv_cache_manager.py allocate_slots and
vllm/v1/core/single_type_kv_cache_manager.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kvplan.engines.base import BlockGroup, BlockPool
from kvplan.models.formats import ceil_div
from kvplan.planning.simulate import runs as of_runs
from kvplan.planning.simulate.content import Chunk
from kvplan.planning.simulate.hits import first_kept, longest_hit
from kvplan.planning.simulate.sequence import Holding, Sequence
from kvplan.planning.simulate.store import Store
from kvplan.planning.simulate.tiers import Tiers


@dataclass(frozen=True, slots=True)
class Hit:
    """What of a prompt need not be computed.

    Attributes:
        tokens: All of it.
        local: Tokens that the GPU has.
        loaded: Blocks that come from each tier.
    """

    tokens: int = 0
    local: int = 0
    loaded: tuple[int, ...] = ()


@dataclass(slots=True)
class _Part:
    """Blocks of one chunk that an admission shares or loads."""

    chunk: Chunk
    slot: int
    low: int
    high: int

    def gaps(self) -> list[tuple[int, int]]:
        """What of it is not resident."""
        return list(of_runs.gaps(self.chunk.runs.get(self.slot, []), self.low, self.high))

    def resident(self) -> list[tuple[int, int]]:
        """What of it is."""
        edges = [self.low, *(edge for gap in self.gaps() for edge in gap), self.high]
        pairs = zip(edges[::2], edges[1::2], strict=True)
        return [(low, high) for low, high in pairs if low < high]

    def idle(self) -> int:
        """Resident blocks of it that no request holds."""
        return sum(
            min(run.high, self.high) - max(run.low, self.low)
            for run in self.chunk.runs.get(self.slot, ())
            if run.holders == 0 and run.low < self.high and run.high > self.low
        )


class Memory:
    """One replica's cache.

    Attributes:
        changes: Grows whenever room or content came free, so that who waits looks again.
    """

    def __init__(self, pool: BlockPool, tiers: Tiers) -> None:
        self.pool = pool
        # Groups that keep every token settle how long a hit can be: they come first.
        order = sorted(range(len(pool.groups)), key=lambda index: pool.groups[index].keeps != "all")
        self.groups: tuple[BlockGroup, ...] = tuple(pool.groups[index] for index in order)
        self.tiers = tiers
        self.store: Store = Store(pool.blocks, tiers.evicted if tiers.levels else None)
        self.changes: int = 0
        self._fixed = sum(group.fixed for group in self.groups)
        self._local = tuple((index,) for index in range(len(self.groups)))
        self._every = tuple(tiers.slots(index) for index in range(len(self.groups)))

    def most(self, tokens: int) -> int:
        """Blocks that admission counts for a request of ``tokens`` tokens that shares nothing."""
        return sum(_required(group, tokens) + group.fixed for group in self.groups)

    def look_up(self, sequence: Sequence) -> Hit:
        """What is there of a waiting request's content."""
        if not self.pool.caches_prefixes:
            return Hit()
        at_most = sequence.target - 1
        local = longest_hit(sequence.chain, self.groups, self._local, at_most)
        if not self.tiers.levels:
            return Hit(local, local)
        tokens = longest_hit(sequence.chain, self.groups, self._every, at_most)
        if tokens <= local:
            return Hit(local, local)
        missing = (
            (part.chunk, part.slot, low, high)
            for part in self._shared(sequence, tokens)
            for low, high in part.gaps()
        )
        return Hit(tokens, local, self.tiers.count(missing))

    def admit(self, sequence: Sequence, hit: Hit, tokens: int) -> bool:
        """Gives a waiting request room for its first step, if there is enough.

        Args:
            sequence: It holds nothing so far.
            hit: What it shares.
            tokens: Tokens that it has at the end of that step.
        """
        parts = list(self._shared(sequence, hit.tokens))
        gaps = [(part, low, high) for part in parts for low, high in part.gaps()]
        loads = sum(high - low for _, low, high in gaps)
        taken = self._fixed + loads + sum(part.idle() for part in parts)
        if taken + self._needed(sequence, hit.tokens, tokens) > self.store.free:
            return False
        for part in parts:
            for low, high in part.resident():
                self.store.take(part.chunk, part.slot, low, high)
        self.store.claim(self._fixed + loads)
        for part, low, high in gaps:
            self.store.put(part.chunk, part.slot, low, high)
        for group, holding in zip(self.groups, sequence.holdings, strict=True):
            holding.first = first_kept(group, hit.tokens)
            holding.last = holding.stored = hit.tokens // group.block_tokens
        sequence.computed = hit.tokens
        return self.grow(sequence, tokens)

    def grow(self, sequence: Sequence, tokens: int) -> bool:
        """Gives a request slots for ``tokens`` tokens, if there is room; lets go what it left."""
        needed = 0
        for index, group in enumerate(self.groups):
            holding = sequence.holdings[index]
            if group.keeps != "all":
                if group.keeps == "none":
                    continue
                self._let_go(sequence, index, first_kept(group, sequence.computed))
            last = -(-tokens // group.block_tokens)
            if last > holding.last:
                needed += last - holding.last
        if needed > self.store.free:
            return False
        if needed:
            self.store.claim(needed)
        for index, group in enumerate(self.groups):
            holding = sequence.holdings[index]
            if group.keeps != "none":
                holding.last = max(holding.last, -(-tokens // group.block_tokens))
                if self.pool.caches_prefixes:
                    self._register(sequence, index, tokens // group.block_tokens)
        return True

    def release(self, sequence: Sequence) -> None:
        """Takes everything back that a request holds."""
        for index, group in enumerate(self.groups):
            holding = sequence.holdings[index]
            if group.keeps != "none":
                self._let_go(sequence, index, holding.last)
            sequence.holdings[index] = Holding()
        self.store.give_back(self._fixed)
        self.changes += 1

    def _shared(self, sequence: Sequence, tokens: int) -> Iterator[_Part]:
        """The blocks that a request needs of the first ``tokens`` tokens, by chunk."""
        for index, group in enumerate(self.groups):
            if group.keeps == "none" or not tokens:
                continue
            size = group.block_tokens
            first = first_kept(group, tokens)
            for chunk, low, high in sequence.chain.parts(first, tokens // size, size):
                yield _Part(chunk, index, low, high)

    def _needed(self, sequence: Sequence, shared: int, tokens: int) -> int:
        """Blocks beyond the shared ones: for the next step, or for the whole prompt."""
        next_step = whole = 0
        for group in self.groups:
            if group.keeps != "none":
                held = shared // group.block_tokens
                next_step += max(0, ceil_div(tokens, group.block_tokens) - held)
                whole += max(0, _required(group, sequence.target) - held)
        return max(next_step, whole) if self.pool.admits_whole else next_step

    def _register(self, sequence: Sequence, index: int, last: int) -> None:
        """Makes full blocks findable by what they hold."""
        holding, group = sequence.holdings[index], self.groups[index]
        low = max(holding.stored, holding.first)
        if last <= low:
            return
        for chunk, start, stop in sequence.chain.parts(low, last, group.block_tokens):
            second = self.store.put(chunk, index, start, stop)
            if second:
                holding.copies.append((start, stop, second))
        holding.stored = last
        self.changes += 1

    def _let_go(self, sequence: Sequence, index: int, upto: int) -> None:
        """Gives back a group's blocks before ``upto``."""
        holding = sequence.holdings[index]
        upto = min(upto, holding.last)
        if upto <= holding.first:
            return
        size = self.groups[index].block_tokens
        findable = min(upto, holding.stored)
        parts = list(sequence.chain.parts(holding.first, findable, size))
        for chunk, low, high in reversed(parts):
            self.store.drop(chunk, index, low, high)
        if holding.copies:
            self.store.give_back(_second_copies(holding, upto))
        self.store.give_back(upto - max(findable, holding.first))
        holding.first = upto
        self.changes += 1


def _required(group: BlockGroup, tokens: int) -> int:
    if group.keeps == "none":
        return 0
    blocks = ceil_div(tokens, group.block_tokens)
    return blocks if group.most is None else min(blocks, group.most)


def _second_copies(holding: Holding, upto: int) -> int:
    """Blocks that were held twice before ``upto``; a stretch that crosses it is cut."""
    count, left = 0, []
    for low, high, second in holding.copies:
        if high <= upto:
            count += second
        elif low >= upto:
            left.append((low, high, second))
        else:
            gone = min(second, upto - low)
            count += gone
            left.append((upto, high, second - gone))
    holding.copies = [copy for copy in left if copy[2]]
    return count
