"""No faster than this: the roofline of a candidate, from the bytes and operations it can't avoid.

What is uncertain is left out, so that the times are the least there can be at the stated share of
the device's peak: launching, communication, sampling, padding, keys that sparse attention skips,
and for latent caches the attention of prompts, whose kernels expand the latents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from kvplan.errors import UsageError
from kvplan.fit_result import SpeedBounds
from kvplan.hardware import Fact, GpuSpec
from kvplan.models.caches import CompressedCache, IndexerCache, LatentCache
from kvplan.models.formats import DTYPE_BYTES, PLAIN, KvFormat, ceil_div
from kvplan.models.identity import ById
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import Component, stored_bytes
from kvplan.planning.fit.layouts import EXPERTS_ACROSS_REPLICAS
from kvplan.planning.fit.space import Shape
from kvplan.planning.simulate import service
from kvplan.planning.simulate.service import Batch, Roofline

# Formats that are unpacked before they are multiplied: arithmetic stays in 16 bits.
_UNPACKED = ("awq", "gptq", "w4a16", "bnb", "nf4", "gguf", "autoround", "hqq")
# What a step that generates tokens does not read.
_NOT_READ: tuple[Component, ...] = ("vision", "audio", "mtp")


@dataclass(frozen=True, slots=True)
class Shares:
    """What steps get of a device's peak bandwidth and arithmetic."""

    bandwidth: float = service.BANDWIDTH_EFFICIENCY
    flops: float = service.FLOPS_EFFICIENCY


