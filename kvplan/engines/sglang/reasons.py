"""Why SGLang falls short, what a reader has to know, and which option cures it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvplan.engines import occupied, remarks
from kvplan.engines.sglang import history, sizes
from kvplan.engines.sglang import runtime_ranges as ranges
from kvplan.engines.sglang.layers import LOCAL
from kvplan.engines.sglang.memory import LEAST_OF_OTHERS
from kvplan.plan import Reason, Verdict
from kvplan.units import MIB, format_bytes, format_count

if TYPE_CHECKING:
    from kvplan.engines.sglang.deployment import SglangDeployment


def collect(
    deployment: SglangDeployment, context: int, concurrency: int | None, *, verdict: Verdict
) -> tuple[Reason, ...]:
    """Causes of a shortfall first, then what limits trust in the numbers."""
    found: list[Reason] = []
    if verdict == "does_not_fit":
        found += _too_little(deployment, context, concurrency)
    else:
        found += _uncertain(deployment, context, concurrency)
    found += remarks.above_maximum(deployment.frame.setup.model, context)
    found += _windows(deployment)
    found += _states(deployment)
    found += _groups(deployment)
    found += _scheme(deployment)
    found += _options(deployment)
    found += _coverage(deployment)
    found += _tight(deployment)
    found += (Reason(code="model_note", message=n) for n in deployment.frame.setup.model.notes)
    return tuple(found)


def _too_little(
    deployment: SglangDeployment, context: int, concurrency: int | None
) -> Iterator[Reason]:
    longest = deployment.longest_context()
    if deployment.available <= 0:
        yield _no_room(deployment)
    elif not sizes.windows_hold_one(deployment.sizing, deployment.sizes):
        yield _windows_too_small(deployment)
    elif longest < context:
        yield _too_long(deployment, context, longest)
    elif concurrency is not None and deployment.comes_up:
        yield from _too_many(deployment, context, concurrency)
    if deployment.slack_left is not None and deployment.slack_left < 0:
        yield Reason(
            code="dynamic_share_overdrawn",
            message=(
                "What mem_fraction_static leaves does not pay for the request table, workspaces "
                f"and graphs: {format_bytes(-deployment.slack_left)} are missing."
            ),
            hint="Lower -o mem_fraction_static, -o max_running_requests or --context.",
        )
    yield from _in_use(deployment, context, concurrency)


def _in_use(
    deployment: SglangDeployment, context: int, concurrency: int | None
) -> Iterator[Reason]:
    used = deployment.used_by_others
    if not deployment.uneven:
        yield from occupied.blame(used, deployment.idle, context=context, concurrency=concurrency)
        return
    yield occupied.reason(
        used,
        "SGLang does not start ranks of which one has less than "
        f"{LEAST_OF_OTHERS} of the free memory of another.",
        hint="Stop them, or choose cards that are equally free with CUDA_VISIBLE_DEVICES.",
        card="one of the GPUs",
    )


def _no_room(deployment: SglangDeployment) -> Reason:
    spent = deployment.ranks[deployment.fullest].spent if deployment.ranks else 0
    fraction = deployment.frame.settings.mem_fraction_static
    return Reason(
        code="no_room_for_cache",
        message=(
            f"Weights ({format_bytes(spent)} a GPU) leave nothing of the static share "
            f"(mem_fraction_static {fraction:.3f}) for a KV cache: "
            f"{format_bytes(-deployment.available)} are missing on each GPU."
        ),
        hint=_smaller(deployment),
    )


def _windows_too_small(deployment: SglangDeployment) -> Reason:
    sizing, found = deployment.sizing, deployment.sizes
    return Reason(
        code="window_pool_too_small",
        message=(
            f"The pool of windows has {format_count(found.window_tokens)} tokens and a request "
            f"needs more than {format_count(sizing.window + sizing.page)}: SGLang would not start."
        ),
        hint="Raise -o swa_full_tokens_ratio, or use more GPUs.",
    )


def _too_long(deployment: SglangDeployment, context: int, longest: int) -> Reason:
    return Reason(
        code="context_too_long",
        message=(
            f"The pool has {format_count(deployment.sizes.tokens)} tokens: SGLang would start, and "
            f"turn away a request of {format_count(context)}. The longest that fits is "
            f"{format_count(longest)} tokens."
        ),
        hint=f"--context {longest}" if longest else _smaller(deployment),
    )


def _smaller(deployment: SglangDeployment) -> str:
    if deployment.frame.setup.model.quantization is not None:
        return "More GPUs (--tp, --pp) or a larger GPU."
    return "More GPUs (--tp), a smaller weight format (--weights fp8), or a larger GPU."


def _too_many(deployment: SglangDeployment, context: int, concurrency: int) -> Iterator[Reason]:
    held = deployment.requests(deployment.sizes, context)
    replicas = deployment.frame.settings.dp_size * deployment.parallelism.dp
    memory = sizes.by_memory(deployment.sizing, deployment.sizes, context) * replicas
    if held < memory:
        admitted = -(-concurrency // deployment.parallelism.dp)
        yield Reason(
            code="max_running_requests",
            message=(
                f"max_running_requests admits {format_count(held)} requests; the pools would hold "
                f"{format_count(memory)}."
            ),
            hint=f"-o max_running_requests={admitted}",
        )
    if memory < concurrency:
        yield Reason(
            code="kv_cache_full",
            message=(
                f"The pools hold {format_count(memory)} requests of {format_count(context)} "
                f"tokens, {format_count(concurrency)} were asked for."
            ),
            hint="Requests beyond that wait or are retracted; see what to change.",
        )


def _uncertain(
    deployment: SglangDeployment, context: int, concurrency: int | None
) -> Iterator[Reason]:
    if deployment.low is None:
        return
    low = sizes.solve(deployment.sizing, deployment.low)
    yield from remarks.within_uncertainty(
        deployment.requests(low, context),
        concurrency or 1,
        unless="more is taken before the model is loaded",
        measure="a start",
    )


def _windows(deployment: SglangDeployment) -> Iterator[Reason]:
    model, frame = deployment.frame.setup.model, deployment.frame
    local = any(isinstance(cache, LOCAL) for cache in model.caches)
    if local and not deployment.sizing.window:
        yield Reason(
            code="windows_kept_whole",
            message=(
                f"SGLang {frame.version} keeps every token of this model's window layers: "
                f"{model.architecture} has no pool of windows."
            ),
        )
    elif deployment.sizing.window and not deployment.sizing.capped_by_requests:
        yield Reason(
            code="window_pool",
            message=(
                f"The pool of windows has {format_count(deployment.sizes.window_tokens)} tokens: "
                f"{frame.settings.swa_full_tokens_ratio:g} (swa_full_tokens_ratio) of the other "
                f"pool's {format_count(deployment.sizes.tokens)}, however short the window is."
            ),
            hint="A lower -o swa_full_tokens_ratio holds more tokens of long requests.",
        )


def _states(deployment: SglangDeployment) -> Iterator[Reason]:
    if deployment.sizing.slots_per_request:
        if not any(rows.full_bytes for rows in deployment.sizing.stages):
            yield Reason(
                code="token_numbers",
                message=(
                    "The model keeps nothing a token, but SGLang hands out a number a token: "
                    f"{format_count(deployment.sizes.tokens)} of them for all requests together."
                ),
                hint="-o max_total_tokens=1000000 costs no cache.",
            )
        yield Reason(
            code="state_slots",
            message=(
                f"{format_count(deployment.sizes.slots)} slots of recurrent states, "
                f"{deployment.sizing.slots_per_request} a request, admit "
                f"{format_count(deployment.sizes.requests)} requests."
            ),
            hint="-o mamba_full_memory_ratio moves memory between states and tokens.",
        )


def _groups(deployment: SglangDeployment) -> Iterator[Reason]:
    groups = deployment.frame.settings.dp_size
    if groups > 1:
        yield Reason(
            code="attention_groups",
            message=(
                f"Tokens, blocks and the longest context count one of {groups} groups of "
                "data-parallel attention, as SGLang logs them; requests count all."
            ),
        )


def _scheme(deployment: SglangDeployment) -> Iterator[Reason]:
    setup = deployment.frame.setup
    scheme = setup.model.kv_scheme
    if scheme is None or setup.kv_dtype != "auto" or deployment.frame.stored.element_bytes == 1:
        return
    yield Reason(
        code="kv_scheme_not_read",
        message=(
            f"The checkpoint asks for a {scheme} cache; SGLang keeps "
            f"{deployment.frame.stored.name} unless it is told otherwise."
        ),
        hint="Give --kv-dtype fp8_e4m3.",
    )


def _options(deployment: SglangDeployment) -> Iterator[Reason]:
    unsized = deployment.frame.settings.unsized
    if unsized:
        yield Reason(
            code="option_not_sized",
            message=f"Of {', '.join(unsized)} only the page size is taken into account.",
            hint="What it adds or saves is to be measured on the target machine.",
        )
    vision = any(w.component == "vision" for w in deployment.frame.setup.model.weights)
    if vision and "mem_fraction_static" in deployment.frame.settings.assumed:
        yield Reason(
            code="fraction_approximate",
            message=(
                "SGLang's default mem_fraction_static of a model that reads images depends on the "
                "tower's layers and width; kvplan takes the tower's parameters for that."
            ),
            hint="Give -o mem_fraction_static to be sure.",
        )


def _coverage(deployment: SglangDeployment) -> Iterator[Reason]:
    frame = deployment.frame
    if history.is_newer_than_modelled(frame.version):
        yield remarks.newer_than_modelled("SGLang", frame.version, history.NEWEST)
    gpu = frame.setup.gpu
    if gpu.vendor not in ("nvidia", "custom"):
        yield Reason(
            code="device_not_checked",
            message=f"SGLang's pages and defaults on {gpu.id} were not checked; CUDA's are taken.",
        )


def _tight(deployment: SglangDeployment) -> Iterator[Reason]:
    """Where less is left than the engine itself would set aside for a prefill."""
    left = deployment.slack_left
    if left is None or left < 0:
        return
    chunk = deployment.frame.settings.prefill_chunk
    wanted = int(chunk * ranges.PREFILL_TOKEN_MIB * MIB)
    # The engine's own defaults land within a tenth of it.
    if left < wanted / 2:
        yield Reason(
            code="dynamic_share_tight",
            message=(
                f"{format_bytes(left)} are left for activations; SGLang's own rule of thumb sets "
                f"{format_bytes(wanted)} aside for a prefill of {format_count(chunk)} tokens."
            ),
            hint="Lower -o mem_fraction_static or -o chunked_prefill_size.",
        )
