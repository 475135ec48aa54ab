"""Why TensorRT-LLM falls short, what a reader has to know, and which option cures it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kvplan.engines import occupied, remarks
from kvplan.engines.tensorrt_llm import blocks, history
from kvplan.models.caches import WindowCache
from kvplan.plan import Reason, Verdict
from kvplan.units import format_bytes, format_count

if TYPE_CHECKING:
    from kvplan.engines.tensorrt_llm.deployment import TensorRtDeployment


def collect(
    deployment: TensorRtDeployment, context: int, concurrency: int | None, *, verdict: Verdict
) -> tuple[Reason, ...]:
    """Causes of a shortfall first, then what limits trust in the numbers."""
    found: list[Reason] = []
    if verdict == "does_not_fit":
        found += _too_little(deployment, context, concurrency)
    else:
        found += _uncertain(deployment, context, concurrency)
    found += remarks.above_maximum(deployment.frame.setup.model, context)
    found += _windows(deployment)
    found += _tiers(deployment)
    found += _coverage(deployment)
    found += (Reason(code="model_note", message=n) for n in deployment.frame.setup.model.notes)
    return tuple(found)


def _too_little(
    deployment: TensorRtDeployment, context: int, concurrency: int | None
) -> Iterator[Reason]:
    longest = deployment.longest_context()
    if deployment.shares[deployment.fullest].estimated <= 0:
        yield _no_room(deployment)
    elif deployment.left < 0:
        yield Reason(
            code="pool_too_large",
            message=(
                "The pool is larger than its budget (repeated heads, or scales, are not in the "
                f"engine's estimate): {format_bytes(-deployment.left)} are missing for a run of "
                "max_num_tokens."
            ),
            hint="Lower -o free_gpu_memory_fraction.",
        )
    elif longest < context:
        yield _too_long(deployment, context, longest)
    elif concurrency is not None:
        yield from _too_many(deployment, context, concurrency)
    yield from occupied.blame(
        deployment.used_by_others, deployment.idle, context=context, concurrency=concurrency
    )


def _no_room(deployment: TensorRtDeployment) -> Reason:
    missing = -deployment.shares[deployment.fullest].estimated
    return Reason(
        code="no_room_for_cache",
        message=(
            "Weights and a run of max_num_tokens leave no room for a KV cache: "
            f"{format_bytes(missing)} are missing on each GPU."
        ),
        hint="More GPUs (--tp), fewer -o max_num_tokens, or smaller weights.",
    )


def _too_long(deployment: TensorRtDeployment, context: int, longest: int) -> Reason:
    asked = deployment.frame.settings.max_seq_len
    cause = (
        f"max_seq_len is {format_count(asked)}"
        if longest == asked
        else f"The pool holds {format_count(longest)} tokens of one request, and TensorRT-LLM "
        "lowers max_seq_len to that"
    )
    return Reason(
        code="context_too_long",
        message=f"{cause}: requests of {format_count(context)} tokens are turned away.",
        hint=f"--context {longest}" if longest else "More GPUs (--tp) or a larger GPU.",
    )


def _too_many(deployment: TensorRtDeployment, context: int, concurrency: int) -> Iterator[Reason]:
    held = deployment.requests(deployment.blocks, context)
    replicas = deployment.frame.attention_groups * deployment.parallelism.dp
    memory = blocks.by_memory(deployment.sizing, deployment.blocks, context) * replicas
    if held < memory:
        yield Reason(
            code="max_batch_size",
            message=(
                f"max_batch_size admits {format_count(held)} requests; the cache would hold "
                f"{format_count(memory)}."
            ),
            hint=f"-o max_batch_size={-(-concurrency // replicas)}",
        )
    if memory < concurrency:
        yield Reason(
            code="kv_cache_full",
            message=(
                f"The KV cache holds {format_count(memory)} requests of {format_count(context)} "
                f"tokens, {format_count(concurrency)} were asked for."
            ),
            hint="Requests beyond that wait; see what to change.",
        )


def _uncertain(
    deployment: TensorRtDeployment, context: int, concurrency: int | None
) -> Iterator[Reason]:
    if deployment.low is None:
        return
    low = blocks.solve(deployment.sizing, deployment.low)
    yield from remarks.within_uncertainty(
        deployment.requests(low, context),
        concurrency or 1,
        unless="the measured peak is at the high end of its range",
        measure="a start",
    )


def _windows(deployment: TensorRtDeployment) -> Iterator[Reason]:
    frame = deployment.frame
    windows = deployment.sizing.windows
    local = any(isinstance(cache, WindowCache) for cache in frame.setup.model.caches)
    if len(windows) > 1:
        shares = ", ".join(
            f"{format_count(deployment.blocks[window])} blocks for {format_count(window)} tokens"
            for window in windows
        )
        yield Reason(
            code="equal_shares",
            message=(
                f"Each window gets an equal share of the memory, however many layers it has: "
                f"{shares}."
            ),
            hint=(
                "TRTLLM_WINDOW_SIZE_SHARES changes the shares, -o max_attention_window the windows."
            ),
        )
    elif local and windows[0] == frame.settings.max_seq_len:
        yield Reason(
            code="windows_kept_whole",
            message=(
                f"TensorRT-LLM {frame.version} keeps every token of window layers unless "
                "max_attention_window says otherwise."
            ),
        )


def _tiers(deployment: TensorRtDeployment) -> Iterator[Reason]:
    if deployment.frame.settings.host_cache_size:
        held = deployment.host_blocks
        yield Reason(
            code="host_tier",
            message=(
                f"The host keeps {format_count(held)} blocks more "
                f"({format_count(held * deployment.sizing.block)} tokens) of finished requests "
                "for reuse; running requests do not count on them."
            ),
        )
    if deployment.frame.attention_groups > 1:
        yield Reason(
            code="attention_groups",
            message=(
                "Tokens and blocks count one rank, as each serves requests of its own under "
                "data-parallel attention; requests count all."
            ),
        )


def _coverage(deployment: TensorRtDeployment) -> Iterator[Reason]:
    frame = deployment.frame
    if history.is_newer_than_modelled(frame.version):
        yield remarks.newer_than_modelled("TensorRT-LLM", frame.version, history.NEWEST)
    if deployment.ranks is not None:
        yield Reason(
            code="runtime_not_calibrated",
            message=(
                "What TensorRT-LLM measures beside the weights was seen in few public starts only; "
                "its range is wide."
            ),
            hint="Measure a start on the target machine, or give --kv-budget.",
        )
    if frame.settings.unsized:
        yield Reason(
            code="option_not_sized",
            message=f"No byte of this plan depends on {', '.join(frame.settings.unsized)}.",
        )
    if frame.stored.bits == 4 and frame.sm[0] < 10:
        yield Reason(
            code="device_not_checked",
            message="An NVFP4 cache wants a Blackwell GPU.",
        )
