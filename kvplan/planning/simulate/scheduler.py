"""The engine's scheduler, step by step: decodes first, then the prompt begun, then who waits.

Between two steps in which something happens to a request (a block fills, a window moves on, it
ends) all that decodes just adds a token, so these requests are not looked at one by one: each has
the step of its next event in a calendar.

Source of the order: vLLM 0.33.0, vllm/v1/core/sched/scheduler.py schedule.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from heapq import heappop, heappush

from kvplan.engines.base import BlockGroup
from kvplan.errors import InternalError
from kvplan.planning.simulate.arriving import Arriving
from kvplan.planning.simulate.content import Contents
from kvplan.planning.simulate.memory import Hit, Memory
from kvplan.planning.simulate.recorder import Recorder
from kvplan.planning.simulate.sequence import Sequence
from kvplan.planning.simulate.service import Batch, StepTimes
from kvplan.workloads.requests import Request


class Scheduler:
    """One replica.

    Args:
        memory: Its cache.
        times: How long steps take.
        recorder: Keeps count.
        longest: Tokens that a request may have.

    Attributes:
        now: The simulated clock, in seconds.
    """

    def __init__(
        self, memory: Memory, times: StepTimes, recorder: Recorder, *, longest: int
    ) -> None:
        self.now: float = 0.0
        self.memory = memory
        self._pool = memory.pool
        self._times = times
        self._record = recorder
        self._longest = longest
        self._contents = Contents()
        self._arriving = Arriving(iter(()))
        self._waiting: deque[Sequence] = deque()
        self._loading: list[tuple[float, int, Sequence]] = []
        self._loaded: deque[Sequence] = deque()
        self._running: dict[Sequence, int] = {}
        self._admissions = 0
        self._partial: Sequence | None = None
        self._calendar: dict[int, list[tuple[int, Sequence, int]]] = {}
        self._step = 0
        self._decodes = 0
        self._decode_context = 0
        self._refused_at: tuple[int, int] | None = None

    def start(self, requests: Iterator[Request]) -> None:
        """Takes the workload, in order of arrival."""
        self._arriving = Arriving(requests)

    def step(self) -> bool:
        """Makes one step, or waits for the next arrival; False: all is done."""
        self._arrive()
        self._step += 1
        ending, preempted = self._decode()
        budget = self._pool.batch_tokens - self._decodes
        prefills: list[tuple[Sequence, int, int]] = []
        if self._partial is not None:
            budget, kept = self._continue(self._partial, budget, prefills)
            preempted = preempted or not kept
        if not preempted:
            self._admit(budget, prefills)
        if not self._decodes and not prefills:
            return preempted or self._wait()
        self._run(ending, prefills)
        return True

    # What comes in

    def _arrive(self) -> None:
        if self._arriving.next_s <= self.now:
            for request in self._arriving.until(self.now):
                self._enqueue(request)
        while self._loading and self._loading[0][0] <= self.now:
            self._loaded.append(heappop(self._loading)[2])

    def _enqueue(self, request: Request) -> None:
        number = self._record.arrived
        self._record.arrived += 1
        length = min(request.total_tokens, self._longest)
        # The last token is generated and never computed.
        needed = self.memory.most(length - 1)
        if request.prompt_tokens >= self._longest or needed > self._pool.blocks:
            self._record.refused += 1
            self._arriving.answered(request, self.now)
            return
        chain = self._contents.chain(request)
        groups = len(self.memory.groups)
        sequence = Sequence(number, request, chain, groups=groups, length=length)
        self._record.queued(sequence)
        self._waiting.append(sequence)

    def _wait(self) -> bool:
        """Nothing can run: goes on to the next arrival or load."""
        times = [self._loading[0][0]] if self._loading else []
        times.append(self._arriving.next_s)
        if min(times) < math.inf:
            until = max(self.now, min(times))
            self._note(until - self.now)
            self.now = until
            return True
        if self._loaded:
            # Loaded requests hold each other's blocks: the last one makes room.
            self._preempt(self._loaded.pop())
            return True
        if self._waiting:
            raise InternalError("A request waits for an empty pool that cannot hold it.")
        return False

    # What runs

    def _decode(self) -> tuple[list[Sequence], bool]:
        """The events of requests that decode; returns those at their end, and if one was lost."""
        ending: list[Sequence] = []
        lost = False
        for _, sequence, joined in sorted(self._calendar.pop(self._step, ()), key=_first):
            if sequence.joined != joined:
                continue
            computed = self._computed(sequence)
            sequence.computed = computed
            while not self.memory.grow(sequence, computed + 1):
                lost = True
                victim = next(reversed(self._running))
                self._preempt(victim)
                if victim is sequence:
                    break
            else:
                self._plan(sequence, ending)
        return ending, lost

    def _plan(self, sequence: Sequence, ending: list[Sequence]) -> None:
        """Enters the next event of a request that decodes into the calendar."""
        last = sequence.joined + sequence.output - sequence.generated
        if last == self._step:
            ending.append(sequence)
            return
        computed = sequence.target + self._step - sequence.joined
        step = self._step + 1 + min(_until(group, computed) for group in self.memory.groups)
        entry = (self._running[sequence], sequence, sequence.joined)
        self._calendar.setdefault(min(step, last), []).append(entry)

    def _continue(
        self, sequence: Sequence, budget: int, prefills: list[tuple[Sequence, int, int]]
    ) -> tuple[int, bool]:
        """The next chunk of the prompt that is being computed, if it can be had."""
        tokens = min(sequence.target - sequence.computed, budget)
        if tokens <= 0:
            return budget, True
        if not self.memory.grow(sequence, sequence.computed + tokens):
            self._preempt(sequence)
            return budget, False
        self._partial = None
        prefills.append((sequence, sequence.computed, tokens))
        return budget - tokens, True

    def _admit(self, budget: int, prefills: list[tuple[Sequence, int, int]]) -> None:
        """Lets in who waits, first come first served, as long as there is room for the first."""
        while budget > 0 and (self._loaded or self._waiting):
            sequence = self._loaded[0] if self._loaded else self._waiting[0]
            if len(self._running) >= self._pool.sequences:
                self._record.refused_first(full=False)
                break
            taken = self._first_step(sequence, budget)
            if taken is None:
                self._record.refused_first(full=True)
                break
            if taken:
                prefills.append((sequence, sequence.computed, taken))
                budget -= taken

    def _first_step(self, sequence: Sequence, budget: int) -> int | None:
        """Tokens of the first step of who is first in line; 0: it loads first, None: no room."""
        if self._loaded:
            tokens = min(sequence.target - sequence.computed, budget)
            if not self.memory.grow(sequence, sequence.computed + tokens):
                return None
            self._loaded.popleft()
            self._enter(sequence)
            return tokens
        mark = (sequence.number, self.memory.changes)
        if mark == self._refused_at:
            return None
        hit = self.memory.look_up(sequence)
        loads = any(hit.loaded)
        tokens = 0 if loads else min(sequence.target - hit.tokens, budget)
        if not self.memory.admit(sequence, hit, hit.tokens + tokens):
            self._refused_at = (sequence.number, self.memory.changes)
            return None
        self._waiting.popleft()
        self._record.admitted(sequence, hit, self.now)
        if loads:
            self._load(sequence, hit)
        else:
            self._enter(sequence)
        return tokens

    def _load(self, sequence: Sequence, hit: Hit) -> None:
        ready = self.memory.tiers.load(self.now, hit.loaded)
        heappush(self._loading, (ready, sequence.number, sequence))

    def _enter(self, sequence: Sequence) -> None:
        self._admissions += 1
        self._running[sequence] = self._admissions

    def _preempt(self, sequence: Sequence) -> None:
        """Takes a request's blocks; it comes back first in line and computes its tokens again."""
        if sequence.joined >= 0:
            sequence.computed = self._computed(sequence)
            sequence.generated += self._step - 1 - sequence.joined
            self._decodes -= 1
            self._decode_context -= sequence.computed + 1
        if sequence is self._partial:
            self._partial = None
        self._running.pop(sequence, None)
        sequence.lost = sequence.computed
        sequence.target = sequence.request.prompt_tokens + sequence.generated
        sequence.joined = -1
        sequence.computed = 0
        sequence.preemptions += 1
        self.memory.release(sequence)
        self._record.preempted(sequence)
        self._waiting.appendleft(sequence)

    def _computed(self, sequence: Sequence) -> int:
        """Tokens that a decoding request had computed before this step."""
        return sequence.target + self._step - 1 - sequence.joined

    # What a step leaves behind

    def _run(self, ending: list[Sequence], prefills: list[tuple[Sequence, int, int]]) -> None:
        """Lets the step's time pass, and settles what it computed."""
        batch = Batch(
            decodes=self._decodes,
            decode_context=self._decode_context,
            prefill_tokens=sum(tokens for _, _, tokens in prefills),
            prefill_context=sum(
                tokens * start + tokens * (tokens + 1) // 2 for _, start, tokens in prefills
            ),
            prefill_read=sum(start + tokens for _, start, tokens in prefills),
        )
        seconds = self._times.seconds(batch)
        self._note(seconds)
        self._record.computed(batch.decodes + batch.prefill_tokens)
        self.now += seconds
        self._decode_context += self._decodes
        for sequence in ending:
            self._decodes -= 1
            self._decode_context -= self._computed(sequence) + 2
            self._finish(sequence)
        for sequence, start, tokens in prefills:
            self._settle(sequence, start + tokens)

    def _settle(self, sequence: Sequence, computed: int) -> None:
        """A chunk of a prompt is computed; after the last one there is a token more."""
        sequence.computed = computed
        if computed < sequence.target:
            self._partial = sequence
            return
        sequence.generated += 1
        if sequence.first_token_s is None:
            sequence.first_token_s = self.now
        if sequence.generated >= sequence.output:
            self._finish(sequence)
            return
        sequence.joined = self._step
        self._decodes += 1
        self._decode_context += computed + 1
        self._plan(sequence, [])

    def _finish(self, sequence: Sequence) -> None:
        del self._running[sequence]
        sequence.joined = -1
        self.memory.release(sequence)
        self._record.done(sequence, self.now)
        self._arriving.answered(sequence.request, self.now)

    def _note(self, seconds: float) -> None:
        store = self.memory.store
        self._record.step(
            self.now,
            seconds,
            used=store.used,
            kept=store.kept,
            running=len(self._running),
            waiting=len(self._waiting),
        )


def _first(entry: tuple[int, Sequence, int]) -> int:
    return entry[0]


def _until(group: BlockGroup, computed: int) -> int:
    """Steps from ``computed`` tokens on until a group takes or leaves a block."""
    size = group.block_tokens
    if group.keeps == "none":
        return 2**60
    steps = -computed % size
    if group.keeps == "window":
        beyond = computed - group.span + 1
        leaves = -beyond % size
        steps = min(steps, leaves if beyond + leaves >= size else size - beyond)
    elif group.keeps == "chunk":
        steps = min(steps, -computed % group.span)
    return steps
