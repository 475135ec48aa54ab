"""The only wiring: resolve references, plan, return a `Plan`. The CLI and libraries call this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvplan.architectures import quantize, read_model
from kvplan.engines.base import Engine, Prepared, Setup, parse_version
from kvplan.engines.vllm.engine import Vllm
from kvplan.errors import NotModelledError, UnknownNameError, UsageError, nearest, shown
from kvplan.hardware import GpuSpec
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec
from kvplan.plan import EnginePart, ModelPart, Parallelism, Plan, Workload
from kvplan.planning.advise import advise
from kvplan.planning.size import (
    MAX_RANKS,
    Load,
    model_part,
    refused_plan,
    resolve_context,
    with_node_note,
)
from kvplan.planning.size import size as size_setup
from kvplan.sources.gpus import find_gpu
from kvplan.sources.models import read_model as read_facts
from kvplan.units import MAX_BYTES, MAX_TOKENS

ENGINES: Mapping[str, Engine] = {"vllm": Vllm()}
# Named in the contract, not modelled yet: refused by name rather than unknown.
ENGINES_TO_COME = ("sglang", "tensorrt-llm", "llama.cpp", "ollama", "transformers")
MAX_REQUESTS = 2**31
_LONGEST_WORD = 4096


def size(  # noqa: PLR0913 - the signature is the contract
    model: str | ModelSpec,
    gpu: str | GpuSpec,
    *,
    engine: str = "vllm",
    tp: int = 1,
    pp: int = 1,
    dp: int = 1,
    dcp: int = 1,
    context: int | str | None = None,
    concurrency: int | None = None,
    weights: str = "auto",
    kv_dtype: str = "auto",
    dtype: str = "auto",
    kv_budget: int | Sequence[int] | None = None,
    engine_options: Mapping[str, Any] | None = None,
    gpus_per_node: int | None = None,
    offline: bool = False,
    advice: bool = True,
) -> Plan:
    """Plans one configuration.

    Args:
        model: A Hub id (``org/name`` or ``org/name@revision``), a folder, a ``config.json``, or
            a `ModelSpec`.
        gpu: The name of a device, ``auto``, ``custom:48GiB``, or a `GpuSpec`.
        engine: ``vllm``, optionally pinned: ``vllm==0.33.0``.
        tp: Tensor parallel size.
        pp: Pipeline parallel size.
        dp: Data parallel size, i.e. replicas.
        dcp: Decode-context parallel size; divides ``tp``.
        context: Tokens a request; None is the model's maximum, ``"auto"`` the longest that fits.
        concurrency: Requests held at once over the deployment; None: report, don't judge.
        weights: ``auto`` (as the checkpoint is) or a format to plan for: ``fp8``, ``awq``.
        kv_dtype: The engine's own cache type.
        dtype: The compute type.
        kv_budget: Bytes of KV cache on each GPU, or one figure a rank: skips the memory ledger.
        engine_options: The engine's own option names and values.
        gpus_per_node: GPUs that share fast links; a wider tensor parallel group is pointed out.
        offline: Use bundled specs and the local cache only.
        advice: Whether to look for what to change where it does not fit.

    Raises:
        KvplanError: a bad argument, facts that can't be had, or unreadable input. What the engine
            refuses and what kvplan does not model (an engine to come, too) is not raised: the
            plan's verdict says so.

    Example:
        >>> plan = size("meta-llama/Llama-3.1-8B-Instruct", "H100", context=8192, offline=True)
        >>> plan.verdict
        'fits'
    """
    request = _Request(
        engine=_engine(engine),
        parallelism=_parallelism(tp=tp, pp=pp, dp=dp, dcp=dcp),
        load=_load(context, concurrency),
        weights=_word("weights", weights),
        kv_dtype=_word("kv_dtype", kv_dtype),
        dtype=_word("dtype", dtype),
        kv_budget=_budget(kv_budget),
        options=_options(engine_options),
        gpu=gpu if isinstance(gpu, GpuSpec) else find_gpu(_word("gpu", gpu)),
    )
    if gpus_per_node is not None:
        _whole("gpus_per_node", gpus_per_node, MAX_RANKS)
    known: ModelFacts | ModelSpec
    known = model if isinstance(model, ModelSpec) else _facts(model, offline=offline)
    try:
        known = spec = _spec(known, weights)
        planner = request.engine.planner()
        setup = _setup(request, spec)
    except NotModelledError as refusal:
        return _not_modelled(request, known, refusal)
    plan = size_setup(planner, setup, request.load)
    plan = with_node_note(plan, gpus_per_node)
    if not advice:
        return plan
    return plan.model_copy(update={"advice": advise(planner, setup, request.load, plan)})


@dataclass(frozen=True, slots=True)
class _Pinned:
    """An engine of the contract, and the release that was asked for."""

    name: str
    version: str | None

    def planner(self) -> Engine:
        """The engine's model.

        Raises:
            NotModelledError: it is one to come.
        """
        if self.name not in ENGINES:
            raise NotModelledError(
                f"kvplan does not model {self.name} yet.", hint=f"Modelled: {', '.join(ENGINES)}."
            )
        return ENGINES[self.name]

    def release(self) -> str:
        """The release that rules are taken from; ``none`` of an engine to come."""
        engine = ENGINES.get(self.name)
        return self.version or (engine.newest if engine else "none")


@dataclass(frozen=True, slots=True)
class _Request:
    """The checked arguments of `size`, model apart."""

    engine: _Pinned
    parallelism: Parallelism
    load: Load
    weights: str
    kv_dtype: str
    dtype: str
    kv_budget: tuple[int, ...] | None
    options: dict[str, Any]
    gpu: GpuSpec


def read_spec(model: str, *, offline: bool = False) -> ModelSpec:
    """Reads what a model stores, from wherever the reference points.

    Raises:
        KvplanError: see `size`; also NotModelledError for a family kvplan does not model.
    """
    return read_model(_facts(model, offline=offline))


def prepare(model: ModelSpec, gpu: GpuSpec, *, engine: str = "vllm", **changes: Any) -> Prepared:
    """A configuration that can then be asked many times, for searches.

    ``changes`` are the other fields of `kvplan.engines.base.Setup`.
    """
    pinned = _engine(engine)
    setup = Setup(model=model, gpu=gpu, version=pinned.version, **changes)
    return pinned.planner().prepare(setup)


def _facts(model: str, *, offline: bool) -> ModelFacts:
    return read_facts(_word("model", model), offline=offline)


def _spec(known: ModelFacts | ModelSpec, weights: str) -> ModelSpec:
    spec = known if isinstance(known, ModelSpec) else read_model(known)
    return spec if weights == "auto" else quantize(spec, weights)


def _setup(request: _Request, spec: ModelSpec) -> Setup:
    asked = request.load.context
    return Setup(
        model=spec,
        gpu=request.gpu,
        version=request.engine.version,
        parallelism=request.parallelism,
        kv_dtype=request.kv_dtype,
        dtype=request.dtype,
        kv_budget=request.kv_budget,
        options=request.options,
        context=resolve_context(spec, asked if isinstance(asked, int) else None),
    )


def _not_modelled(
    request: _Request, known: ModelFacts | ModelSpec, refusal: NotModelledError
) -> Plan:
    asked = request.load.context
    return refused_plan(
        refusal,
        model=_unread(known) if isinstance(known, ModelFacts) else model_part(known),
        gpu=request.gpu,
        engine=EnginePart(
            name=request.engine.name,
            version=request.engine.release(),
            options=request.options,
            assumed=(),
        ),
        parallelism=request.parallelism,
        workload=Workload(
            context=asked if isinstance(asked, int) else None,
            concurrency=request.load.concurrency,
        ),
    )


def _unread(facts: ModelFacts) -> ModelPart:
    """What can be said of a model whose configuration kvplan does not understand."""
    named = facts.config.get("architectures")
    architecture = named[0] if isinstance(named, list) and named else None
    return ModelPart(
        id=facts.id,
        revision=facts.revision,
        architecture=str(architecture or facts.config.get("model_type") or "not stated")[:120],
        source=facts.source,
        parameters_total=None,
        parameters_active=None,
    )


def _engine(text: str) -> _Pinned:
    name, pin, version = _word("engine", text).partition("==")
    if pin and name in ENGINES:
        parse_version(version)
    if name in ENGINES or name in ENGINES_TO_COME:
        return _Pinned(name, version or None)
    raise UnknownNameError(
        f"There is no engine {shown(name)}.",
        hint=nearest(name, (*ENGINES, *ENGINES_TO_COME)) or f"Modelled: {', '.join(ENGINES)}.",
    )


def _load(context: int | str | None, concurrency: int | None) -> Load:
    if isinstance(context, str) and context != "auto":
        raise UsageError(
            f"context is a number of tokens or 'auto', not {shown(context)}.",
            hint="Give 32768, 'auto' for the longest that fits, or None for the model's maximum.",
        )
    if context is not None and context != "auto":
        _whole("context", context, MAX_TOKENS)
    if concurrency is not None:
        _whole("concurrency", concurrency, MAX_REQUESTS)
    return Load(context=context, concurrency=concurrency)


def _parallelism(**sizes: int) -> Parallelism:
    for name, value in sizes.items():
        _whole(name, value, MAX_RANKS)
    parallel = Parallelism(**sizes)
    _whole("tp × pp × dp", parallel.gpus, MAX_RANKS)
    return parallel


def _budget(kv_budget: int | Sequence[int] | None) -> tuple[int, ...] | None:
    if kv_budget is None:
        return None
    text = isinstance(kv_budget, str | bytes)
    budget = tuple(kv_budget) if isinstance(kv_budget, Sequence) and not text else (kv_budget,)
    if not budget:
        raise UsageError("The list of KV budgets is empty.", hint="Give one figure a rank.")
    return tuple(_whole("kv_budget", part, MAX_BYTES) for part in budget)


def _options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise UsageError(
            f"engine_options is a mapping of names to values, not {shown(options)}.",
            hint='Give {"max_num_seqs": 64}.',
        )
    return {_word("An option's name", name): value for name, value in options.items()}


def _word(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_WORD:
        raise UsageError(f"{name} is a name, not {shown(value)}.", hint="Give a short text.")
    return value


def _whole(name: str, value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise UsageError(
            f"{name} is a whole number from 1 to {most:,}, not {shown(value)}.",
            hint=f"Give a {name} in that range.",
        )
    return value
