"""All that a plan under llama.cpp has to say: why it would not start, and what limits trust."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvplan.engines.llamacpp import families, flash, history
from kvplan.engines.llamacpp.allocation import Allocation
from kvplan.engines.llamacpp.context import STEP
from kvplan.engines.llamacpp.devices import named_gpus
from kvplan.engines.llamacpp.fit import Choice
from kvplan.engines.llamacpp.shortages import (
    Asked,
    choice_text,
    in_use,
    named,
    too_little,
    too_many,
)
from kvplan.engines.llamacpp.wording import OWN
from kvplan.models.caches import ChunkedCache, WindowCache
from kvplan.plan import Capacity, Reason, Verdict
from kvplan.units import format_bytes, format_count

if TYPE_CHECKING:
    from kvplan.engines.llamacpp.deployment import LlamaCppDeployment


def collect(
    deployment: LlamaCppDeployment,
    start: Allocation,
    asked: Asked,
    *,
    verdict: Verdict,
    capacity: Capacity,
) -> tuple[Reason, ...]:
    """Causes of a refusal first, then what limits trust in the numbers."""
    found: list[Reason] = []
    if not start.fits:
        found += too_little(deployment, start)
    elif verdict == "does_not_fit":
        found += too_many(deployment, start, asked, capacity)
    if verdict == "does_not_fit":
        found += in_use(deployment, asked)
    found += _uncertain(start)
    found += _context(deployment, start, asked)
    found += _gpus(deployment)
    found += _layers(deployment, start)
    found += _hosts(start)
    found += _elsewhere(start)
    found += _margin(deployment, start)
    if deployment.wording is OWN:
        found += flash.remarks(deployment.settings, deployment.machine)
    found += deployment.wording.notes
    found += _model(deployment)
    found += _coverage(deployment)
    return tuple(found)


def _uncertain(start: Allocation) -> Iterator[Reason]:
    if start.fits and not start.surely_fits:
        yield Reason(
            code="within_uncertainty",
            message=(
                "It fits by the likely figures, but not if compute buffers and the driver's memory "
                "are at the high end of their ranges."
            ),
            hint="llama-server prints its buffers when it starts; compare them.",
        )


def _context(deployment: LlamaCppDeployment, start: Allocation, asked: Asked) -> Iterator[Reason]:
    model, context, settings = deployment.setup.model, start.context, deployment.settings
    longest = model.max_context
    unshared = context.streams == context.sequences
    if longest is not None and unshared and context.n_ctx_seq > longest + STEP - 1:
        yield Reason(
            code="context_above_model_maximum",
            message=(
                f"A slot of {format_count(context.n_ctx_seq)} cells is longer than the model's "
                f"maximum of {format_count(longest)} tokens. The memory is computed all the same."
            ),
        )
    overridden = settings.n_ctx is not None and asked.context > context.n_ctx_seq
    if overridden and asked.context != longest:
        yield Reason(
            code="n_ctx_overrides",
            message=(
                f"n_ctx gives each slot {format_count(context.n_ctx_seq)} cells: that is planned "
                f"for, not {format_count(asked.context)} tokens."
            ),
        )
    if settings.n_ctx and context.n_ctx != settings.n_ctx:
        yield Reason(
            code="n_ctx_rounded",
            message=(
                f"llama.cpp makes {format_count(context.n_ctx)} cells of n_ctx "
                f"{format_count(settings.n_ctx)}: each of {context.streams} is rounded up to 256."
            ),
        )


def _gpus(deployment: LlamaCppDeployment) -> Iterator[Reason]:
    """Where shares stand for GPUs that nobody named."""
    setup, planned = deployment.setup, len(deployment.machine.gpus)
    if planned > max(len(named_gpus(setup)), setup.parallelism.pp):
        yield Reason(
            code="gpus_by_tensor_split",
            message=(
                f"tensor_split lists {planned} shares, so {planned} × "
                f"{deployment.machine.gpus[0].id} are planned for."
            ),
            hint=f"Say so with --pp {planned}, or leave out tensor_split to plan for one GPU.",
        )


def _layers(deployment: LlamaCppDeployment, start: Allocation) -> Iterator[Reason]:
    if not deployment.machine.gpus:
        return
    layers = deployment.body.file_layers + 1
    if start.placement.on_gpus < layers or start.experts_on_host:
        choice = Choice(start.placement.on_gpus, (), start.experts_on_host)
        host = start.loads[-1]
        yield Reason(
            code="layers_on_host",
            message=(
                f"Planned with {choice_text(deployment, choice)}. The host holds "
                f"{format_bytes(host.weight_bytes + host.cache_bytes)}, and every token waits for "
                "it. Compute buffers are larger then, and their range is wide."
            ),
        )


def _hosts(start: Allocation) -> Iterator[Reason]:
    if start.on_unknown_host:
        host = start.loads[-1]
        yield Reason(
            code="host_memory_not_stated",
            message=(
                "The host's memory is not stated: that it has room for "
                f"{format_bytes(host.weight_bytes + host.cache_bytes)} is taken for granted, for "
                "more requests it is not."
            ),
            hint="Add it to the devices: + cpu:64GiB.",
        )


def _elsewhere(start: Allocation) -> Iterator[Reason]:
    """The ledger is that of one device, and none of the cache may lie on it."""
    holders = [load for load in start.loads if load.cache_bytes]
    if not holders or start.fullest.cache_bytes:
        return
    where = ", ".join(f"{format_bytes(load.cache_bytes)} on {named(load)}" for load in holders)
    yield Reason(
        code="cache_elsewhere",
        message=(
            f"No cache lies on {named(start.fullest)}, the fullest device, whose ledger this is: "
            f"{where}."
        ),
    )


def _margin(deployment: LlamaCppDeployment, start: Allocation) -> Iterator[Reason]:
    target = deployment.settings.fit_target_bytes
    tight = [load for load in start.loads[:-1] if load.left is not None and 0 <= load.left < target]
    given = deployment.setup.kv_budget is not None
    if not tight or given or not deployment.rules.fit or not start.fits:
        return
    yield Reason(
        code="fit_margin",
        message=(
            f"Only {format_bytes(tight[0].left or 0)} stay free on {tight[0].device.name}; --fit "
            f"aims at {format_bytes(target)} and would move layers to the host."
        ),
        hint="Start with -ngl all and -c as planned: what is given is not changed.",
    )


def _model(deployment: LlamaCppDeployment) -> Iterator[Reason]:
    model = deployment.setup.model
    windows = any(isinstance(cache, WindowCache | ChunkedCache) for cache in model.caches)
    if windows and not families.keeps_windows(model):
        yield Reason(
            code="windows_kept_whole",
            message=(
                f"llama.cpp keeps no windows for {model.model_type}: every layer caches the whole "
                "context."
            ),
        )
    if model.quantization is None or not model.quantization.startswith("gguf"):
        yield Reason(
            code="not_a_gguf_file",
            message=(
                "Weights are counted as the checkpoint stores them; the conversion to GGUF keeps "
                "norms in float32."
            ),
            hint="Name the GGUF file, or plan for one: --weights gguf:Q4_K_M.",
        )
    if any(weight.place == "tower" for weight in model.weights):
        yield Reason(
            code="projector_not_counted",
            message="The vision or audio tower is a file of its own (--mmproj) and not counted.",
        )
    yield from (Reason(code="model_note", message=note) for note in model.notes)


def _coverage(deployment: LlamaCppDeployment) -> Iterator[Reason]:
    if deployment.wording is OWN and history.is_newer_than_modelled(deployment.version):
        yield Reason(
            code="engine_newer_than_modelled",
            message=(
                f"llama.cpp {deployment.version} is newer than the one that was read "
                f"({history.NEWEST}); its rules are taken from that."
            ),
        )
    if deployment.settings.unsized:
        yield Reason(
            code="option_not_sized",
            message=(
                f"{', '.join(deployment.settings.unsized)} bound memory of the host, which is not "
                "part of this plan."
            ),
        )
    for device in deployment.machine.gpus:
        if device.memory is not None and device.memory.confidence == "assumed":
            yield Reason(
                code="device_memory_assumed",
                message=f"What llama.cpp sees of {device.id} is assumed: {device.memory.source}.",
            )
            break
