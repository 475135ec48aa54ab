"""What every engine answers, and what it is asked. Engines share these types and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

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
