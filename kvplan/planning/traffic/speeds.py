"""How long one replica takes for prompts, steps and transfers: a roofline, or stated rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kvplan.engines.base import BlockPool, Paged, Prepared, Setup
from kvplan.errors import NotModelledError, UsageError
from kvplan.planning.simulate import service
from kvplan.planning.simulate.service import Batch, StepTimes
from kvplan.traffic_parts import TransferTimes
from kvplan.workloads.distributions import Atom, histogram
from kvplan.workloads.lengths import Pair

_P95 = 0.95


@dataclass(frozen=True, slots=True)
class Machine:
    """One replica.

    Attributes:
        prepared: Its configuration.
        pool: Its blocks.
        ranks: GPUs of it.
        times: Its steps; None: the device's speed is not known.
        prompt_rate: Tokens of a prompt a second where the user states that, or None.
    """

    prepared: Prepared
    pool: BlockPool
    ranks: int
    times: StepTimes | None
    prompt_rate: float | None = None

    def prompt_s(self, tokens: int) -> float | None:
        """Seconds to compute a prompt that has the replica to itself, in the engine's chunks."""
        if self.prompt_rate is not None:
            return tokens / self.prompt_rate
        if self.times is None:
            return None
        seconds, start = 0.0, 0
        while start < tokens:
            chunk = min(self.pool.batch_tokens, tokens - start)
            context = chunk * start + chunk * (chunk + 1) // 2
            seconds += self.times.seconds(Batch(0, 0, chunk, context, start + chunk))
            start += chunk
        return seconds

    def step_s(self, requests: int, context: float) -> float | None:
        """Seconds of a step in which so many requests of that mean context generate."""
        if self.times is None:
            return None
        return self.times.seconds(Batch(requests, round(requests * context)))

    def most_running(self, context: float, step_s: float) -> int | None:
        """The most requests of that mean context at which a step takes no longer."""
        if self.times is None:
            return None
        low, high = 0, self.pool.sequences + 1
        while high - low > 1:
            middle = (low + high) // 2
            now = self.step_s(middle, context) or math.inf
            low, high = (middle, high) if now <= step_s else (low, middle)
        return low

    def gpu_bytes(self, tokens: int) -> int:
        """Bytes of one GPU that a request of so many tokens holds, in the engine's own blocks."""
        return self.prepared.request_units(tokens)[0] * self.pool.block_bytes


def machine_of(prepared: Prepared, setup: Setup, *, prompt_rate: float | None = None) -> Machine:
    """A replica with its roofline.

    Raises:
        NotModelledError: the engine's cache is no pool of blocks that is modelled here.
    """
    if not isinstance(prepared, Paged):
        raise NotModelledError(
            "Tiers and separate pools are planned for vllm only.",
            hint="Leave out --tier and --kv-link, or plan for vllm.",
        )
    pool, parallel = prepared.block_pool(), setup.parallelism
    ranks = parallel.tp * parallel.pp
    return Machine(prepared, pool, ranks, _roofline(setup, pool, ranks), prompt_rate)


def _roofline(setup: Setup, pool: BlockPool, ranks: int) -> StepTimes | None:
    try:
        return service.roofline(setup.model, setup.gpu, pool.groups, ranks=ranks)
    except UsageError:
        return None


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of some traffic by the lengths that are asked about.

    Attributes:
        lengths: Tokens and shares.
    """

    lengths: tuple[Atom, ...]

    @property
    def mean(self) -> float:
        """Tokens on average."""
        return self.mean_of(float)

    @property
    def p95(self) -> int:
        """Tokens that 95 % do not exceed."""
        return round(histogram(self.lengths).quantile(_P95))

    @property
    def longest(self) -> int:
        """Tokens of the longest."""
        return max(tokens for tokens, _ in self.lengths)

    def mean_of(self, figure: Callable[[int], float]) -> float:
        """The mean of a figure of a length."""
        whole = math.fsum(share for _, share in self.lengths)
        return math.fsum(figure(tokens) * share for tokens, share in self.lengths) / whole


def prompts_of(pairs: Iterable[Pair], in_front: int = 0) -> Prompts:
    """The prompts, with what comes in front of them."""
    found: dict[int, float] = {}
    for prompt, _, share in pairs:
        found[prompt + in_front] = found.get(prompt + in_front, 0.0) + share
    return Prompts(tuple(sorted(found.items())))


def transfer_of(prompts: Prompts, bytes_of: Callable[[int], int], rate: float) -> TransferTimes:
    """Bytes and seconds of one GPU's share of the prompts' caches at ``rate`` bytes a second."""
    mean, p95, longest = (
        round(prompts.mean_of(bytes_of)),
        bytes_of(prompts.p95),
        bytes_of(prompts.longest),
    )
    return TransferTimes(
        bytes_mean=mean,
        bytes_p95=p95,
        bytes_longest=longest,
        seconds_mean=mean / rate,
        seconds_p95=p95 / rate,
        seconds_longest=longest / rate,
    )