@dataclass(frozen=True, slots=True)
class Pace:
    """One replica's roofline, ready for any number of requests.

    Attributes:
        steps: A step through all its stages, for decoding.
        prompts: The same, for prompts.
        pp: Stages: each works on its own part of the batch.
        groups: Ranks whose attention serves requests of their own.
        expert_replicas: Replicas whose tokens meet in the same experts.
        context: Tokens of a request.
        prompt: Tokens of a prompt.
    """

    steps: Roofline
    prompts: Roofline
    pp: int
    groups: int
    shares_experts: bool
    context: int
    prompt: int

    def at(self, requests: int, replicas: int) -> SpeedBounds:
        """The bounds with so many requests in all."""
        batch = ceil_div(requests, replicas)
        part = ceil_div(batch, self.pp)
        roof = self._with_experts(replicas)
        own = ceil_div(part, self.groups)
        decoding = Batch(decodes=part, decode_context=own * self.context)
        tpot = roof.seconds(decoding)
        moving = replace(roof, flops_per_s=float("inf")).seconds(decoding)
        return SpeedBounds(
            tpot_s=tpot,
            ttft_s=self._prompt_s(),
            tokens_per_s=requests / tpot,
            limited_by="bandwidth" if moving >= tpot else "arithmetic",
            batch=batch,
        )

    def _with_experts(self, replicas: int) -> Roofline:
        """Replicas that share experts read fewer each, and meet more tokens there."""
        if not self.shares_experts or replicas == 1:
            return self.steps
        missed = (1.0 - self.steps.expert_share) ** replicas
        return replace(
            self.steps,
            expert_bytes=self.steps.expert_bytes / replicas,
            expert_share=1.0 - missed,
        )

    def _prompt_s(self) -> float:
        tokens = self.prompt
        batch = Batch(0, 0, prefill_tokens=tokens, prefill_context=tokens * (tokens + 1) // 2)
        # At best the stages work on different chunks of it at the same time.
        return self.prompts.seconds(batch) / self.pp


def pace_of(
    shape: Shape, model: ModelSpec, shares: Shares, *, context: int, prompt: int
) -> Pace | None:
    """The roofline of a candidate's replica; None where the device's speed is not known.

    Args:
        shape: The candidate.
        model: The model with its weights in the candidate's format.
        shares: What steps get of the device.
        context: Tokens of a request.
        prompt: Tokens of a prompt.
    """
    device = _with_arithmetic(shape.gpu, model.quantization)
    ranks = shape.tp  # of a stage; layers on several devices wait for one another, like stages
    try:
        base = _roofline(ById(model), ById(device), ranks, shares)
    except UsageError:
        return None
    attention, others, experts = _read_bytes(model)
    split = ranks if shape.layout.splits_attention else 1
    steps = replace(
        base,
        weight_bytes=attention / split + others / ranks,
        expert_bytes=experts / ranks,
        context_bytes=_kv_bytes(shape, model, context, tp=split) / context,
    )
    latent = any(isinstance(c, LatentCache) for layer in model.layers for c in layer.caches)
    return Pace(
        steps=steps,
        prompts=replace(steps, context_bytes=0.0, context_flops=0.0) if latent else steps,
        pp=shape.pp,
        groups=1 if shape.layout.splits_attention else ranks,
        shares_experts=bool(experts) and shape.choice.engine.name in EXPERTS_ACROSS_REPLICAS,
        context=context,
        prompt=prompt,
    )


@lru_cache(maxsize=4096)
def _roofline(
    model: ById[ModelSpec], device: ById[GpuSpec], ranks: int, shares: Shares
) -> Roofline:
    return service.roofline(
        model.value,
        device.value,
        (),
        ranks=ranks,
        bandwidth_efficiency=shares.bandwidth,
        flops_efficiency=shares.flops,
    )


@lru_cache(maxsize=64)
def _sizes(key: ById[ModelSpec]) -> tuple[int, int, int]:
    model = key.value
    sizes = stored_bytes(model.weights, PLAIN[model.dtype])
    experts, attention = sizes.get("experts", 0), sizes.get("attention", 0)
    left_out = sum(sizes.get(part, 0) for part in _NOT_READ)
    if not model.tied_embeddings:
        left_out += sizes.get("embedding", 0)  # a few rows, not the matrix
    return attention, sum(sizes.values()) - experts - attention - left_out, experts


def _read_bytes(model: ModelSpec) -> tuple[int, int, int]:
    """Bytes of attention, of the rest, and of all routed experts that decoding reads."""
    return _sizes(ById(model))


def _kv_bytes(shape: Shape, model: ModelSpec, context: int, *, tp: int) -> float:
    """Bytes that one request's step reads on one rank, over all stages."""
    bits = _bits(shape.kv_dtype, model)
    return _kv_read(ById(model), context, bits, tp)


@lru_cache(maxsize=512)
def _kv_read(key: ById[ModelSpec], context: int, bits: int, tp: int) -> float:
    model = key.value
    kv = KvFormat(name=f"{bits} bits", bits_k=bits, bits_v=bits, source="for a bound")
    read = 0
    for layer in model.layers:
        sparse = any(isinstance(cache, IndexerCache | CompressedCache) for cache in layer.caches)
        for cache in layer.caches:
            if not sparse or isinstance(cache, IndexerCache):
                read += cache.request_bytes(context, kv, model.dtype, tp=tp)
    return float(read)


def _bits(kv_dtype: str, model: ModelSpec) -> int:
    """Bits of an element; of a type with several the fewest."""
    name = kv_dtype.lower()
    if name == "auto":
        return 8 if model.kv_scheme else 8 * DTYPE_BYTES[model.dtype]
    for bits in (32, 16):
        if str(bits) in name:
            return bits
    few = [
        bits for bits in (2, 3, 4, 8) if str(bits) in name.replace("e4m3", "").replace("e5m2", "")
    ]
    return min(few, default=8)


def _with_arithmetic(gpu: GpuSpec, quantization: str | None) -> GpuSpec:
    return _fastest(ById(gpu), quantization)


@lru_cache(maxsize=1024)
def _fastest(key: ById[GpuSpec], quantization: str | None) -> GpuSpec:
    """The device with the fastest arithmetic that weights of that format can use as its 16-bit."""
    gpu = key.value
    if quantization is None or any(word in quantization.lower() for word in _UNPACKED):
        return gpu
    facts: tuple[Fact | None, ...] = (
        gpu.tflops_bf16 or gpu.tflops_fp16,
        gpu.tflops_fp8,
        gpu.tops_int8,
    )
    if "fp4" in quantization:
        facts = (*facts, gpu.tflops_fp4)
    known = [fact for fact in facts if fact is not None]
    if not known:
        return gpu
    return gpu.model_copy(update={"tflops_bf16": max(known, key=lambda fact: fact.value)})
