"""One simulation from its workload to its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from kvplan._version import __version__
from kvplan.engines.base import BlockPool
from kvplan.errors import UsageError
from kvplan.planning.simulate.memory import Memory
from kvplan.planning.simulate.recorder import Limits, Recorder
from kvplan.planning.simulate.scheduler import Scheduler
from kvplan.planning.simulate.service import StepTimes
from kvplan.planning.simulate.tiers import Tier, Tiers
from kvplan.simulation import CurvePoint, Pool, Prefixes, Simulation, TierUse
from kvplan.workloads.requests import Request, check_request

# Steps between two looks at the progress bar.
_LOOK = 512


@dataclass(frozen=True, slots=True)
class Names:
    """What a result says it is of."""

    model: str
    gpu: str
    engine: str
    seed: int | None = None
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Setting:
    """What is simulated.

    Attributes:
        pool: One replica's, with the engine's rule.
        times: How long steps take.
        longest: Tokens that a request may have.
        tiers: Memories behind the GPU's, the fastest first.
        ranks: GPUs of a replica; a block lies on all of them.
        limits: What requests have to keep to count as good.
    """

    pool: BlockPool
    times: StepTimes
    longest: int
    tiers: tuple[Tier, ...] = ()
    ranks: int = 1
    limits: Limits = field(default_factory=Limits)


def simulate(
    requests: Iterable[Request],
    setting: Setting,
    names: Names,
    *,
    progress: Callable[[int, float], None] | None = None,
    curve: tuple[CurvePoint, ...] = (),
) -> Simulation:
    """Runs the workload through one replica; Ctrl-C ends it early with what there is.

    Args:
        requests: In order of arrival. Of several replicas, one gets its share, conversation by
            conversation.
        setting: What is simulated.
        names: What the result says it is of.
        progress: Told now and then how many requests are done and what the time is.
        curve: The hit-rate curve, if it was asked for.

    Raises:
        UsageError: an empty pool, a request that makes no sense, or times out of order.
    """
    if setting.pool.blocks < 1:
        raise UsageError("The pool has no blocks to simulate with.", hint="Try a larger GPU.")
    block_bytes = setting.pool.block_bytes * setting.ranks
    tiers = Tiers(setting.tiers, len(setting.pool.groups), block_bytes)
    recorder = Recorder(setting.limits)
    scheduler = Scheduler(
        Memory(setting.pool, tiers), setting.times, recorder, longest=setting.longest
    )
    interrupted = False
    try:
        scheduler.start(_share(_checked(requests), setting.pool.replicas))
        while scheduler.step():
            if progress is not None and recorder.steps % _LOOK == 0:
                progress(recorder.finished + recorder.refused, scheduler.now)
    except KeyboardInterrupt:
        interrupted = True
    found = _result(scheduler.now, recorder, tiers, setting, names)
    status: Literal["finished", "interrupted"] = "interrupted" if interrupted else "finished"
    return found.model_copy(update={"status": status, "curve": curve})


def _result(
    now_s: float, recorder: Recorder, tiers: Tiers, setting: Setting, names: Names
) -> Simulation:
    return Simulation(
        kvplan_version=__version__,
        status="finished",
        model=names.model,
        gpu=names.gpu,
        engine=names.engine,
        seed=names.seed,
        simulated_s=now_s,
        steps=recorder.steps,
        pool=_pool(setting.pool),
        requests=recorder.requests(),
        used_blocks=recorder.used(),
        running=recorder.running(),
        waiting=recorder.waiting(),
        preemptions=recorder.preemptions(),
        prefixes=_prefixes(recorder, tiers, setting),
        latency=recorder.latency(),
        throughput=recorder.throughput(now_s),
        timeline=recorder.timeline.moments(),
        assumed=names.assumed,
    )


def _checked(requests: Iterable[Request]) -> Iterator[Request]:
    """The requests, each checked, in order of arrival."""
    before = 0.0
    for number, request in enumerate(requests, start=1):
        check_request(request)
        if request.arrival_s < before:
            raise UsageError(
                f"Request {number:,} arrives before the one in front of it.",
                hint="Sort the requests by their arrival.",
            )
        before = request.arrival_s
        yield request


def _share(requests: Iterator[Request], replicas: int) -> Iterator[Request]:
    """Every so many-th request, and of conversations every so many-th one."""
    if replicas == 1:
        yield from requests
        return
    seen: dict[str, int] = {}
    count = 0
    for request in requests:
        place = count if request.session is None else seen.setdefault(request.session, count)
        count += place == count
        if place % replicas == 0:
            yield request


def _pool(pool: BlockPool) -> Pool:
    return Pool(
        blocks=pool.blocks,
        block_bytes=pool.block_bytes,
        sequences=pool.sequences,
        batch_tokens=pool.batch_tokens,
        replicas=pool.replicas,
    )


def _prefixes(recorder: Recorder, tiers: Tiers, setting: Setting) -> Prefixes:
    block_bytes = setting.pool.block_bytes * setting.ranks
    loaded = [*recorder.loaded_blocks, *[0] * len(tiers.levels)]
    sizes = [group.block_tokens for group in setting.pool.groups if group.keeps != "none"]
    tokens = sum(sizes) / len(sizes) / len(sizes) if sizes else 0.0
    return Prefixes(
        prompt_tokens=recorder.prompt_tokens,
        hit_tokens=recorder.hit_tokens,
        local_tokens=recorder.local_tokens,
        tiers=tuple(
            TierUse(
                name=level.name,
                blocks=level.blocks,
                hit_tokens=round(loaded[index] * tokens),
                read_bytes=loaded[index] * block_bytes,
                written_bytes=tiers.written_blocks[index] * block_bytes,
            )
            for index, level in enumerate(tiers.levels)
        ),
    )
