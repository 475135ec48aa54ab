"""Parts of a TrafficPlan that only some questions have: see `kvplan.traffic_plan`.

Bytes and seconds of a transfer are those of one GPU, whose link carries its own share.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """Immutable, and nothing unknown in it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


class HeldByClosedSimulation(Part):
    """Requests held at the chosen risk, found by walking places that are always taken.

    Attributes:
        requests: Of the whole deployment.
        risk: How often so many held more than there is.
        agrees: The analysis gives the same within 2 %, or within one request a replica.
    """

    requests: int
    risk: float
    agrees: bool


class Retained(Part):
    """Sessions that are kept between two turns.

    Attributes:
        ttl_s: At most so long.
        think_s: Mean pause until the next turn.
        found: Share of next turns that come in time.
        kept_s: Seconds that a request's blocks are kept on average after its last token.
        running_share: Of all that hold blocks, the share that generates.
        running, kept: Of the requests held at the chosen risk, those that generate and the rest.
        kept_concurrent: Sessions kept at once at the day's mean rate; None without a load.
        kept_units: Units of the pool ``kv`` of one replica that these hold; None without a load.
    """

    ttl_s: float
    think_s: float
    found: float
    kept_s: float
    running_share: float
    running: int
    kept: int
    kept_concurrent: float | None = None
    kept_units: float | None = None


class TransferTimes(Part):
    """Bytes and seconds for a mean prompt, the 95th percentile and the longest."""

    bytes_mean: int
    bytes_p95: int
    bytes_longest: int
    seconds_mean: float
    seconds_p95: float
    seconds_longest: float


class OffloadTier(Part):
    """A memory behind the GPUs' and what it is good for.

    Attributes:
        bytes: Of all GPUs of one replica.
        bytes_per_s: What one GPU reads of it a second.
        source: Where that is from.
        tokens: Tokens of context that it holds.
        requests: Requests of the mean length that it holds.
        load: A prompt from the tier to the GPU.
        compute_mean_s, compute_p95_s: The same prompt computed instead; None: not known.
        faster: How many times as fast loading a mean prompt is; below 1 it is slower.
        decode_requests: Requests that a replica runs at once: at the day's mean rate, or one.
        decode_step_s: A step of these, their caches on the GPU; None: unknown.
        decode_from_tier_s: The same where attention reads all of it over the link in every step.
        most_loads_per_s: Mean prompts that the link can bring a second: all of its capacity.
    """

    name: str
    bytes: int
    bytes_per_s: float
    source: str
    tokens: int
    requests: float
    load: TransferTimes
    compute_mean_s: float | None
    compute_p95_s: float | None
    faster: float | None
    decode_requests: int
    decode_step_s: float | None
    decode_from_tier_s: float | None
    most_loads_per_s: float


class KvLink(Part):
    """The link between the pools.

    Attributes:
        bytes_per_s: Of one GPU, one way, on paper.
        efficiency: What a transfer gets of it.
    """

    name: str
    bytes_per_s: float
    efficiency: float
    source: str


class FirstToken(Part):
    """The time to the first token of 95 % of the requests, in its parts.

    Attributes:
        limit_s: What it may be, or None: no limit was given.
        wait_s: For a prefill replica.
        prefill_s: Computing the prompt.
        transfer_s: The cache on its way.
        decode_step_s: The step that generates the token.
        total_s: All of it, nothing overlapped.
        overlap_needed: Share of the transfer that has to happen while the prompt is computed.
        overlap_possible: Share that can, where layers are sent as soon as they are computed.
    """

    limit_s: float | None
    wait_s: float
    prefill_s: float
    transfer_s: float
    decode_step_s: float
    total_s: float
    overlap_needed: float
    overlap_possible: float


class PrefillPool(Part):
    """Replicas that compute prompts.

    Attributes:
        gpu, tp: What a replica is.
        prompt_s: Seconds that a mean prompt takes.
        replicas: Those that keep the limits in the busiest hour where nothing overlaps; None:
            no number does.
        replicas_overlapped: The same where as much overlaps as can.
        gpus: Of ``replicas``, or else of ``replicas_overlapped``.
        utilization: Share of the time that a replica computes.
        link_utilization: Share of the time that its links send.
        held: Requests that a replica holds blocks for on average.
        room: Requests of mean length that it has blocks for.
    """

    gpu: str
    tp: int
    prompt_s: float
    replicas: int | None
    replicas_overlapped: int | None
    gpus: int | None
    utilization: float | None
    link_utilization: float | None
    held: float | None
    room: float


class DecodePool(Part):
    """Replicas that generate.

    Attributes:
        gpu, tp: What a replica is.
        replicas: Those that are needed in the busiest hour; None: no number is enough.
        by_memory: Those that hold all requests at the chosen risk.
        by_speed: Those whose steps are fast enough; None: a single request is too slow.
        running: Requests that a replica runs in the busiest hour.
        most_running: Requests of mean length at which a step takes as long as it may.
        gpus: Of all replicas.
        speed_known: The device's speed is; if not, memory alone decides.
    """

    gpu: str
    tp: int
    replicas: int | None
    by_memory: int | None
    by_speed: int | None
    running: float | None
    most_running: int
    gpus: int | None
    speed_known: bool = True


class DisaggregatedPools(Part):
    """Prompts are computed by one pool and answers generated by another."""

    link: KvLink
    transfer: TransferTimes
    first_token: FirstToken
    prefill: PrefillPool
    decode: DecodePool


class PolicyFigures(Part):
    """What a policy that drops entries of the cache would do.

    Attributes:
        policy: As it was asked for.
        implemented: Whether this engine has it; if not, all other figures of the plan are
            without it.
        by: What implements it.
        requests: Requests held at the chosen risk if the engine dropped entries so.
        mean_units: Units of the pool ``kv`` that a seen request would hold.
        kept_longest: Entries that remain of the longest request, of each full layer.
    """

    policy: str
    implemented: bool
    by: str
    requests: int
    mean_units: float
    kept_longest: int
