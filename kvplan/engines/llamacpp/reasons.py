"""Why llama.cpp would not start, what ``--fit`` would do, and what a reader has to know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvplan.engines import occupied
from kvplan.engines.llamacpp import families, history
from kvplan.engines.llamacpp.allocation import Allocation, Load
from kvplan.engines.llamacpp.context import STEP
from kvplan.engines.llamacpp.devices import named_gpus
from kvplan.engines.llamacpp.fit import Choice, shrunk_context
from kvplan.engines.llamacpp.wording import OWN
from kvplan.models.caches import ChunkedCache, WindowCache
from kvplan.models.ggml_types import GGML_TYPES
from kvplan.plan import Capacity, Reason, Verdict
from kvplan.units import format_bytes, format_count

if TYPE_CHECKING:
    from kvplan.engines.llamacpp.deployment import LlamaCppDeployment


@dataclass(frozen=True, slots=True)
class Asked:
    """The load that was asked for."""

    context: int
    concurrency: int | None


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
        found += _too_little(deployment, start)
    elif verdict == "does_not_fit":
        found += _too_many(deployment, start, asked, capacity)
    if verdict == "does_not_fit":
        found += _in_use(deployment, asked)
    found += _uncertain(start)
    found += _context(deployment, start, asked)
    found += _gpus(deployment)
    found += _layers(deployment, start)
    found += _margin(deployment, start)
    found += deployment.wording.notes
    found += _model(deployment)
    found += _coverage(deployment)
    return tuple(found)


def _too_little(deployment: LlamaCppDeployment, start: Allocation) -> Iterator[Reason]:
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


def _in_use(deployment: LlamaCppDeployment, asked: Asked) -> Iterator[Reason]:
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


def _place(load: Load) -> str:
    return "The host" if load.device.backend == "cpu" else f"{load.device.name} ({load.device.id})"


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
            f"Left to itself (--fit) llama.cpp would start with {_choice(deployment, choice)}: "
            f"{format_bytes(chosen.loads[-1].weight_bytes)} of weights and "
            f"{format_bytes(chosen.loads[-1].cache_bytes)} of cache on the host, and far slower."
        ),
        hint="-o n_gpu_layers=auto plans that.",
    )
    if deployment.settings.n_ctx is None:
        yield _shrunk(deployment, context.sequences)


def _choice(deployment: LlamaCppDeployment, choice: Choice) -> str:
    layers = deployment.body.file_layers + 1
    kept = f"{choice.n_gpu_layers} of {layers} layers on the GPUs"
    if choice.experts_on_host:
        kept += f", the experts of {len(choice.experts_on_host)} layers on the host"
    return kept


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


def _too_many(
    deployment: LlamaCppDeployment, start: Allocation, asked: Asked, capacity: Capacity
) -> Iterator[Reason]:
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
                f"Raise {deployment.wording.sequences} (and {deployment.wording.context}, where it "
                "counts the cells of all)."
            ),
        )
        return
    yield Reason(
        code="too_many_sequences",
        message=f"One llama.cpp server holds at most {format_count(start.context.sequences)} "
        f"sequences; {concurrency} were asked for.",
        hint="Start several servers: --dp.",
    )


def _counted(count: int, thing: str) -> str:
    return f"{format_count(count)} {thing}{'' if count == 1 else 's'}"


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
                f"Planned with {_choice(deployment, choice)}. The host holds "
                f"{format_bytes(host.weight_bytes + host.cache_bytes)}, and every token waits for "
                "it. Compute buffers are larger then, and their range is wide."
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
