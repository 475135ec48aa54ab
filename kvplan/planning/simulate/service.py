"""How long one step of the engine takes: a roofline of the device, or the user's own figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kvplan.engines.base import BlockGroup
from kvplan.errors import UsageError
from kvplan.hardware import GpuSpec
from kvplan.models.caches import ChunkedCache, FullCache, LatentCache, LayerCache, WindowCache
from kvplan.models.formats import PLAIN
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import stored_bytes

# What a step really gets of a device's peak. Bandwidth: mem_bw_empirical_scaling_factor in
# ai-dynamo/aiconfigurator, systems/*.yaml, there called a correction based on observations.
# Arithmetic: assumed; both are named in every result and can be given.
BANDWIDTH_EFFICIENCY, FLOPS_EFFICIENCY = 0.8, 0.5
_GIGA, _TERA = 10**9, 10**12
# Two operations for each weight a token is multiplied with.
_MULTIPLY_ADD = 2


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step computes.

    Attributes:
        decodes: Requests that generate a token.
        decode_context: Tokens that they attend to, summed.
        prefill_tokens: Tokens of prompts.
        prefill_context: Tokens that these attend to, summed over the tokens.
        prefill_read: Tokens of context that prefills read from the cache.
    """

    decodes: int
    decode_context: int
    prefill_tokens: int = 0
    prefill_context: int = 0
    prefill_read: int = 0


class StepTimes(Protocol):
    """Seconds of steps."""

    def seconds(self, batch: Batch) -> float:
        """Seconds that a step takes."""
        ...


@dataclass(frozen=True, slots=True)
class Linear:
    """Steps as the user measured them.

    Attributes:
        step_s: Every step.
        prefill_s: More for each token of a prompt.
        decode_s: More for each request that generates.
        context_s: More for each token of context that these attend to.
    """

    step_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    context_s: float = 0.0

    def seconds(self, batch: Batch) -> float:
        """Seconds that a step takes."""
        return (
            self.step_s
            + self.prefill_s * batch.prefill_tokens
            + self.decode_s * batch.decodes
            + self.context_s * batch.decode_context
        )


@dataclass(frozen=True, slots=True)
class Roofline:
    """The slower of moving bytes and computing, on one rank.

    Attributes:
        bytes_per_s, flops_per_s: What a step really gets of the device.
        weight_bytes: Read in every step, without routed experts.
        expert_bytes: All routed experts; a step reads the ones that its tokens are routed to.
        expert_share: Of the experts, those that one token goes through.
        token_flops: Operations a token, without attention.
        context_bytes, context_flops: For each token attended to: of groups that keep all tokens.
        windows: (span, bytes, operations) of the others.
        overhead_s: More for every step.
    """

    bytes_per_s: float
    flops_per_s: float
    weight_bytes: float
    expert_bytes: float
    expert_share: float
    token_flops: float
    context_bytes: float
    context_flops: float
    windows: tuple[tuple[int, float, float], ...] = ()
    overhead_s: float = 0.0

    def seconds(self, batch: Batch) -> float:
        """Seconds that a step takes."""
        tokens = batch.decodes + batch.prefill_tokens
        read = batch.decode_context + batch.prefill_read
        attended = batch.decode_context + batch.prefill_context
        moved = self.weight_bytes + read * self.context_bytes
        if self.expert_bytes:
            moved += self.expert_bytes * (1.0 - (1.0 - self.expert_share) ** tokens)
        flops = tokens * self.token_flops + attended * self.context_flops
        for span, per_byte, per_flop in self.windows:
            moved += min(read, span * tokens) * per_byte
            flops += min(attended, span * tokens) * per_flop
        return max(moved / self.bytes_per_s, flops / self.flops_per_s) + self.overhead_s


def roofline(
    model: ModelSpec,
    gpu: GpuSpec,
    groups: Sequence[BlockGroup],
    *,
    ranks: int,
    bandwidth_efficiency: float = BANDWIDTH_EFFICIENCY,
    flops_efficiency: float = FLOPS_EFFICIENCY,
    overhead_s: float = 0.0,
) -> Roofline:
    """The roofline of one replica whose ranks share the work evenly.

    Args:
        model: What is served.
        gpu: The device; its bandwidth and its arithmetic in 16 bits are needed.
        groups: The pool's groups, for what attention reads.
        ranks: Devices of a replica.
        bandwidth_efficiency: Share of the peak that steps get.
        flops_efficiency: Of arithmetic.
        overhead_s: More for every step: launching, sampling, communication.

    Raises:
        UsageError: the device's bandwidth or arithmetic is not known.
    """
    flops = gpu.tflops_bf16 or gpu.tflops_fp16
    if gpu.memory_bandwidth_gb_s is None or flops is None:
        raise UsageError(
            f"How fast {gpu.id} is is not known.",
            hint="Give the time of a step yourself: --step-time.",
        )
    sizes = stored_bytes(model.weights, PLAIN[model.dtype])
    experts = sizes.get("experts", 0)
    attention = _attention_flops(model)
    whole, windows = _reads(groups)
    full_flops = sum(flop for span, flop in attention if not span) / ranks
    window_flops = sum(flop for span, flop in attention if span) / ranks
    share = sum(read for _, read in windows) or 1.0
    return Roofline(
        bytes_per_s=gpu.memory_bandwidth_gb_s.value * _GIGA * bandwidth_efficiency,
        flops_per_s=flops.value * _TERA * flops_efficiency,
        weight_bytes=(sum(sizes.values()) - experts) / ranks,
        expert_bytes=experts / ranks,
        expert_share=min(1.0, model.experts_per_token / model.experts) if model.experts else 0.0,
        token_flops=_MULTIPLY_ADD * model.parameters_active / ranks,
        context_bytes=whole,
        context_flops=full_flops,
        windows=tuple((span, read, window_flops * read / share) for span, read in windows),
        overhead_s=overhead_s,
    )


def _reads(groups: Sequence[BlockGroup]) -> tuple[float, list[tuple[int, float]]]:
    """Bytes a token of context: of groups that keep all, and of windows by their span."""
    whole = sum(group.token_bytes for group in groups if group.keeps == "all")
    windows: dict[int, float] = {}
    for group in groups:
        if group.keeps in ("window", "chunk"):
            windows[group.span] = windows.get(group.span, 0.0) + group.token_bytes
    return whole, sorted(windows.items())


def _attention_flops(model: ModelSpec) -> list[tuple[int, int]]:
    """For each layer's attention, its span (0: all tokens) and operations a token attended to."""
    shapes = [_shape(cache) for layer in model.layers for cache in layer.caches]
    scale = _MULTIPLY_ADD * model.attention_heads
    return [(span, scale * width) for span, width in shapes if width]


def _shape(cache: LayerCache) -> tuple[int, int]:
    """Span, and elements of keys and values that one head of queries meets a token; 0: none."""
    match cache:
        case LatentCache():
            return 0, 2 * cache.latent_dim + cache.rope_dim
        case FullCache():
            return 0, cache.head_dim + cache.head_dim_v
        case WindowCache():
            return cache.window, cache.head_dim + cache.head_dim_v
        case ChunkedCache():
            return cache.chunk, cache.head_dim + cache.head_dim_v
        case _:
            return 0, 0
