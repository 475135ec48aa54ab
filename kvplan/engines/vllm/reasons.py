"""Why vLLM would not start, what a reader has to know, and which flag cures it."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor
from typing import TYPE_CHECKING

from kvplan.engines import occupied
from kvplan.engines.base import Version, parse_version
from kvplan.engines.vllm import backends, dropped, history
from kvplan.engines.vllm.classes import LISTED
from kvplan.engines.vllm.decoding import decoding_blocks, tokens_in_flight
from kvplan.ledger import LedgerLine
from kvplan.models.caches import CrossCache
from kvplan.plan import Capacity, Reason, Verdict
from kvplan.units import format_bytes, format_count

if TYPE_CHECKING:
    from kvplan.engines.vllm.deployment import VllmDeployment
    from kvplan.engines.vllm.memory import RankMemory

# How many times more requests have to fit while they decode for a plan to say so.
_NOTABLE = 1.1
# Releases that take the cache's type from the checkpoint under auto.
_SCHEMES_READ: Version = (0, 14)


def collect(
    deployment: VllmDeployment,
    context: int,
    concurrency: int | None,
    *,
    verdict: Verdict,
    capacity: Capacity,
    ledger: tuple[LedgerLine, ...],
) -> tuple[Reason, ...]:
    """Causes of a refusal first, then what limits trust in the numbers."""
    found: list[Reason] = []
    if verdict == "does_not_fit":
        found += _too_little(deployment, context, concurrency, capacity)
    found += _uncertain(deployment, context, concurrency, verdict)
    found += _context(deployment, context)
    found += _null_block(deployment, context, verdict, capacity)
    found += _in_flight(deployment, context, verdict, capacity)
    found += _class(deployment)
    found += _options(deployment)
    found += _coverage(deployment)
    found += _outside(deployment, ledger)
    found += (Reason(code="model_note", message=note) for note in deployment.setup.model.notes)
    return tuple(found)


def _too_little(
    deployment: VllmDeployment, context: int, concurrency: int | None, capacity: Capacity
) -> Iterator[Reason]:
    """What is short: the pool, one request, or all of them; then what lies beside the budget."""
    if deployment.stages is not None and deployment.available[deployment.fullest] <= 0:
        yield _no_room(deployment, deployment.stages[deployment.fullest])
    elif deployment.left < 0:
        yield _pool_too_large(deployment, capacity)
    elif capacity.max_context < context:
        yield _too_long(deployment, context, capacity)
    elif concurrency is not None and capacity.requests < concurrency:
        yield from _too_many(deployment, context, concurrency, capacity)
    if deployment.outside_left < 0:
        used = deployment.used_by_others
        yield _in_use(deployment, used) if used else _overdrawn(deployment)


def _no_room(deployment: VllmDeployment, rank: RankMemory) -> Reason:
    weights = sum(draft.value() for draft in rank.budget if draft.name.startswith("weights."))
    missing = -deployment.available[deployment.fullest]
    return Reason(
        code="no_room_for_cache",
        message=(
            f"Weights ({format_bytes(weights)}) and runtime memory leave no room for a KV "
            f"cache: {format_bytes(missing)} are missing on each GPU."
        ),
        hint=_smaller(deployment),
    )


def _pool_too_large(deployment: VllmDeployment, capacity: Capacity) -> Reason:
    pool = capacity.blocks * capacity.bytes_per_block
    return Reason(
        code="pool_too_large",
        message=(
            f"The KV cache was set to {format_bytes(pool)} a GPU: "
            f"{format_bytes(-deployment.left)} more than there is room for."
        ),
        hint="Lower kv_cache_memory_bytes or num_gpu_blocks_override, or leave them out.",
    )


def _too_long(deployment: VllmDeployment, context: int, capacity: Capacity) -> Reason:
    reserved = 1 if deployment.pool.rules.null_block_reserved else 0
    needed = (deployment.pool.request_blocks(context) + reserved) * capacity.bytes_per_block
    available = deployment.available[deployment.fullest]
    there = min(available, capacity.blocks * capacity.bytes_per_block)
    return Reason(
        code="context_too_long",
        message=(
            f"One request of {format_count(context)} tokens needs {format_bytes(needed)} of "
            f"KV cache on each GPU and {format_bytes(there)} are there: vLLM would not "
            f"start. The longest that fits is {format_count(capacity.max_context)} tokens."
        ),
        hint=f"--max-model-len {capacity.max_context}"
        if capacity.max_context
        else _smaller(deployment),
    )


def _in_use(deployment: VllmDeployment, used: int) -> Reason:
    """VLLM compares what is free with its budget before it loads anything."""
    total = deployment.device.total
    asked = deployment.stages[deployment.fullest].requested if deployment.stages else 0
    share = (asked + deployment.outside_left) / total
    lower = f"Stop them, or -o gpu_memory_utilization={floor(share * 100) / 100}."
    return occupied.reason(
        used,
        f"vLLM asks for {format_bytes(asked)} (gpu_memory_utilization "
        f"{deployment.settings.gpu_memory_utilization} of {format_bytes(total)}) and "
        f"{format_bytes(asked + deployment.outside_left)} are free: it would not start.",
        hint=lower if share > 0 else "Stop them.",
        card="the GPU",
    )


def _overdrawn(deployment: VllmDeployment) -> Reason:
    return Reason(
        code="outside_budget_overdrawn",
        message=(
            f"What the budget does not count ({_outside_names(deployment)}) needs "
            f"{format_bytes(-deployment.outside_left)} more than "
            f"gpu_memory_utilization {deployment.settings.gpu_memory_utilization} leaves."
        ),
        hint="Lower -o gpu_memory_utilization.",
    )


def _smaller(deployment: VllmDeployment) -> str:
    if deployment.setup.model.quantization is not None:
        return "More GPUs (--tp, --pp) or a larger GPU."
    return "More GPUs (--tp), a smaller weight format (--weights fp8), or a larger GPU."


def _outside_names(deployment: VllmDeployment) -> str:
    if deployment.stages is None:
        return ""
    outside = deployment.stages[deployment.fullest].outside
    return ", ".join(draft.name for draft in outside)


def _too_many(
    deployment: VllmDeployment, context: int, concurrency: int, capacity: Capacity
) -> Iterator[Reason]:
    """The limit that binds first, then the other if it would bind too."""
    replicas = deployment.parallelism.dp
    by_memory = (capacity.blocks - 1) // deployment.pool.request_blocks(context) * replicas
    if capacity.requests < by_memory:
        seqs = -(-concurrency // replicas)
        batched = deployment.settings.max_num_batched_tokens
        both = f" -o max_num_batched_tokens={seqs}" if seqs > batched else ""
        yield Reason(
            code="max_num_seqs",
            message=(
                f"max_num_seqs admits {format_count(capacity.requests)} requests; the cache "
                f"would hold {format_count(by_memory)}."
            ),
            hint=f"-o max_num_seqs={seqs}{both}",
        )
    if by_memory < concurrency:
        yield Reason(
            code="kv_cache_full",
            message=(
                f"The KV cache holds {format_count(by_memory)} requests of "
                f"{format_count(context)} tokens, {format_count(concurrency)} were asked for."
            ),
            hint="Requests beyond that wait or are preempted; see what to change.",
        )


def _uncertain(
    deployment: VllmDeployment,
    context: int,
    concurrency: int | None,
    verdict: Verdict,
) -> Iterator[Reason]:
    if verdict != "fits" or deployment.low is None:
        return
    low = deployment.pool.blocks(deployment.low)
    held = deployment.requests(low, context)
    one_fits = deployment.pool.usable_blocks(deployment.low) >= deployment.pool.request_blocks(
        context
    )
    if not one_fits or (concurrency is not None and held < concurrency):
        yield Reason(
            code="within_uncertainty",
            message=(
                "It fits by the likely figures, but not if runtime memory is at the high end of "
                f"its range: then {format_count(held)} requests are held."
            ),
            hint="Leave headroom, or measure a start on the target machine.",
        )


def _context(deployment: VllmDeployment, context: int) -> Iterator[Reason]:
    model = deployment.setup.model
    longest = model.extended_context or model.max_context
    if longest is None or context <= longest:
        return
    scaling = (
        f"its rope scaling ({model.rope_scaling}) is counted in that maximum already"
        if model.rope_scaling
        else "it has no rope scaling; longer positions were never trained"
    )
    yield Reason(
        code="context_above_model_maximum",
        message=(
            f"{format_count(context)} tokens are more than the model's maximum of "
            f"{format_count(longest)}: {scaling}. The memory is computed all the same."
        ),
        hint="vLLM wants VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 or a rope_scaling override for this.",
    )


def _null_block(
    deployment: VllmDeployment, context: int, verdict: Verdict, capacity: Capacity
) -> Iterator[Reason]:
    if verdict == "fits" and capacity.requests == 0:
        yield Reason(
            code="null_block_counted",
            message=(
                f"vLLM {deployment.version} counts its null block as usable and starts, but the "
                f"pool is one block short of a request of {format_count(context)} tokens."
            ),
            hint=f"Plan for {format_count(max(1, context - capacity.block_size))} tokens.",
        )


def _in_flight(
    deployment: VllmDeployment, context: int, verdict: Verdict, capacity: Capacity
) -> Iterator[Reason]:
    """Windows and encoders are planned with a prefill in flight: most of the time fewer blocks."""
    if verdict != "fits":
        return
    pool, replicas = deployment.pool, deployment.parallelism.dp
    settings, caches = deployment.settings, deployment.setup.model.caches
    sources = [cache.source_tokens or context for cache in caches if isinstance(cache, CrossCache)]
    decoding = decoding_blocks(
        pool, context, in_flight=tokens_in_flight(settings), encoded=max(sources, default=None)
    )
    held = min(settings.max_num_seqs, max(0, capacity.blocks - 1) // decoding) * replicas
    if held > capacity.requests * _NOTABLE:
        yield Reason(
            code="in_flight_reserved",
            message=(
                f"vLLM reserves {format_count(pool.request_blocks(context))} blocks a request, as"
                f" while its prompt is read; one that only decodes holds {format_count(decoding)}:"
                f" {format_count(held)} of them fit at once."
            ),
        )


def _class(deployment: VllmDeployment) -> Iterator[Reason]:
    """A class that the release has dropped would not load; the memory is computed all the same."""
    architecture = deployment.setup.model.architecture
    last = dropped.last_release(architecture, deployment.version)
    if last is not None:
        yield Reason(
            code="class_dropped",
            message=(
                f"vLLM {deployment.version} has no class {architecture} any more; {last} was the "
                "last release with it."
            ),
            hint=f"--engine vllm=={last}",
        )
    plug_in = dropped.PLUG_INS.get(architecture)
    known = architecture in LISTED or architecture in dropped.LAST_RELEASE or plug_in
    if not known and not history.is_older_than_modelled(deployment.version):
        yield Reason(
            code="class_not_listed",
            message=(
                f"vLLM {history.NEWEST} lists no class {architecture}; whether it runs through "
                "Transformers was not checked."
            ),
        )
    if plug_in is not None:
        yield Reason(
            code="class_in_plug_in",
            message=f"vLLM serves {architecture} with a plug-in alone ({plug_in}).",
        )


def _options(deployment: VllmDeployment) -> Iterator[Reason]:
    unsized = deployment.settings.unsized
    if unsized:
        yield Reason(
            code="option_not_sized",
            message=f"No byte of this plan depends on {', '.join(unsized)}.",
            hint="What they add or save is to be measured on the target machine.",
        )
    scheme = deployment.setup.model.kv_scheme
    by_checkpoint = scheme is not None and deployment.setup.kv_dtype == "auto"
    if by_checkpoint and parse_version(deployment.version) < _SCHEMES_READ:
        yield Reason(
            code="kv_scheme_unverified",
            message=(
                f"The checkpoint asks for a {scheme} cache. That vLLM {deployment.version} follows "
                "it was not checked; 0.14 and later do."
            ),
            hint=f"Give --kv-dtype {scheme} or the model's own type.",
        )


def _coverage(deployment: VllmDeployment) -> Iterator[Reason]:
    if history.is_newer_than_modelled(deployment.version):
        yield Reason(
            code="engine_newer_than_modelled",
            message=(
                f"vLLM {deployment.version} is newer than the newest release modelled "
                f"({history.NEWEST}); its rules are taken from that."
            ),
        )
    if deployment.uncovered:
        yield Reason(
            code="runtime_not_calibrated",
            message=(
                f"Runtime memory was fitted on starts of vLLM {deployment.calibrated_on} without "
                f"{', '.join(deployment.uncovered)}; its range is widened."
            ),
            hint="Measure a start on the target machine.",
        )
    gpu = deployment.setup.gpu
    if gpu.vendor not in ("nvidia", "custom"):
        yield Reason(
            code="device_not_checked",
            message=f"vLLM's backends on {gpu.id} were not checked; an H100's rules are taken.",
        )
    elif gpu.sm is not None and gpu.sm not in backends.CHECKED:
        yield Reason(
            code="device_not_checked",
            message=(
                f"vLLM's backend choice was not checked for compute capability "
                f"{gpu.sm[0]}.{gpu.sm[1]}; block sizes follow the nearest that was."
            ),
        )


def _outside(deployment: VllmDeployment, ledger: tuple[LedgerLine, ...]) -> Iterator[Reason]:
    unused = next((line for line in ledger if line.name == "outside_unused"), None)
    if unused is None or deployment.stages is None or unused.bytes < 0:
        return
    outside = {draft.name for draft in deployment.stages[deployment.fullest].outside}
    high = sum(line.high - line.bytes for line in ledger if line.name in outside)
    if unused.bytes <= high:
        yield Reason(
            code="outside_budget_tight",
            message=(
                f"Only {format_bytes(unused.bytes)} remain outside the budget for what vLLM does "
                f"not count; that may need {format_bytes(high)} more than is likely."
            ),
            hint="Lower -o gpu_memory_utilization a little.",
        )
