"""A prepared configuration of transformers and a load → the engine's part of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kvplan.engines.base import Answer
from kvplan.engines.transformers import ledgers, reasons
from kvplan.engines.transformers import options as names
from kvplan.engines.transformers.memory import activation
from kvplan.engines.transformers.sizes import layer_size
from kvplan.plan import CacheGroup, Capacity, EnginePart, KvPart, Verdict

if TYPE_CHECKING:
    from kvplan.engines.transformers.deployment import End, TransformersDeployment


def build(deployment: TransformersDeployment, context: int, concurrency: int | None) -> Answer:
    """The full answer for ``concurrency`` requests of ``context`` tokens."""
    stage = deployment.fullest(context)
    batch = deployment.batch(context, concurrency)
    capacity = _capacity(deployment, stage, context)
    refused = reasons.refused(deployment, batch, context)
    verdict: Verdict = "refused" if refused else _verdict(deployment, context, concurrency)
    device = deployment.frame.device
    return Answer(
        verdict=verdict,
        reasons=(
            *refused,
            *reasons.collect(deployment, context, concurrency, verdict=verdict, capacity=capacity),
        ),
        engine=_engine(deployment, batch, context),
        parallelism=deployment.frame.setup.parallelism,
        context=context,
        ledger=ledgers.ledger(deployment, stage, batch, context),
        total_bytes=device.total,
        total_source=device.source,
        kv=_kv(deployment, stage, batch, context),
        capacity=capacity,
    )


def _verdict(deployment: TransformersDeployment, context: int, concurrency: int | None) -> Verdict:
    figures = deployment.figures(context)
    holds = concurrency is None or figures.requests >= concurrency
    return "fits" if figures.starts and holds else "does_not_fit"


def _kv(deployment: TransformersDeployment, stage: int, batch: int, context: int) -> KvPart:
    size = deployment.size(stage, batch, context)
    scheme = deployment.frame.scheme
    given = deployment.given is not None
    return KvPart(
        dtype=_packing(deployment) if scheme is not None else deployment.frame.dtype,
        bytes_per_token=deployment.growth(stage, context),
        bytes_per_request=deployment.size(stage, 1, context).tensor,
        budget_bytes=_left(deployment, stage, batch, context, "likely"),
        budget_low=None if given else _left(deployment, stage, batch, context, "scarce"),
        budget_high=None if given else _left(deployment, stage, batch, context, "ample"),
        allocated_bytes=size.tensor,
        storage_bytes=size.storage,
    )


def _packing(deployment: TransformersDeployment) -> str:
    options = deployment.frame.options
    return "fp8" if options.backend == "fp8" else f"int{options.nbits} ({options.backend})"


def _left(
    deployment: TransformersDeployment, stage: int, batch: int, context: int, end: End
) -> int:
    """What the device has for the cache of a batch."""
    room = deployment.room(stage, end)
    if deployment.given is not None:
        return room
    draft = activation(deployment.frame, deployment.stages[stage], batch, context)
    return room - draft.value({"likely": None, "scarce": draft.high, "ample": draft.low}[end])


def _capacity(deployment: TransformersDeployment, stage: int, context: int) -> Capacity:
    figures = deployment.figures(context)
    request = deployment.size(stage, 1, context).tensor
    given = deployment.given is not None
    low, high = (
        None if given else int(deployment.concurrency(context, end) * context)
        for end in ("scarce", "ample")
    )
    return Capacity(
        blocks=figures.blocks,
        block_size=1,
        # There are no blocks: a token of such a request, averaged.
        bytes_per_block=-(-request // context),
        groups=_groups(deployment, stage, context),
        tokens=figures.tokens,
        tokens_low=low,
        tokens_high=high,
        max_concurrency=figures.max_concurrency,
        max_context=figures.max_context,
        requests=figures.requests,
    )


def _groups(deployment: TransformersDeployment, stage: int, context: int) -> tuple[CacheGroup, ...]:
    """Layers that keep tensors of one shape; a request holds a block, its whole tensors."""
    frame = deployment.frame
    layout, moment = frame.layout(context), frame.moment(1, context)
    return tuple(
        CacheGroup(
            kind=part.kind,
            layers=len(part.layers),
            layer_indices=part.layers,
            page_bytes=layer_size(part, layout, moment).tensor,
            block_size=moment.tokens,
            blocks_per_request=1,
            padding_bytes=0,
        )
        for part in deployment.kept(stage)
    )


def _engine(deployment: TransformersDeployment, batch: int, context: int) -> EnginePart:
    frame = deployment.frame
    chosen = frame.options
    options: dict[str, Any] = {
        "cache": frame.cache,
        "batch_size": batch,
        "decode_steps": chosen.decode_steps,
        "dtype": frame.dtype,
    }
    assumed = [name for name in ("cache", "decode_steps") if name not in chosen.given]
    if chosen.batch_size is None:
        assumed.append("batch_size")
    if frame.cache == names.STATIC:
        options["max_cache_len"] = frame.static_len(context)
        assumed += [] if chosen.max_cache_len else ["max_cache_len"]
    if chosen.encoder_len is not None:
        options["encoder_len"] = chosen.encoder_len
    if frame.cache == names.QUANTIZED:
        packing = _quantized_options(deployment)
        options |= packing
        assumed += [name for name in packing if name not in chosen.given]
    return EnginePart(
        name="transformers", version=frame.version, options=options, assumed=tuple(assumed)
    )


def _quantized_options(deployment: TransformersDeployment) -> dict[str, Any]:
    chosen = deployment.frame.options
    if chosen.backend == "fp8":
        return {"quant_backend": chosen.backend}
    return {
        "quant_backend": chosen.backend,
        "nbits": chosen.nbits,
        "q_group_size": chosen.q_group_size,
        "residual_length": chosen.residual_length,
        "axis_key": chosen.axis_key,
        "axis_value": chosen.axis_value,
    }
