"""Why a generation would run out of memory, and what a reader has to know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvplan.engines import occupied, remarks
from kvplan.engines.transformers import history
from kvplan.engines.transformers.quantized import refusal
from kvplan.plan import Capacity, Reason, Verdict
from kvplan.units import format_bytes, format_count

if TYPE_CHECKING:
    from kvplan.engines.transformers.deployment import TransformersDeployment


def refused(deployment: TransformersDeployment, batch: int, context: int) -> tuple[Reason, ...]:
    """Why a packer rejects a batch of such prompts, if it does."""
    scheme = deployment.frame.scheme
    if scheme is None:
        return ()
    steps = deployment.frame.options.decode_steps
    for part in deployment.frame.kept:
        if part.rows is not None:
            why = refusal(part.rows, scheme, batch, context, steps)
            if why:
                hint = "Choose another q_group_size, axis, batch or length."
                return (Reason(code="engine_refuses", message=why, hint=hint),)
    return ()


def collect(
    deployment: TransformersDeployment,
    context: int,
    concurrency: int | None,
    *,
    verdict: Verdict,
    capacity: Capacity,
) -> tuple[Reason, ...]:
    """Causes of a refusal first, then what limits trust in the numbers."""
    found: list[Reason] = []
    if verdict == "does_not_fit":
        found += _too_little(deployment, context, concurrency, capacity)
    if verdict == "fits":
        found += _uncertain(deployment, context, concurrency)
    found += remarks.above_maximum(deployment.frame.setup.model, context)
    found += _views(deployment, context, concurrency)
    found += _parallel(deployment)
    found += _coverage(deployment)
    found += (Reason(code="model_note", message=n) for n in deployment.frame.setup.model.notes)
    return tuple(found)


def _too_little(
    deployment: TransformersDeployment, context: int, concurrency: int | None, capacity: Capacity
) -> Iterator[Reason]:
    stage = deployment.fullest(context)
    batch = deployment.frame.options.batch_size or 1
    room = deployment.room(stage)
    if room <= 0:
        yield _no_room(deployment, stage)
    elif not deployment.holds_length(context):
        yield _cache_too_short(deployment, context)
    elif deployment.need(stage, batch, context) > room:
        yield _too_long(deployment, stage, context, capacity)
    elif concurrency is not None:
        yield from _too_many(deployment, context, concurrency, capacity)
    if deployment.given is None:
        yield from occupied.blame(
            deployment.used_by_others, deployment.idle, context=context, concurrency=concurrency
        )


def _no_room(deployment: TransformersDeployment, stage: int) -> Reason:
    weights = deployment.stages[stage].weight_bytes
    return Reason(
        code="no_room_for_cache",
        message=(
            f"Weights ({format_bytes(weights)}) and CUDA leave no room for a KV cache: "
            f"{format_bytes(-deployment.room(stage))} are missing on each GPU."
        ),
        hint="More GPUs (--pp spreads the layers), a smaller weight format, or a larger GPU.",
    )


def _cache_too_short(deployment: TransformersDeployment, context: int) -> Reason:
    needed = context + deployment.frame.options.decode_steps
    length = deployment.frame.static_len(context)
    return Reason(
        code="context_too_long",
        message=(
            f"max_cache_len {format_count(length or 0)} holds no request of "
            f"{format_count(needed)} tokens."
        ),
        hint=f"-o max_cache_len={needed}",
    )


def _too_long(
    deployment: TransformersDeployment, stage: int, context: int, capacity: Capacity
) -> Reason:
    batch = deployment.frame.options.batch_size or 1
    what = "One request" if batch == 1 else f"A batch of {format_count(batch)} requests"
    needed = deployment.need(stage, batch, context)
    beside = "cache" if deployment.given is not None else "cache and activations"
    return Reason(
        code="context_too_long",
        message=(
            f"{what} of {format_count(context)} tokens needs {format_bytes(needed)} of {beside} "
            f"on each GPU and {format_bytes(deployment.room(stage))} are there. The longest that "
            f"fits is {format_count(capacity.max_context)} tokens."
        ),
        hint="Shorter prompts, more GPUs (--pp), or a larger GPU.",
    )


def _too_many(
    deployment: TransformersDeployment, context: int, concurrency: int, capacity: Capacity
) -> Iterator[Reason]:
    dp = deployment.frame.setup.parallelism.dp
    limit = deployment.frame.options.batch_size
    stages = range(len(deployment.stages))
    by_memory = min(deployment.most(stage, context) for stage in stages) * dp
    if limit is not None and limit * dp < concurrency:
        yield Reason(
            code="batch_size",
            message=(
                f"batch_size runs {format_count(capacity.requests)} requests at once; memory "
                f"would hold {format_count(by_memory)}."
            ),
            hint=f"-o batch_size={-(-concurrency // dp)}",
        )
    if by_memory < concurrency:
        yield Reason(
            code="kv_cache_full",
            message=(
                f"Memory holds a batch of {format_count(by_memory)} requests of "
                f"{format_count(context)} tokens, {format_count(concurrency)} were asked for."
            ),
            hint="generate() does not queue: a larger batch runs out of memory.",
        )


def _uncertain(
    deployment: TransformersDeployment, context: int, concurrency: int | None
) -> Iterator[Reason]:
    if deployment.given is None:
        yield from remarks.within_uncertainty(
            deployment.requests(context, "scarce"),
            max(concurrency or 1, deployment.frame.options.batch_size or 1),
            unless="activations are at the high end of their range",
            measure="a generation",
        )


def _views(
    deployment: TransformersDeployment, context: int, concurrency: int | None
) -> Iterator[Reason]:
    stage, batch = deployment.fullest(context), deployment.batch(context, concurrency)
    size = deployment.size(stage, batch, context)
    behind = deployment.peak_storage(stage, batch, context) - size.tensor
    if behind > 0:
        yield Reason(
            code="views_keep_storage",
            message=(
                f"Windows are views of the whole prompt until the next token: "
                f"{format_bytes(behind)} more than the tensors hold."
            ),
        )


def _parallel(deployment: TransformersDeployment) -> Iterator[Reason]:
    spread = deployment.frame.setup.parallelism
    if spread.tp > 1:
        yield Reason(
            code="tp_plan_assumed",
            message=(
                "The class is taken to have a tensor parallel plan like Llama's: projections are "
                "split by columns, the embedding is whole on every rank."
            ),
            hint="tp_plan='auto' fails where a class has no plan; device_map (--pp) always works.",
        )
    if spread.pp > 1:
        yield Reason(
            code="device_map",
            message=(
                "The layers are spread over the GPUs as evenly as they come (device_map); the "
                "GPUs work one after the other."
            ),
        )


def _coverage(deployment: TransformersDeployment) -> Iterator[Reason]:
    frame = deployment.frame
    if history.is_newer_than_modelled(frame.version):
        yield remarks.newer_than_modelled("transformers", frame.version, history.NEWEST)
    if not frame.rules.auto_dtype and frame.setup.dtype == "auto" and frame.dtype != "float32":
        yield Reason(
            code="dtype_not_default",
            message=(
                f"transformers {frame.version} loads in float32 unless it is told "
                f"dtype='auto', which is planned for."
            ),
        )
    if frame.setup.model.quantization is not None:
        yield Reason(
            code="weights_kept_packed",
            message=(
                "Quantized weights are counted as they are stored; where a kernel is missing "
                "transformers unpacks them."
            ),
        )
    if deployment.given is None:
        yield Reason(
            code="runtime_not_measured",
            message=(
                "The prompt's activations are an estimate from the code of one class; no "
                "generation was measured."
            ),
            hint="Trust the cache's bytes; measure the rest on the target machine.",
        )
