"""Plan: what every report reads. The JSON form (`kvplan.plan/1`) is this, dumped."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from kvplan._version import __version__
from kvplan.ledger import LedgerLine

Verdict = Literal["fits", "does_not_fit", "refused"]


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


class Reason(_Part):
    """Why the verdict is what it is, or what a reader has to know before trusting the numbers."""

    code: str
    message: str
    hint: str | None = None


class ModelPart(_Part):
    """The model as planned."""

    id: str
    revision: str | None
    architecture: str
    source: str
    parameters_total: int | None
    parameters_active: int | None


class GpuPart(_Part):
    """The devices: how many in all, and one device's total bytes as the engine sees them."""

    id: str
    count: int
    total_bytes: int
    source: str


class EnginePart(_Part):
    """The engine, its resolved options, and which of them kvplan filled in."""

    name: str
    version: str
    options: dict[str, Any]
    assumed: tuple[str, ...]


class Parallelism(_Part):
    """Tensor, pipeline, data, decode-context and expert parallel sizes."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    dcp: int = 1
    ep: int = 1

    @property
    def gpus(self) -> int:
        """Devices in all."""
        return self.tp * self.pp * self.dp


class KvPart(_Part):
    """The cache on one GPU, in bytes.

    Attributes:
        bytes_per_token: What one more token at the end of a request of ``context`` adds,
            averaged over a block.
        bytes_per_request: What a request of ``context`` tokens holds under the engine's paging.
        budget_bytes: What is left for the cache; low and high enclose it.
        allocated_bytes: What the engine allocates of it.
        storage_bytes: What the allocated tensors keep alive, where an engine's tensors are views
            of larger ones (transformers); None elsewhere.
    """

    dtype: str
    bytes_per_token: float
    bytes_per_request: int
    budget_bytes: int
    budget_low: int | None
    budget_high: int | None
    allocated_bytes: int
    storage_bytes: int | None = None


class DevicePart(_Part):
    """One device of an engine that spreads a model over unlike ones, the host among them.

    Attributes:
        layers: Layers that lie on it.
        cache_bytes: Keys, values and states.
        others_bytes: What other programs hold of it now; only of a device that was read.
        total_bytes, left_bytes: None where the device's memory was not stated.
    """

    name: str
    id: str
    layers: int
    weights_bytes: int
    cache_bytes: int
    compute_bytes: int
    process_bytes: int
    others_bytes: int = Field(default=0, exclude_if=lambda held: not held)
    total_bytes: int | None
    left_bytes: int | None


class GroupPage(_Part):
    """One layer's share of a block, and how many layers of a group have it."""

    kind: str
    layers: int
    page_bytes: int


class CacheGroup(_Part):
    """Layers whose caches share blocks.

    Attributes:
        kind: What the layers keep.
        layers: How many there are.
        layer_indices: Which they are, from 0; those of a draft follow the model's.
        page_bytes: One layer's share of a block; where they differ the first layer's.
        pages: All shares where they differ; else empty.
        blocks_per_request: Blocks that one request of the planned length holds.
        padding_bytes: Bytes of a block that the group leaves unused.
    """

    kind: str
    layers: int
    layer_indices: tuple[int, ...] = ()
    page_bytes: int
    pages: tuple[GroupPage, ...] = ()
    block_size: int
    blocks_per_request: int
    padding_bytes: int


class Capacity(_Part):
    """What fits. All figures are per replica but ``requests``, which counts the deployment."""

    blocks: int
    block_size: int
    bytes_per_block: int
    groups: tuple[CacheGroup, ...]
    tokens: int
    tokens_low: int | None
    tokens_high: int | None
    max_concurrency: float
    max_context: int
    requests: int


class Gain(_Part):
    """What an advice adds: whole requests and tokens of the deployment."""

    requests: int
    tokens: int


class Advice(_Part):
    """One change, computed: what it is, what it gives, what it costs.

    Attributes:
        change: Arguments of `kvplan.size` to change, by name.
        cost: What is paid for it: accuracy, latency, money.
    """

    action: str
    change: dict[str, Any]
    gain: Gain
    cost: str
    note: str


class Workload(_Part):
    """What was asked for: tokens a request, requests at once (None: not judged).

    ``context`` is None only in a refusal of a model whose longest context is not known.
    """

    context: int | None
    concurrency: int | None


class Plan(_Part):
    """An answer: does it fit, why, where every byte goes, and what to change.

    Attributes:
        verdict: ``fits``, ``does_not_fit``, or ``refused`` where no memory would help.
        reasons: Why, and what a reader has to know before trusting the numbers.
        workload: What was asked for.
        ledger: Every byte of one GPU, the one of the fullest rank; `rows` is it as a table.
        kv, capacity: The cache and what it holds; None where the plan was refused.
        advice: What would help, each with its exact gain; empty where nothing has to be changed.
        devices: Those of engines that spread a model over unlike ones.

    Example:
        >>> from kvplan import size
        >>> plan = size("Qwen/Qwen3-8B", "H100", context=8192, concurrency=32, offline=True)
        >>> plan.verdict, plan.capacity.requests >= 32, plan.kv.bytes_per_token
        ('fits', True, 147456.0)
    """

    schema_: Literal["kvplan.plan/1"] = Field("kvplan.plan/1", alias="schema")
    kvplan_version: str = __version__
    verdict: Verdict
    reasons: tuple[Reason, ...]
    model: ModelPart
    gpu: GpuPart
    engine: EnginePart
    parallelism: Parallelism
    workload: Workload
    ledger: tuple[LedgerLine, ...]
    kv: KvPart | None
    capacity: Capacity | None
    advice: tuple[Advice, ...] = ()
    # Of engines that spread a model over unlike devices; left out of the JSON of all others.
    devices: tuple[DevicePart, ...] = Field((), exclude_if=lambda parts: not parts)

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )

    def rows(self) -> tuple[dict[str, Any], ...]:
        """The ledger of one GPU as a table: a row a line, ready for a data frame.

        Each row has ``name``, ``section``, ``bytes``, ``low`` and ``high`` (bytes that enclose it),
        ``formula``, ``source`` and ``confidence``. The numbers of a formula are in `ledger`.

        Example:
            >>> from kvplan.api import size
            >>> plan = size("Qwen/Qwen3-8B", "H100", context=8192, offline=True)
            >>> plan.rows()[0]["name"], sum(row["bytes"] for row in plan.rows()) > 0
            ('weights.embedding', True)
        """
        return tuple(line.model_dump(exclude={"inputs"}) for line in self.ledger)
