"""`kvplan.simulator.simulate`: a workload through one configuration, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvplan import api
from kvplan.architectures import quantize
from kvplan.asked import engine_of
from kvplan.engines.base import BlockPool, Paged
from kvplan.errors import NotModelledError
from kvplan.hardware import GpuSpec
from kvplan.models.spec import ModelSpec
from kvplan.plan import Parallelism
from kvplan.planning.simulate import needs_numpy, service
from kvplan.planning.simulate.recorder import Limits
from kvplan.planning.simulate.run import Names, Setting
from kvplan.planning.simulate.run import simulate as run
from kvplan.planning.simulate.service import StepTimes
from kvplan.planning.simulate.tiers import Tier
from kvplan.planning.size import resolve_context
from kvplan.planning.traffic.links import link_of
from kvplan.simulation import CurvePoint, Simulation
from kvplan.sources.gpus import find_gpus
from kvplan.workloads.requests import Request


@dataclass(frozen=True, slots=True)
class TierMemory:
    """A memory behind the GPU's: its bytes, over all GPUs of a replica, and how fast it is read.

    Attributes:
        name: ``host``, ``disk`` or ``remote``.
        bytes: Of a replica.
        bytes_per_s: Of a replica; or the name of a link, of which each GPU has one: ``pcie``.
    """

    name: str
    bytes: int
    bytes_per_s: float | str


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast steps are.

    Attributes:
        steps: The user's own figures, or None for a roofline of the device.
        bandwidth_efficiency, flops_efficiency: What a roofline takes of the device's peak; None:
            `kvplan.planning.simulate.service` says what is assumed.
        overhead_s: What it adds to every step.
    """

    steps: StepTimes | None = None
    bandwidth_efficiency: float | None = None
    flops_efficiency: float | None = None
    overhead_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Deployment:
    """A configuration that is ready to be simulated.

    Attributes:
        longest: Tokens that a request may have.
        ranks: GPUs of a replica.
        tokens: Of the pool, as the engine logs them, and the least and most that may be left for
            it; None where its size is given.
    """

    model: ModelSpec
    gpu: GpuSpec
    engine: str
    pool: BlockPool
    longest: int
    ranks: int
    tokens: tuple[int, int, int] | None = None


def deploy(  # noqa: PLR0913 - the arguments of `kvplan.size`
    model: str | ModelSpec,
    gpu: str | GpuSpec,
    *,
    engine: str = "vllm",
    tp: int = 1,
    pp: int = 1,
    dp: int = 1,
    dcp: int = 1,
    context: int | None = None,
    weights: str = "auto",
    kv_dtype: str = "auto",
    dtype: str = "auto",
    kv_budget: int | Sequence[int] | None = None,
    engine_options: Mapping[str, Any] | None = None,
    offline: bool = False,
) -> Deployment:
    """Works out the pool; the arguments are those of `kvplan.size`.

    Raises:
        NotModelledError: the engine has no pool of blocks that is modelled here, or it drafts.
        KvplanError: see `kvplan.size`.
    """
    if (engine_options or {}).get("speculative_config"):
        raise NotModelledError(
            "Speculative decoding is not simulated.", hint="Leave speculative_config out."
        )
    spec = model if isinstance(model, ModelSpec) else api.read_spec(model, offline=offline)
    spec = spec if weights == "auto" else quantize(spec, weights)
    device = gpu if isinstance(gpu, GpuSpec) else find_gpus(gpu)[0]
    budget = (kv_budget,) if isinstance(kv_budget, int) else kv_budget
    unstated = engine_of(engine).planner().unstated_context
    longest = resolve_context(spec, context, unstated=unstated)
    prepared = api.prepare(
        spec,
        device,
        engine=engine,
        parallelism=Parallelism(tp=tp, pp=pp, dp=dp, dcp=dcp),
        kv_dtype=kv_dtype,
        dtype=dtype,
        kv_budget=tuple(budget) if budget else None,
        options=dict(engine_options or {}),
        context=context if spec.max_context else longest,
    )
    if not isinstance(prepared, Paged):
        raise NotModelledError(
            f"Requests on {engine} are not simulated yet.", hint="Simulate them on vllm."
        )
    capacity = prepared.answer(longest, None).capacity
    tokens = (
        (capacity.tokens, capacity.tokens_low, capacity.tokens_high)
        if capacity and capacity.tokens_low is not None and capacity.tokens_high is not None
        else None
    )
    return Deployment(spec, device, engine, prepared.block_pool(), longest, tp * pp, tokens)


