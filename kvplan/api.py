"""The only wiring: resolve references, plan, return a `Plan`. The CLI and libraries call this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvplan.architectures import quantize, read_model
from kvplan.engines.base import Engine, Prepared, Setup, parse_version
from kvplan.engines.vllm.engine import Vllm
from kvplan.errors import NotModelledError, UnknownNameError, UsageError, nearest
from kvplan.hardware import GpuSpec
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec
from kvplan.plan import EnginePart, ModelPart, Parallelism, Plan, Workload
from kvplan.planning.advise import advise
from kvplan.planning.size import (
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
MAX_RANKS = 4096
MAX_REQUESTS = 2**31


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
            refuses and what kvplan does not model is not raised: the plan's verdict says so.

    Example:
        >>> plan = size("meta-llama/Llama-3.1-8B-Instruct", "H100", context=8192, offline=True)
        >>> plan.verdict
        'fits'
    """
    request = _Request(
        engine=_engine(engine),
        parallelism=_parallelism(tp=tp, pp=pp, dp=dp, dcp=dcp),
        load=_load(context, concurrency),
        weights=weights,
        kv_dtype=kv_dtype,
        dtype=dtype,
        kv_budget=_budget(kv_budget),
        options=dict(engine_options or {}),
        gpu=gpu if isinstance(gpu, GpuSpec) else find_gpu(gpu),
    )
    known = model if isinstance(model, ModelSpec) else read_facts(model, offline=offline)
    try:
        setup = _setup(request, _spec(known, weights))
    except NotModelledError as refusal:
        return _not_modelled(request, known, refusal)
    plan = size_setup(request.engine.model, setup, request.load)
    plan = with_node_note(plan, gpus_per_node)
    if not advice:
        return plan
    found = advise(request.engine.model, setup, request.load, plan)
    return plan.model_copy(update={"advice": found})


@dataclass(frozen=True, slots=True)
class _Pinned:
    model: Engine
    version: str | None


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
    return read_model(read_facts(model, offline=offline))


def prepare(model: ModelSpec, gpu: GpuSpec, *, engine: str = "vllm", **changes: Any) -> Prepared:
    """A configuration that can then be asked many times, for searches.

    ``changes`` are the other fields of `kvplan.engines.base.Setup`.
    """
    pinned = _engine(engine)
    setup = Setup(model=model, gpu=gpu, version=pinned.version, **changes)
    return pinned.model.prepare(setup)


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
            name=request.engine.model.name,
            version=request.engine.version or request.engine.model.newest,
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
    name, _, version = text.partition("==")
    if name in ENGINES:
        if version:
            parse_version(version)
        return _Pinned(ENGINES[name], version or None)
    if name in ENGINES_TO_COME:
        raise NotModelledError(
            f"kvplan does not model {name} yet.", hint=f"Modelled: {', '.join(ENGINES)}."
        )
    raise UnknownNameError(
        f"There is no engine {name[:60]!r}.",
        hint=nearest(name, (*ENGINES, *ENGINES_TO_COME)) or f"Modelled: {', '.join(ENGINES)}.",
    )


def _load(context: int | str | None, concurrency: int | None) -> Load:
    if isinstance(context, str) and context != "auto":
        raise UsageError(f"context is a number of tokens or 'auto', not {context[:40]!r}.")
    if isinstance(context, int):
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
    budget = (kv_budget,) if isinstance(kv_budget, int) else tuple(kv_budget)
    if not budget:
        raise UsageError("The list of KV budgets is empty.")
    for part in budget:
        _whole("kv_budget", part, MAX_BYTES)
    return budget


def _whole(name: str, value: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise UsageError(
            f"{name} is a whole number from 1 to {most:,}, not {value!r:.40}.",
            hint=f"Give a {name} in that range.",
        )
