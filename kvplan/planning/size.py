"""One configuration → a Plan: the engine's answer with the model's and the devices' facts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kvplan.engines.base import Answer, Engine, Prepared, Setup
from kvplan.errors import RefusedError, UsageError
from kvplan.hardware import GpuSpec, device_memory
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec
from kvplan.plan import EnginePart, GpuPart, ModelPart, Parallelism, Plan, Reason, Workload

# Devices that one plan may be for.
MAX_RANKS = 4096


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of the deployment.

    Attributes:
        context: Tokens a request; None is the model's maximum; ``auto`` the longest that fits.
        concurrency: Requests at once over the deployment, or None: report, don't judge.
    """

    context: int | str | None = None
    concurrency: int | None = None


def resolve_context(
    model: ModelSpec, context: int | str | None, *, unstated: int | None = None
) -> int:
    """The length that is planned for (``auto``: that the search starts from).

    Args:
        model: The model, whose maximum is taken where no length is given.
        context: What was asked for.
        unstated: What the engine takes for a model that states no maximum, or None.

    Raises:
        UsageError: neither the caller nor the model states a length.
    """
    if isinstance(context, int):
        return context
    longest = model.max_context or unstated
    if longest is None:
        raise UsageError(
            f"{model.id} does not state its longest context.", hint="Give one: --context 32k."
        )
    return longest


def size(engine: Engine, setup: Setup, load: Load) -> Plan:
    """Plans one configuration. A refusal by the engine is a plan too, with its reason."""
    if setup.context is None and not setup.model.max_context:
        setup = replace(setup, context=engine.unstated_context)
    try:
        prepared = engine.prepare(setup)
    except RefusedError as refusal:
        return _refused(engine, setup, load, refusal)
    return plan_from(prepared, setup, load)


def plan_from(prepared: Prepared, setup: Setup, load: Load) -> Plan:
    """A plan from a prepared configuration."""
    context = resolve_context(setup.model, load.context, unstated=setup.context)
    if load.context == "auto":
        context = max(1, prepared.longest_context())
    answer = prepared.answer(context, load.concurrency)
    return Plan(
        verdict=answer.verdict,
        reasons=(*answer.reasons, *_of_sources(setup.model)),
        model=model_part(setup.model),
        gpu=gpu_part(setup, answer),
        engine=answer.engine,
        parallelism=answer.parallelism,
        workload=Workload(context=answer.context, concurrency=load.concurrency),
        ledger=answer.ledger,
        kv=answer.kv,
        capacity=answer.capacity,
        devices=answer.devices,
    )


def model_part(model: ModelSpec) -> ModelPart:
    """The plan's words on the model."""
    return ModelPart(
        id=model.id,
        revision=model.revision,
        architecture=model.architecture,
        source=model.source,
        # A file without tensors does not tell them.
        parameters_total=model.parameters_total or None,
        parameters_active=model.parameters_active or None,
    )


def unread_part(facts: ModelFacts) -> ModelPart:
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


def gpu_part(setup: Setup, answer: Answer) -> GpuPart:
    """The plan's words on the devices."""
    return GpuPart(
        id=" + ".join(dict.fromkeys(gpu.id for gpu in (setup.gpu, *setup.others))),
        count=answer.parallelism.gpus,
        total_bytes=answer.total_bytes,
        source=answer.total_source,
    )


def _of_sources(model: ModelSpec) -> tuple[Reason, ...]:
    if not model.defaults:
        return ()
    filled = "; ".join(f"{d.field} = {d.value}" for d in model.defaults)
    return (
        Reason(
            code="class_defaults",
            message=f"The configuration leaves these to the architecture's class: {filled}.",
            hint="kvplan models explain shows where each default is stated.",
        ),
    )


def _refused(engine: Engine, setup: Setup, load: Load, refusal: RefusedError) -> Plan:
    return refused_plan(
        refusal,
        model=model_part(setup.model),
        gpu=setup.gpu,
        engine=EnginePart(
            name=engine.name,
            version=setup.version or engine.newest,
            options=dict(setup.options),
            assumed=(),
        ),
        parallelism=setup.parallelism,
        workload=Workload(
            context=load.context if isinstance(load.context, int) else setup.model.max_context,
            concurrency=load.concurrency,
        ),
    )


def refused_plan(
    refusal: RefusedError,
    *,
    model: ModelPart,
    gpu: GpuSpec,
    engine: EnginePart,
    parallelism: Parallelism,
    workload: Workload,
) -> Plan:
    """A plan that says no: no ledger, no capacity, the reason."""
    memory = device_memory(gpu)
    return Plan(
        verdict="refused",
        reasons=(Reason(code=refusal.slug, message=refusal.message, hint=refusal.hint),),
        model=model,
        gpu=GpuPart(
            id=gpu.id, count=parallelism.gpus, total_bytes=memory.total, source=memory.source
        ),
        engine=engine,
        parallelism=parallelism,
        workload=workload,
        ledger=(),
        kv=None,
        capacity=None,
    )


def with_node_note(plan: Plan, gpus_per_node: int | None) -> Plan:
    """Points out a tensor parallel group that is wider than a node."""
    if gpus_per_node is None or plan.parallelism.tp <= gpus_per_node:
        return plan
    reason = Reason(
        code="tp_across_nodes",
        message=(
            f"A tensor parallel group of {plan.parallelism.tp} spans nodes of {gpus_per_node} "
            "GPUs: every layer then waits for the network."
        ),
        hint=f"Use --tp {gpus_per_node} with --pp, or more replicas with --dp.",
    )
    return plan.model_copy(update={"reasons": (*plan.reasons, reason)})
