"""Why llama.cpp would not hold what was asked, and what ``--fit`` would do instead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvplan.engines import occupied
from kvplan.engines.llamacpp.allocation import Allocation, Load
from kvplan.engines.llamacpp.fit import Choice, shrunk_context
from kvplan.engines.llamacpp.wording import OWN
from kvplan.models.ggml_types import GGML_TYPES
from kvplan.plan import Capacity, Reason
from kvplan.units import format_bytes, format_count

if TYPE_CHECKING:
    from kvplan.engines.llamacpp.deployment import LlamaCppDeployment


@dataclass(frozen=True, slots=True)
class Asked:
    """The load that was asked for."""

    context: int
    concurrency: int | None


def too_little(deployment: LlamaCppDeployment, start: Allocation) -> Iterator[Reason]:
    """The device that runs out first, and what ``--fit`` would choose."""
    short = min(
        (load for load in start.loads if load.left is not None), key=lambda load: load.left or 0
    )
    missing = -(short.left or 0)
    parts = (
        f"{format_bytes(short.cache_bytes)} of KV cache"
        if short.budget is not None
        else f"weights ({format_bytes(short.weight_bytes)}), KV cache and states "
        f"({format_bytes(short.cache_bytes)}) and compute buffers "
        f"({format_bytes(short.compute_bytes)})"
    )
    yield Reason(
        code="device_full",
        message=(
            f"{_place(short)} has too little for {parts}: {format_bytes(missing)} are missing."
        ),
        hint=_smaller(deployment, short),
    )
    yield from _fit(deployment, start)


def too_many(
    deployment: LlamaCppDeployment, start: Allocation, asked: Asked, capacity: Capacity
) -> Iterator[Reason]:
    """A start that fits and has fewer slots than were asked for."""
    concurrency = format_count(asked.concurrency or 1)
    if deployment.settings.n_seq_max is not None or deployment.settings.n_ctx is not None:
        yield Reason(
            code="slots_full",
            message=(
                f"{_counted(start.context.sequences, 'slot')} with "
                f"{_counted(start.context.n_ctx, 'cell')} in all hold "
                f"{_counted(capacity.requests, 'request')}; {concurrency} were asked for."
            ),
            hint=(
                f"Raise {deployment.wording.sequences}, and {deployment.wording.context} with it: "
                "it counts the cells of all."
                if deployment.wording is OWN
                else f"Raise {deployment.wording.sequences}."
            ),
        )
        return
    yield Reason(
        code="too_many_sequences",
        message=f"One llama.cpp server holds at most {format_count(start.context.sequences)} "
        f"sequences; {concurrency} were asked for.",
        hint="Start several servers: --dp.",
    )


def in_use(deployment: LlamaCppDeployment, asked: Asked) -> Iterator[Reason]:
    """Where an idle machine would hold what was asked for."""
    if deployment.setup.kv_budget is not None:
        return
    busiest = deployment.machine.busiest
    yield from occupied.blame(
        busiest.in_use,
        deployment.idle,
        context=asked.context,
        concurrency=asked.concurrency,
        card=f"{busiest.name} ({busiest.id})",
    )


def named(load: Load) -> str:
    """A device within a sentence."""
    return "the host" if load.device.backend == "cpu" else f"{load.device.name} ({load.device.id})"


def choice_text(deployment: LlamaCppDeployment, choice: Choice) -> str:
    """How many layers are on the GPUs, and whose experts are not."""
    layers = deployment.body.file_layers + 1
    kept = f"{choice.n_gpu_layers} of {layers} layers on the GPUs"
    if choice.experts_on_host:
        kept += f", the experts of {len(choice.experts_on_host)} layers on the host"
    return kept


def _place(load: Load) -> str:
    return "The host" if load.device.backend == "cpu" else named(load)


def _smaller(deployment: LlamaCppDeployment, short: Load) -> str:
    ways = []
    types = (deployment.settings.cache_type_k, deployment.settings.cache_type_v)
    if all(GGML_TYPES[name].block == 1 for name in types) and short.cache_bytes:
        ways.append(deployment.wording.cache_type)
    if deployment.settings.n_ctx is None:
        ways.append("a shorter --context")
    else:
        ways.append(f"a smaller {deployment.wording.context}")
    ways.append("a smaller file (--weights gguf:Q4_K_M)")
    return f"Try {', '.join(ways)}, or more memory."


def _fit(deployment: LlamaCppDeployment, start: Allocation) -> Iterator[Reason]:
    """What llama-server does by itself where n_gpu_layers is left to it."""
    free_to_choose = deployment.settings.n_gpu_layers == "all" and deployment.machine.gpus
    if not (free_to_choose and deployment.rules.fit) or deployment.setup.kv_budget is not None:
        return
    context = start.context
    choice = deployment.fitted(context.n_ctx, context.sequences)
    chosen = deployment.allocation(context.n_ctx, context.sequences, choice)
    yield Reason(
        code="fit_choice",
        message=(
            f"Left to itself (--fit) llama.cpp would start with {choice_text(deployment, choice)}: "
            f"{format_bytes(chosen.loads[-1].weight_bytes)} of weights and "
            f"{format_bytes(chosen.loads[-1].cache_bytes)} of cache on the host, and far slower."
        ),
        hint="-o n_gpu_layers=auto plans that.",
    )
    if deployment.settings.n_ctx is None:
        yield _shrunk(deployment, context.sequences)


def _shrunk(deployment: LlamaCppDeployment, sequences: int) -> Reason:
    """Without -c it shortens the context before it moves layers."""
    everything = Choice(deployment.body.file_layers + 1, ())
    streams = 1 if deployment.settings.kv_unified else sequences
    gpus = deployment.machine.gpus

    def used(context: int) -> int:
        start = deployment.allocation(context, sequences, everything)
        return sum(
            gpu.weight_bytes + gpu.cache_bytes + gpu.compute_bytes for gpu in start.loads[:-1]
        )

    longest = (deployment.setup.model.max_context or deployment.limit) * streams
    target = sum(gpu.free for gpu in gpus) - len(gpus) * deployment.settings.fit_target_bytes
    shrunk = shrunk_context(used, most=longest, streams=streams, target=target)
    return Reason(
        code="fit_context",
        message=(
            f"Without -c it would first shorten the context to about {format_count(shrunk)} cells."
        ),
    )


def _counted(count: int, thing: str) -> str:
    return f"{format_count(count)} {thing}{'' if count == 1 else 's'}"
