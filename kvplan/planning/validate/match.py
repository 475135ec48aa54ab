"""A record → the model, the GPU and the engine that it names, and the setups to plan it with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from kvplan.architectures import read_model
from kvplan.architectures.drafts.own import mtp_draft
from kvplan.engines.base import Engine, Setup
from kvplan.errors import EngineRefusesError, KvplanError, NotModelledError, RefusedError
from kvplan.hardware import Fact, GpuSpec
from kvplan.measurement import Measurement
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec
from kvplan.plan import Parallelism
from kvplan.planning.validate.flags import MEMORY_OPTIONS, PAGE_OPTIONS, stated_options
from kvplan.planning.validate.formats import as_loaded, with_own_cache_scheme
from kvplan.planning.validate.lacking import LackingError, extra, need, need_gib
from kvplan.units import GIB, MAX_TOKENS

# Where a check needs no GPU and the record names none, the engine's rules are those of a bare
# amount of memory.
_NO_GPU = GpuSpec(
    id="not stated",
    name="not stated",
    vendor="custom",
    architecture="unknown",
    torch_total_gib=Fact(value=80, source="no GPU is stated; its memory is not used"),
)
_ASSUMED = "_assumed"
_SPREAD = "enable_expert_parallel"


class Finder(Protocol):
    """Where facts come from; `kvplan.api` wires it, tests make their own."""

    def facts(self, record: Measurement) -> ModelFacts:
        """What is known of the record's model."""
        ...

    def gpu(self, name: str) -> GpuSpec:
        """The device of that name."""
        ...

    def engine(self, name: str) -> Engine:
        """The engine of that name."""
        ...


@dataclass(frozen=True, slots=True)
class Start:
    """A record whose names are found.

    Attributes:
        model: As its configuration describes it, in whatever format the weights are.
        gpu: With the memory that the log states, where it does.
        assumed: What the record does not state and was filled in.
    """

    record: Measurement
    engine: Engine
    model: ModelSpec
    gpu: GpuSpec
    assumed: tuple[str, ...]

    @property
    def gpu_stated(self) -> bool:
        """Whether the record names its GPU."""
        return self.gpu.id != _NO_GPU.id

    @property
    def context(self) -> int:
        """Tokens a request: as stated, or what the model allows at most."""
        stated = need(self.record.max_model_len or self.model.max_context, "max_model_len")
        if stated > MAX_TOKENS:
            raise LackingError(f"max_model_len is more than any: {stated}")
        return stated

    def pages(self, model: ModelSpec, kv_bytes: int) -> Setup:
        """The setup with a cache of exactly so many bytes on every rank."""
        return self._setup(model, PAGE_OPTIONS, (kv_bytes,))

    def memory(self, model: ModelSpec) -> Setup:
        """The setup from model, GPU and flags alone."""
        return self._setup(model, (*PAGE_OPTIONS, *MEMORY_OPTIONS), None)

    def loaded(self) -> ModelSpec:
        """The model in the format it was loaded in.

        Raises:
            LackingError: that format is not known, or part of it was kept elsewhere.
        """
        if extra(self.record, "cpu_offload_gib"):
            raise LackingError("part of the weights was kept in the host's memory")
        return as_loaded(self.model, self.record)

    def _setup(
        self, model: ModelSpec, names: tuple[str, ...], kv_budget: tuple[int, ...] | None
    ) -> Setup:
        record = self.record
        options = stated_options(record, self.model, names)
        return Setup(
            model=model,
            gpu=self.gpu,
            version=record.engine_version,
            parallelism=Parallelism(
                tp=record.tp or 1,
                pp=record.pp or 1,
                dp=record.dp or 1,
                dcp=_count(extra(record, "decode_context_parallel")),
            ),
            kv_dtype=record.kv_cache_dtype or "auto",
            dtype=record.dtype or "auto",
            kv_budget=kv_budget,
            options=options,
            context=self.context,
            draft=self._draft(model, options),
        )

    def _draft(self, model: ModelSpec, options: Mapping[str, Any]) -> ModelSpec | None:
        """The model's own modules where they draft; records do not tell other drafts apart."""
        wanted = self.engine.draft_of(options)
        if wanted is None:
            return None
        if wanted.model is not None:
            raise LackingError(f"the draft's configuration is not at hand: {wanted.model}")
        return mtp_draft(model)


