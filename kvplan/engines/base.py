"""What every engine answers, and what it is asked. Engines share these types and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from kvplan.errors import UsageError
from kvplan.hardware import GpuSpec
from kvplan.host_profile import HostProfile
from kvplan.ledger import LedgerLine
from kvplan.models.spec import ModelSpec
from kvplan.plan import Capacity, DevicePart, EnginePart, KvPart, Parallelism, Reason, Verdict


@dataclass(frozen=True, slots=True)
class Setup:
    """One configuration of one engine, before any request.

    Attributes:
        version: As pinned by the user, or None for the newest modelled.
        kv_dtype: The engine's own string, ``auto`` included.
        dtype: The compute type, or ``auto``.
        kv_budget: Bytes of cache per rank (one figure: the same for all), or None.
        options: The engine's own names and values.
        context: Tokens a request may have; None is the model's own maximum.
        draft: The model that drafts tokens where the options ask for one, or None.
        profile: What was measured on the machine that is planned for, or None.
        others: Further devices of the same machine, for engines that spread a model over unlike
            ones; the host's memory may be one of them.
    """

    model: ModelSpec
    gpu: GpuSpec
    version: str | None = None
    parallelism: Parallelism = field(default_factory=Parallelism)
    kv_dtype: str = "auto"
    dtype: str = "auto"
    kv_budget: tuple[int, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    context: int | None = None
    draft: ModelSpec | None = None
    profile: HostProfile | None = None
    others: tuple[GpuSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class DraftRequest:
    """A draft for speculative decoding that options ask for.

    Attributes:
        model: A reference as a user writes it; None: the model's own modules.
        is_head: It is an EAGLE-1 head, whose configuration reads like a Llama's.
    """

    model: str | None
    is_head: bool = False


@dataclass(frozen=True, slots=True)
class Figures:
    """Capacity alone, for searches: no ledger, no text.

    Attributes:
        blocks, tokens, max_concurrency: As the engine logs them, for one replica.
        max_context: The longest single request of one replica.
        requests: Whole requests of the asked length, over the deployment.
        starts: Whether the engine would start for requests of that length.
    """

    blocks: int
    tokens: int
    max_concurrency: float
    max_context: int
    requests: int
    starts: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything a plan says that is the engine's to say."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    engine: EnginePart
    parallelism: Parallelism
    context: int
    ledger: tuple[LedgerLine, ...]
    total_bytes: int
    total_source: str
    kv: KvPart
    capacity: Capacity
    devices: tuple[DevicePart, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolUnits:
    """One pool that all requests of a replica draw from.

    Attributes:
        name: What it keeps: ``kv``, ``windows``, ``states``, ``sequences``.
        unit: What it is handed out in: ``block``, ``page``, ``token``, ``slot``.
        count: Units that requests can have.
    """

    name: str
    unit: str
    count: int


@dataclass(frozen=True, slots=True)
class ReplicaPools:
    """What the requests of one replica share.

    Attributes:
        pools: In the order of `Prepared.request_units`.
        sequences: Most requests that run at once, whatever they hold.
        replicas: Replicas of the deployment; each has such pools of its own.
        step: A request's units change only where its tokens pass a multiple of this.
    """

    pools: tuple[PoolUnits, ...]
    sequences: int
    replicas: int
    step: int


@dataclass(frozen=True, slots=True)
class BlockGroup:
    """Layers that are handed blocks of one pool together, as a request grows.

    Attributes:
        keeps: Which of a request's tokens stay: all, those of a window or of a chunk, or none
            (a fixed number of blocks).
        block_tokens: Tokens of a request that a block holds over all ranks.
        token_bytes: Bytes that attention reads of one kept token on one rank, over all stages.
        span: Tokens of the window (what speculation keeps besides included) or of the chunk.
        fixed: Blocks held whatever the length; blocks of tokens come on top unless ``keeps`` is
            ``none``.
        most: Blocks that admission counts at most, whatever the length; None: no limit.
    """

    keeps: Literal["all", "window", "chunk", "none"]
    block_tokens: int
    token_bytes: float = 0.0
    span: int = 0
    fixed: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class BlockPool:
    """One replica's pool of blocks, and how its engine fills a batch.

    Attributes:
        blocks: Blocks that requests can have.
        block_bytes: Bytes of a block on the fullest rank.
        groups: Each takes its own blocks of every request.
        sequences: Most requests that run at once.
        batch_tokens: Most tokens of a step.
        caches_prefixes: Whether blocks of the same content are shared and kept.
        admits_whole: Whether a request is only admitted where its whole prompt has room.
        replicas: Replicas of the deployment; each has such a pool of its own.
    """

    blocks: int
    block_bytes: int
    groups: tuple[BlockGroup, ...]
    sequences: int
    batch_tokens: int
    caches_prefixes: bool = True
    admits_whole: bool = True
    replicas: int = 1


@runtime_checkable
class Paged(Protocol):
    """A prepared configuration whose cache is a pool of blocks, for simulations."""

    def block_pool(self) -> BlockPool:
        """The pool, and the engine's own rule of what a request takes of it."""
        ...


class Prepared(Protocol):
    """A configuration whose layers, pages and memory are worked out; asking is then cheap."""

    def figures(self, context: int) -> Figures:
        """Capacity for requests of ``context`` tokens."""
        ...

    def longest_context(self) -> int:
        """The longest request the pool holds, at most the model's own maximum."""
        ...

    def answer(self, context: int, concurrency: int | None) -> Answer:
        """The full answer for ``concurrency`` requests of ``context`` tokens."""
        ...

    def pools(self, context: int) -> ReplicaPools:
        """What the requests of a replica share that is started for ``context`` tokens.

        Raises:
            NotModelledError: the engine has no pool that requests come and go in.
        """
        ...

    def request_units(self, tokens: int) -> tuple[int, ...]:
        """Units of each pool that a request holds while it decodes, at ``tokens`` tokens.

        The engine's own rule; never less for more tokens. A chunk of prompt in flight, for which
        windows need more when a request starts, is not in it.
        """
        ...

    def own_units(self, tokens: int, shared: int) -> tuple[int, ...]:
        """Units that it holds beside those with only its first ``shared`` tokens.

        Those are held once for all requests that begin alike, where the engine shares them.
        """
        ...


class Engine(Protocol):
    """An engine as the planner sees it.

    Attributes:
        newest: The newest release modelled, taken where none is pinned.
        unstated_context: Tokens that it plans for where a model states no maximum, or None.
    """

    name: str
    newest: str
    unstated_context: int | None

    def draft_of(self, options: Mapping[str, Any]) -> DraftRequest | None:
        """The draft that the options ask for, which the caller is to read.

        Raises:
            KvplanError: options that the engine does not have.
        """
        ...

    def prepare(self, setup: Setup) -> Prepared:
        """Works out everything that does not depend on the load.

        Raises:
            EngineRefusesError: the engine itself would reject the configuration.
            NotModelledError: kvplan does not model it.
            UsageError: an unknown option or a value out of range.
        """
        ...


Version = tuple[int, ...]


def parse_version(text: str) -> Version:
    """``0.33.0`` as (0, 33, 0); a ``v`` or ``b`` in front and suffixes are dropped.

    >>> parse_version("0.20.1rc1")
    (0, 20, 1)
    """
    numbers: list[int] = []
    for part in text.strip().lstrip("vb").split("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits or len(digits) > 6:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    if not numbers:
        raise UsageError(f"{text[:40]!r} is not an engine version.", hint="Write vllm==0.33.0.")
    return tuple(numbers)