def simulate(
    deployment: Deployment,
    requests: Iterable[Request],
    *,
    speed: Speed | None = None,
    tiers: Sequence[TierMemory] = (),
    limits: Limits | None = None,
    seed: int | None = None,
    curve_of: Iterable[Request] | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> Simulation:
    """Simulates a workload.

    Args:
        deployment: What `deploy` worked out.
        requests: In order of arrival.
        speed: How fast steps are.
        tiers: Memories behind the GPU's, the fastest first.
        limits: What requests have to keep to count as good.
        seed: The workload's, for the record.
        curve_of: The same requests once more, where the hit-rate curve is wanted.
        progress: Told now and then how many requests are done and what the simulated time is.

    Raises:
        UsageError: an unknown device speed or link, a request that makes no sense, numpy missing.
    """
    speed = speed or Speed()
    pool, assumed = deployment.pool, (*_likely_size(deployment), *_assumed(speed))
    block_bytes = pool.block_bytes * deployment.ranks
    setting = Setting(
        pool=pool,
        times=speed.steps or _roofline(deployment, speed),
        longest=deployment.longest,
        tiers=tuple(
            Tier(tier.name, tier.bytes // block_bytes, _read_rate(tier, deployment))
            for tier in tiers
        ),
        ranks=deployment.ranks,
        limits=limits or Limits(),
    )
    if pool.replicas > 1:
        assumed = (*assumed, f"one of {pool.replicas} replicas, with its share of the requests")
    if not pool.caches_prefixes:
        assumed = (*assumed, "no prefix is found again")
    names = Names(
        deployment.model.id, deployment.gpu.id, deployment.engine, seed=seed, assumed=assumed
    )
    curve = () if curve_of is None else _curve(curve_of, deployment)
    return run(requests, setting, names, progress=progress, curve=curve)


def _read_rate(tier: TierMemory, deployment: Deployment) -> float:
    if not isinstance(tier.bytes_per_s, str):
        return tier.bytes_per_s
    return link_of(tier.bytes_per_s, deployment.gpu).bytes_per_s * deployment.ranks


def _roofline(deployment: Deployment, speed: Speed) -> StepTimes:
    bandwidth, flops = speed.bandwidth_efficiency, speed.flops_efficiency
    return service.roofline(
        deployment.model,
        deployment.gpu,
        deployment.pool.groups,
        ranks=deployment.ranks,
        bandwidth_efficiency=service.BANDWIDTH_EFFICIENCY if bandwidth is None else bandwidth,
        flops_efficiency=service.FLOPS_EFFICIENCY if flops is None else flops,
        overhead_s=speed.overhead_s,
    )


def _likely_size(deployment: Deployment) -> Iterator[str]:
    if deployment.tokens is not None:
        tokens, low, high = (f"{each:,}" for each in deployment.tokens)
        yield f"the pool has its likely {tokens} tokens; runtime memory may leave {low} to {high}"


def _assumed(speed: Speed) -> tuple[str, ...]:
    if speed.steps is not None:
        return ()
    said: list[str] = []
    if speed.bandwidth_efficiency is None:
        said.append(f"steps get {service.BANDWIDTH_EFFICIENCY:.0%} of the GPU's bandwidth")
    if speed.flops_efficiency is None:
        said.append(f"steps get {service.FLOPS_EFFICIENCY:.0%} of the GPU's 16-bit arithmetic")
    return tuple(said)


def _curve(requests: Iterable[Request], deployment: Deployment) -> tuple[CurvePoint, ...]:
    needs_numpy.check()
    from kvplan.planning.simulate.curve import hit_curve  # noqa: PLC0415  numpy is an extra

    pool = deployment.pool
    # One block of tokens is a block of every group.
    groups = len(pool.groups)
    found = hit_curve(requests, max(group.block_tokens for group in pool.groups))
    return found.points(pool.block_bytes * groups, marks=(pool.blocks // groups,))