class Matcher:
    """Finds what records name; models are read once however many records name them."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._specs: dict[int, tuple[ModelFacts, ModelSpec]] = {}

    def match(self, record: Measurement) -> Start:
        """The record with its model, GPU and engine.

        Raises:
            LackingError: one of them is unknown, or not modelled.
        """
        engine = self._engine(record)
        if extra(record, "engine_generation") == "V0":
            need(record.engine_version, "engine_version")
        gpu = self._gpu(record)
        return _as_far_as_logged(
            Start(
                record=record,
                engine=engine,
                model=with_own_cache_scheme(self._model(record), record),
                gpu=gpu,
                assumed=_assumed(record, gpu),
            )
        )

    def _engine(self, record: Measurement) -> Engine:
        try:
            return self._finder.engine(need(record.engine, "engine").casefold())
        except KvplanError as error:
            raise LackingError(f"unknown engine: {error.message}") from None

    def _gpu(self, record: Measurement) -> GpuSpec:
        if record.gpu is None:
            return _NO_GPU
        try:
            found = self._finder.gpu(record.gpu)
        except KvplanError as error:
            raise LackingError(f"unknown GPU: {error.message}") from None
        if record.gpu_total_gib is None or extra(record, "gpu_total_assumed"):
            return found
        total = need_gib(record.gpu_total_gib, "gpu_total_gib")
        logged = Fact(value=total, source="the start's own log")
        return found.model_copy(update={"torch_total_gib": logged})

    def _model(self, record: Measurement) -> ModelSpec:
        try:
            facts = self._finder.facts(record)
        except KvplanError as error:
            raise LackingError(f"unknown model: {error.message}") from None
        if id(facts) not in self._specs:
            try:
                self._specs[id(facts)] = facts, read_model(facts)
            except NotModelledError as error:
                raise LackingError(f"model not modelled: {error.message}") from None
            except KvplanError as error:
                raise LackingError(f"unreadable model: {error.message}") from None
        return self._specs[id(facts)][1]


def _as_far_as_logged(start: Start) -> Start:
    """The start with expert parallelism where nothing else lets the engine come as far as its log.

    What splits experts in a way that the engine refuses would not have loaded them.
    """
    record = start.record
    loaded = record.weights_gib or record.available_kv_gib or record.kv_tokens
    if not start.model.experts or not loaded or extra(record, _SPREAD) is not None:
        return start
    spread = replace(
        start,
        record=Measurement.model_validate({**record.model_dump(), _SPREAD: True}),
        assumed=(*start.assumed, _SPREAD),
    )
    return spread if _is_refused(start) and not _is_refused(spread) else start


def _is_refused(start: Start) -> bool:
    """Whether the engine rejects the start's flags; what can't be planned it does not."""
    try:
        start.engine.prepare(start.pages(start.model, GIB))
    except EngineRefusesError:
        return True
    except (LackingError, KvplanError):
        return False
    return False


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value >= 1 else 1


def release_gap(start: Start) -> str | None:
    """Why the release can't be planned at all, which is no word of the engine's; None if it can.

    The plainest start of the same model on the same release tells: what refuses that too does
    not refuse this record's flags.
    """
    try:
        start.engine.prepare(
            Setup(
                model=start.model,
                gpu=start.gpu,
                version=start.record.engine_version,
                kv_budget=(GIB,),
                options=stated_options(start.record, start.model, ("use_v1",)),
                context=start.context,
            )
        )
    except RefusedError as error:
        return f"release not modelled: {error.message}"
    return None


def _assumed(record: Measurement, gpu: GpuSpec) -> tuple[str, ...]:
    """Fields that the record's author marks as filled in, and those that kvplan fills in."""
    marked = [
        name.removesuffix(_ASSUMED)
        for name, value in sorted((record.model_extra or {}).items())
        if name.endswith(_ASSUMED) and value is True
    ]
    filled = [
        name
        for name in ("engine_version", "tp", "gpu_memory_utilization", "max_model_len")
        if getattr(record, name) is None
    ]
    return tuple(dict.fromkeys((*marked, *filled, *(("gpu",) if gpu is _NO_GPU else ()))))
