"""Prompts on one pool of replicas, answers on another, and the cache on a link between them.

A prefill replica computes one prompt after the other: M/G/1, whose mean wait is that of Pollaczek
and Khinchine; how waits are spread around it is taken to be exponential, as in heavy traffic.
Every decode GPU pulls its own share of a prompt's cache over its own link, in the engine's blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from kvplan.errors import UsageError
from kvplan.planning.traffic.day import MOST_REPLICAS
from kvplan.planning.traffic.links import Link
from kvplan.planning.traffic.speeds import Machine, Prompts, transfer_of
from kvplan.traffic_parts import (
    DecodePool,
    DisaggregatedPools,
    FirstToken,
    KvLink,
    PrefillPool,
    TransferTimes,
)
from kvplan.traffic_plan import LoadOnPools

BUSIEST = 0.8
"""Assumed where no limit is given: share of the time that a prefill replica computes at most."""
_AS_MANY_AS_YOU_LIKE = 10**9
_TAIL = 0.05
"""The share of requests that may wait longer than what is counted."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two pools.

    Attributes:
        machine: One replica.
        gpu: What its GPUs are called.
        tp: Tensor parallel size.
    """

    machine: Machine
    gpu: str
    tp: int


@dataclass(frozen=True, slots=True)
class Apart:
    """All that is known of two pools and the link between them.

    Attributes:
        prefill, decode: The pools.
        link: One GPU's, and what a transfer gets of it.
        efficiency: That share.
        layers: Layers of the model; one layer can be sent while the next is computed.
        prompts: What comes.
        rate_per_s: How often in the busiest hour.
        first_token_s: Limit of the time to the first token, or None.
        step_s: Longest step of decoding.
    """

    prefill: Side
    decode: Side
    link: Link
    efficiency: float
    layers: int
    prompts: Prompts
    rate_per_s: float
    first_token_s: float | None
    step_s: float

    def transfer(self) -> TransferTimes:
        """What a prompt's cache takes on the busier end of the link."""
        return transfer_of(self.prompts, self._gpu_bytes, self.link.bytes_per_s * self.efficiency)

    def _gpu_bytes(self, tokens: int) -> int:
        """Fewer prefill GPUs than decode GPUs send several shares each."""
        share = self.decode.machine.gpu_bytes(tokens)
        senders, takers = self.prefill.machine.ranks, self.decode.machine.ranks
        return share * max(1, -(-takers // senders))

    def prompt_s(self, tokens: int) -> float:
        """Seconds that a prompt takes to compute.

        Raises:
            UsageError: the device's speed is not known.
        """
        seconds = self.prefill.machine.prompt_s(tokens)
        if seconds is None:
            raise UsageError(
                f"How fast {self.prefill.gpu} computes prompts is not known.",
                hint="Add --prefill-rate, in tokens a second of one replica.",
            )
        return seconds


def disaggregated(
    apart: Apart, load: LoadOnPools, context: float, peak_running: float
) -> DisaggregatedPools:
    """Sizes both pools.

    Args:
        apart: What is known.
        load: What the decode pool's memory makes of it.
        context: Tokens of a request that is seen.
        peak_running: Requests that generate at once in the busiest hour, on all replicas.

    Raises:
        UsageError: the device's speed is not known.
    """
    transfer = apart.transfer()
    prompts = _Queue(apart, transfer)
    alone = prompts.fewest(lambda share: share <= 0)
    overlapped = prompts.fewest(lambda share: share <= prompts.possible)
    return DisaggregatedPools(
        link=KvLink(
            name=apart.link.name,
            bytes_per_s=apart.link.bytes_per_s,
            efficiency=apart.efficiency,
            source=apart.link.source,
        ),
        transfer=transfer,
        first_token=prompts.first_token(overlapped or alone or _AS_MANY_AS_YOU_LIKE),
        prefill=_prefill(apart, prompts, alone, overlapped),
        decode=_decode(apart, load, context, peak_running),
    )


def _prefill(
    apart: Apart, prompts: _Queue, alone: int | None, overlapped: int | None
) -> PrefillPool:
    """The pool with the fewest replicas that are enough, without overlap where that is possible."""
    side, shown = apart.prefill, alone or overlapped
    mean_units = side.machine.prepared.request_units(round(apart.prompts.mean))[0]
    return PrefillPool(
        gpu=side.gpu,
        tp=side.tp,
        prompt_s=prompts.mean_s,
        replicas=alone,
        replicas_overlapped=overlapped,
        gpus=None if shown is None else shown * side.machine.ranks,
        utilization=None if shown is None else prompts.busy(shown),
        link_utilization=None if shown is None else prompts.link_busy(shown),
        held=None if shown is None else prompts.held(shown),
        room=side.machine.pool.blocks / max(1, mean_units),
    )


class _Queue:
    """Prompts in front of the prefill pool."""

    def __init__(self, apart: Apart, transfer: TransferTimes) -> None:
        self._apart = apart
        self._transfer = transfer
        seconds = {tokens: apart.prompt_s(tokens) for tokens, _ in apart.prompts.lengths}
        self.mean_s = apart.prompts.mean_of(seconds.__getitem__)
        self._square = apart.prompts.mean_of(lambda tokens: seconds[tokens] ** 2)
        self._p95_s = seconds.get(apart.prompts.p95) or apart.prompt_s(apart.prompts.p95)

    @property
    def possible(self) -> float:
        """The share of a transfer that layers sent one by one can hide: all but the last layer."""
        whole, rest = self._transfer.seconds_p95, (self._apart.layers - 1) / self._apart.layers
        visible = max(whole / self._apart.layers, whole - self._p95_s * rest)
        return max(0.0, 1 - visible / whole) if whole else 1.0

    def busy(self, replicas: int) -> float:
        """The share of the time that a replica computes."""
        return self._apart.rate_per_s * self.mean_s / replicas

    def link_busy(self, replicas: int) -> float:
        """The share of the time that its links send."""
        return self._apart.rate_per_s * self._transfer.seconds_mean / replicas

    def held(self, replicas: int) -> float:
        """Requests whose blocks a replica holds: those computed, and those on the link."""
        return self.busy(replicas) + self.link_busy(replicas)

    def first_token(self, replicas: int) -> FirstToken:
        """The time to the first token of 95 % of the requests."""
        parts = (
            self._wait(replicas),
            self._p95_s,
            self._transfer.seconds_p95,
            self._apart.step_s,
        )
        wait, prompt, transfer, step = parts
        return FirstToken(
            limit_s=self._apart.first_token_s,
            wait_s=wait,
            prefill_s=prompt,
            transfer_s=transfer,
            decode_step_s=step,
            total_s=math.fsum(parts),
            overlap_needed=self._needed(replicas),
            overlap_possible=self.possible,
        )

    def fewest(self, enough: Callable[[float], bool]) -> int | None:
        """The fewest replicas with which the share that has to overlap is small enough."""
        least = max(1, math.floor(max(self.busy(1), self.link_busy(1))) + 1)
        if self._apart.first_token_s is None:
            return max(least, math.ceil(self.busy(1) / BUSIEST))
        low, high = least - 1, least
        while not enough(self._needed(high)):
            low, high = high, high * 2
            if high > MOST_REPLICAS:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(self._needed(middle)) else (middle, high)
        return high

    def _needed(self, replicas: int) -> float:
        """The share of a transfer that has to be hidden; above 1: even without one it is late."""
        limit, whole = self._apart.first_token_s, self._transfer.seconds_p95
        if limit is None:
            return 0.0
        other = self._wait(replicas) + self._p95_s + self._apart.step_s
        return max(0.0, 1 - (limit - other) / whole)

    def _wait(self, replicas: int) -> float:
        """Seconds that 95 % of the requests wait at most."""
        busy = self.busy(replicas)
        if busy >= 1:
            return math.inf
        if busy <= _TAIL:
            return 0.0
        mean = self._apart.rate_per_s / replicas * self._square / (2 * (1 - busy))
        return -math.log(_TAIL / busy) * mean / busy


def _decode(apart: Apart, load: LoadOnPools, context: float, peak_running: float) -> DecodePool:
    machine = apart.decode.machine
    most = machine.most_running(context, apart.step_s)
    by_speed = None
    if most is None:
        by_speed = 1
    elif most:
        by_speed = math.ceil(peak_running / most)
    counts = (load.replicas_needed, by_speed)
    needed = None if None in counts else max(count for count in counts if count is not None)
    return DecodePool(
        gpu=apart.decode.gpu,
        tp=apart.decode.tp,
        replicas=needed,
        by_memory=load.replicas_needed,
        by_speed=by_speed,
        running=None if needed is None else peak_running / needed,
        most_running=machine.pool.sequences if most is None else most,
        gpus=None if needed is None else needed * machine.ranks,
        speed_known=most is not None,
    )
