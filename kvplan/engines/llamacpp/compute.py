"""Compute buffers: the largest moment of one batch, as a model with a measured spread.

Two moments are large: attention, with its mask (without flash attention also its scores), and the
logits. GPUs that work in turns keep their inputs four times. A host that computes no layer only
hands inputs on. Compared with llama.cpp's own planner (ggml-org/llama.cpp@0c1e57098: 1,117 buffers
of its CPU backend, 1,612 of devices) and with buffers that public start-up logs print.
"""

from __future__ import annotations

from collections.abc import Mapping

from kvplan.engines.llamacpp.context import Context
from kvplan.engines.llamacpp.devices import Backend
from kvplan.models.caches import LatentCache, RecurrentCache
from kvplan.models.formats import ceil_div
from kvplan.models.spec import ModelSpec

SOURCE = (
    "model of two moments beside n=2,729 buffers of llama.cpp's own planner at 0c1e57098 (median "
    "of observed / predicted 1.0, range 0.4-1.6) and public logs: n=13 GPU buffers with all layers "
    "on the GPUs (CUDA 10, ROCm 2, Metal 1: 0.89-1.11), n=3 with experts on the host (1.5-4.2), "
    "n=12 of hosts beside GPUs (0.25-1.63); no Vulkan log states its batch"
)
FORMULA = (
    "ceil(spread * (max(4 * n_outputs * vocab + 4 * n_ubatch * hidden, "
    "n_ubatch * (4 * width + mask_bytes * cells + 4 * cells * score_heads)) "
    "+ 4 * n_ubatch * copies * (cells + hidden)))"
)
HANDED_ON = "ceil(spread * 4 * n_ubatch * (1 + copies) * (cells + hidden))"
"""The formula for a host that computes no layer."""

# src/llama-context.cpp: ggml_backend_sched with GGML_SCHED_MAX_COPIES 4.
_MORE_COPIES = 3
# Observed over predicted, wider than what logs show: they are few. With layers or experts on the
# host, buffers for them come on top.
_SPREAD: Mapping[Backend, tuple[float, float]] = {
    "cpu": (0.4, 1.6),
    "gpu": (0.6, 1.75),
    "metal": (0.6, 2.0),
}
_HOST_BESIDE_GPUS = (0.25, 2.0)
_PARTIAL_HIGH = 5.0


def compute_inputs(
    spec: ModelSpec,
    context: Context,
    *,
    cells: int,
    n_outputs: int,
    flash_attn: bool,
    in_turns: bool,
    width: int,
) -> dict[str, int | float]:
    """The figures of one batch.

    A mask takes 4 bytes a cell, and 2 more where flash attention wants it in float16.

    Args:
        spec: The model.
        context: Its context.
        cells: Cells that a token may attend to, over all sizes of window.
        n_outputs: Tokens whose logits are wanted.
        flash_attn: Whether scores are not kept.
        in_turns: Whether several GPUs work on different batches at once.
        width: That of the model, as `width_of` finds it.
    """
    return {
        "n_outputs": min(context.n_ubatch, n_outputs),
        "vocab": spec.vocab_size,
        "n_ubatch": context.n_ubatch,
        "hidden": spec.hidden_size,
        "width": width,
        "mask_bytes": 6 if flash_attn else 4,
        "cells": cells,
        "score_heads": 0 if flash_attn else spec.attention_heads,
        "copies": _MORE_COPIES if in_turns else 0,
        "spread": 1.0,
    }


def spread(backend: Backend, *, partial: bool, beside_gpus: bool) -> tuple[float, float]:
    """What the buffer may be off by, low and high.

    Args:
        backend: Where it lies.
        partial: Whether GPUs compute one part of the model and the host another.
        beside_gpus: Whether there are GPUs in the machine.
    """
    low, high = _HOST_BESIDE_GPUS if backend == "cpu" and beside_gpus else _SPREAD[backend]
    return low, max(high, _PARTIAL_HIGH) if partial else high


def width_of(spec: ModelSpec) -> int:
    """Elements a token has at once inside a layer."""
    latent = max(
        (c.latent_dim * 2 + c.rope_dim for c in spec.caches if isinstance(c, LatentCache)),
        default=0,
    )
    inner = max((_inner(c) for c in spec.caches if isinstance(c, RecurrentCache)), default=0)
    width = 2 * _feed_forward(spec) + 5 * spec.hidden_size + spec.attention_heads * latent
    return max(width, 5 * spec.hidden_size + 4 * inner)


def _feed_forward(spec: ModelSpec) -> int:
    """Elements of the widest feed-forward: of all experts that a token goes through."""
    if not spec.experts:
        return spec.intermediate_size
    sizes = [w.shape[0] for w in spec.weights if w.component == "experts" and len(w.shape) > 1]
    expert = min(sizes, default=0)
    return max(spec.intermediate_size, spec.experts_per_token * expert)


def _inner(cache: RecurrentCache) -> int:
    """Channels of a convolution."""
    for tensor in cache.states:
        if tensor.name == "conv":
            return max(tensor.shape) if len(tensor.shape) > 1 else ceil_div(tensor.shape[0], 3)
    return 0
