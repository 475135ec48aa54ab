"""What a simulation found: the types that reports read."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


class Spread(_Part):
    """How a figure was distributed.

    Attributes:
        p50, p90, p95, p99: At most so much in that share of cases (or of the time).
    """

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float


class Requests(_Part):
    """What became of the requests.

    Attributes:
        arrived: Those that the simulation saw.
        finished: Those that generated all their tokens.
        refused: Those that the engine can never hold: too long for the model or for the pool.
        cut: Those that end early at the model's longest context; they count as finished.
        unfinished: Those still on their way when the simulation was interrupted.
    """

    arrived: int
    finished: int
    refused: int
    cut: int
    unfinished: int


class Pool(_Part):
    """The pool that was simulated: that of one replica.

    Attributes:
        blocks: Blocks that requests can have.
        block_bytes: Bytes of one on the fullest GPU.
        sequences, batch_tokens: Most requests and tokens of a step.
        replicas: Replicas of the deployment; one was simulated, with its share of the requests.
    """

    blocks: int
    block_bytes: int
    sequences: int
    batch_tokens: int
    replicas: int


class Waiting(_Part):
    """How long requests wait before their first step.

    Attributes:
        seconds: From arrival to admission.
        for_blocks, for_sequences: Requests that waited, in front or further back, while the first
            in line was not admitted because the pool was full, or because as many ran as may.
    """

    seconds: Spread | None
    for_blocks: int
    for_sequences: int


class Preemptions(_Part):
    """Requests that were thrown out while they ran.

    Attributes:
        count: How often that happened.
        requests: To how many different requests.
        recomputed_tokens: Tokens that were computed again for it.
    """

    count: int
    requests: int
    recomputed_tokens: int


class TierUse(_Part):
    """A memory behind the GPU's.

    Attributes:
        name: ``host`` or ``disk``.
        blocks: Blocks that it holds.
        hit_tokens: Tokens of prompts that came from it; of several groups of layers, their mean.
        read_bytes, written_bytes: What went over its link.
    """

    name: str
    blocks: int
    hit_tokens: int
    read_bytes: int
    written_bytes: int


class Prefixes(_Part):
    """How much of the prompts was resident.

    Attributes:
        prompt_tokens: Tokens of prompts that were looked up, first admissions only.
        hit_tokens: Those that need not be computed: on the GPU or in a tier.
        local_tokens: Those on the GPU.
        tiers: What the memories behind it gave.
    """

    prompt_tokens: int
    hit_tokens: int
    local_tokens: int
    tiers: tuple[TierUse, ...] = ()

    @property
    def hit_rate(self) -> float:
        """Share of the prompts' tokens that were resident."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


class Latency(_Part):
    """What users see, in seconds, of finished requests.

    Attributes:
        first_token: From arrival to the first token.
        between_tokens: Mean time between the tokens of a request; None: all had one token.
        whole: From arrival to the last token.
    """

    first_token: Spread | None
    between_tokens: Spread | None
    whole: Spread | None


class Throughput(_Part):
    """What the replica did a second.

    Attributes:
        requests_per_s, output_tokens_per_s: Finished requests, generated tokens.
        computed_tokens_per_s: Tokens of prompts and output that were computed.
        goodput_per_s: Requests a second that kept the limits; None: none were given.
        good_share: Share of the finished requests that did.
        first_token_limit_s, between_tokens_limit_s: The limits.
    """

    requests_per_s: float
    output_tokens_per_s: float
    computed_tokens_per_s: float
    goodput_per_s: float | None = None
    good_share: float | None = None
    first_token_limit_s: float | None = None
    between_tokens_limit_s: float | None = None


class Moment(_Part):
    """An interval of the timeline: means over it.

    Attributes:
        start_s: Its start.
        seconds: Its length.
        used: Blocks that requests held.
        used_max: The most.
        kept: Blocks kept for whoever wants their content again.
        running, waiting: Requests.
    """

    start_s: float
    seconds: float
    used: float
    used_max: int
    kept: float
    running: float
    waiting: float


class CurvePoint(_Part):
    """The hit rate of a cache of one size.

    Attributes:
        blocks, bytes: Its capacity; bytes of one GPU.
        hit_rate: Share of the prompts' whole blocks that it has when they are asked for.
    """

    blocks: int
    bytes: int
    hit_rate: float


class Simulation(_Part):
    """A finished or interrupted simulation.

    Attributes:
        status: ``interrupted`` where somebody stopped it: the figures are those until then.
        simulated_s: Time that passed in it.
        steps: Steps that the engine made.
        used_blocks, running: Over time, while requests ran or waited.
        timeline: At most a few hundred intervals.
        curve: Hit rate by capacity of an endless trace of these prompts; empty where not asked.
        assumed: What was filled in, in words.
        seed: That of the workload, or None where it has none.

    Example:
        >>> from kvplan import Workload, simulate
        >>> chat = Workload("1k/50", rate_per_s=2.0, requests=10)
        >>> found = simulate("Qwen/Qwen3-8B", "L4", chat, context=4096, offline=True)
        >>> found.status, found.requests.finished
        ('finished', 10)
    """

    schema_: Literal["kvplan.simulation/1"] = Field(default="kvplan.simulation/1", alias="schema")
    kvplan_version: str
    status: Literal["finished", "interrupted"]
    model: str
    gpu: str
    engine: str
    seed: int | None
    simulated_s: float
    steps: int
    pool: Pool
    requests: Requests
    used_blocks: Spread | None
    running: Spread | None
    waiting: Waiting
    preemptions: Preemptions
    prefixes: Prefixes
    latency: Latency
    throughput: Throughput
    timeline: tuple[Moment, ...]
    curve: tuple[CurvePoint, ...] = ()
    assumed: tuple[str, ...] = ()

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )
