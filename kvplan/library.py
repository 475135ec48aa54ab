"""`kvplan.simulate` and `kvplan.traffic`: in one call what commands do in several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kvplan import simulator, traffic_planner
from kvplan.errors import UsageError
from kvplan.hardware import GpuSpec
from kvplan.models.spec import ModelSpec
from kvplan.planning.simulate.recorder import Limits
from kvplan.planning.traffic.question import Question
from kvplan.planning.traffic.traffic import Demand, Service, Traffic
from kvplan.simulation import Simulation
from kvplan.simulator import Speed, TierMemory
from kvplan.traffic_plan import TrafficPlan
from kvplan.workload import Workload
from kvplan.workloads.requests import Request


def simulate(  # noqa: PLR0913 - the arguments of `kvplan.size`, and what is played
    model: str | ModelSpec,
    gpu: str | GpuSpec,
    requests: Workload | Iterable[Request],
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
    tiers: Sequence[TierMemory] = (),
    speed: Speed | None = None,
    first_token_s: float | None = None,
    between_tokens_s: float | None = None,
    curve: bool = False,
    offline: bool = False,
    progress: Callable[[int, float], None] | None = None,
) -> Simulation:
    """Plays requests through one configuration, step by step.

    The other arguments are those of `kvplan.size`.

    Args:
        model: A Hub id, a folder, a ``config.json`` or a `ModelSpec`.
        gpu: The name of a device, ``custom:48GiB``, or a `GpuSpec`.
        requests: A `Workload`, or any requests in order of arrival.
        engine: The engine, optionally pinned.
        tp: Tensor parallel size.
        pp: Pipeline parallel size.
        dp: Data parallel size, i.e. replicas; one is simulated, with its share of the requests.
        dcp: Decode-context parallel size.
        context: Tokens that a request may have; None is the model's own maximum.
        weights: ``auto`` or a format to plan for.
        kv_dtype: The engine's own cache type.
        dtype: The compute type.
        kv_budget: Bytes of KV cache on each GPU, or one figure a rank.
        engine_options: The engine's own option names and values.
        tiers: Memories behind the GPUs', the fastest first.
        speed: How fast steps are; None: a roofline of the device.
        first_token_s: Seconds to the first token that requests are promised.
        between_tokens_s: Mean seconds between tokens that they are promised.
        curve: Add the hit rate that a cache of each size would have (needs numpy, and a workload
            that can be played twice).
        offline: Use bundled specs and the local cache only.
        progress: Told now and then how many requests are done and what the simulated time is.

    Raises:
        NotModelledError: an engine whose requests are not simulated.
        KvplanError: a bad argument, facts that can't be had, or unreadable input.

    Example:
        >>> chat = Workload("1k/50", rate_per_s=2.0, requests=20)
        >>> found = simulate("Qwen/Qwen3-8B", "L4", chat, context=4096, offline=True)
        >>> found.requests.finished, found.preemptions.count
        (20, 0)
    """
    if curve and not isinstance(requests, Workload | Sequence):
        raise UsageError(
            "A curve plays the requests a second time, and these can be had once.",
            hint="Give a Workload or a list.",
        )
    deployment = simulator.deploy(
        model,
        gpu,
        engine=engine,
        tp=tp,
        pp=pp,
        dp=dp,
        dcp=dcp,
        context=context,
        weights=weights,
        kv_dtype=kv_dtype,
        dtype=dtype,
        kv_budget=kv_budget,
        engine_options=engine_options,
        offline=offline,
    )
    return simulator.simulate(
        deployment,
        requests,
        speed=speed,
        tiers=tiers,
        limits=Limits(first_token_s, between_tokens_s),
        seed=requests.seed if isinstance(requests, Workload) and requests.trace is None else None,
        curve_of=requests if curve else None,
        progress=progress,
    )


def traffic(  # noqa: PLR0913 - the arguments of `kvplan.size`, and what is asked
    model: str | ModelSpec,
    gpu: str | GpuSpec,
    workload: Workload,
    *,
    risk: float = 0.001,
    decode_tokens_per_s: float | None = None,
    prefill_tokens_per_s: float | None = None,
    users: int | None = None,
    think_s: float = 0.0,
    engine: str = "vllm",
    tp: int = 1,
    pp: int = 1,
    dp: int = 1,
    dcp: int = 1,
    context: int | str | None = None,
    weights: str = "auto",
    kv_dtype: str = "auto",
    dtype: str = "auto",
    kv_budget: int | Sequence[int] | None = None,
    engine_options: Mapping[str, Any] | None = None,
    profile: str | Path | None = None,
    offline: bool = False,
) -> TrafficPlan:
    """Says how many requests of real traffic fit at a chosen risk.

    The other arguments are those of `kvplan.size`. For prefixes, sessions, tiers and a day's
    profile ask `kvplan.traffic_planner.plan_traffic`.

    Args:
        model: A Hub id, a folder, a ``config.json`` or a `ModelSpec`.
        gpu: The name of a device, ``custom:48GiB``, or a `GpuSpec`.
        workload: The requests; its rate, where it has one, is the demand.
        risk: Share of the time that the pool may be too small, from 0 to 1.
        decode_tokens_per_s: Tokens a second that one request generates; needed with a rate.
        prefill_tokens_per_s: Tokens a second of its prompt; None: at once.
        users: Users who each send their next request a while after the answer, in place of a rate.
        think_s: That while, in seconds.
        engine: The engine, optionally pinned.
        tp: Tensor parallel size.
        pp: Pipeline parallel size.
        dp: Data parallel size, i.e. replicas.
        dcp: Decode-context parallel size.
        context: The longest request that the engine takes.
        weights: ``auto`` or a format to plan for.
        kv_dtype: The engine's own cache type.
        dtype: The compute type.
        kv_budget: Bytes of KV cache on each GPU, or one figure a rank.
        engine_options: The engine's own option names and values.
        profile: What was learned of the machine that is planned for.
        offline: Use bundled specs and the local cache only.

    Raises:
        KvplanError: a bad argument, facts that can't be had, or unreadable input; also what the
            engine refuses and what kvplan does not model.

    Example:
        >>> chat = Workload("p50=1k,p95=4k/300")
        >>> found = traffic("Qwen/Qwen3-8B", "H100", chat, context=8192, offline=True)
        >>> found.held.requests > 2 * found.held.at_longest
        True
    """
    worded = workload.worded()
    pairs = workload.pairs() if worded is None else worded.lengths.pairs()
    rate = workload.rate_per_s if users is None else None
    question = Question(
        traffic=Traffic(pairs, worded is None or worded.lengths.grows),
        name=str(workload.trace or workload.lengths),
        risk=risk,
        service=Service(decode_tokens_per_s, prefill_tokens_per_s),
        demand=None if rate is None and users is None else Demand(rate, users, think_s),
        fits=worded.fits if worded else (),
        requests_read=None if worded else round(sum(share for *_, share in pairs)),
    )
    return traffic_planner.plan_traffic(
        model,
        gpu,
        question,
        engine=engine,
        tp=tp,
        pp=pp,
        dp=dp,
        dcp=dcp,
        context=context,
        weights=weights,
        kv_dtype=kv_dtype,
        dtype=dtype,
        kv_budget=kv_budget,
        engine_options=engine_options,
        profile=profile,
        offline=offline,
    )
