"""max_num_batched_tokens and max_num_seqs of one start: what was given, else the release's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvplan.engines.base import Version
from kvplan.engines.vllm import defaults
from kvplan.engines.vllm.defaults import Attention, Batch
from kvplan.errors import EngineRefusesError
from kvplan.hardware import GpuSpec


@dataclass(frozen=True, slots=True)
class Situation:
    """What the defaults depend on.

    Attributes:
        total_bytes: The device's memory as the engine sees it.
        context: Tokens a request may have.
        dp: Replicas.
        attention: What the model keeps of a request.
    """

    gpu: GpuSpec
    total_bytes: int
    context: int
    dp: int
    version: Version
    attention: Attention


def resolve(given: Mapping[str, Any], at: Situation) -> Batch:
    """Only what was left out is filled in and clamped.

    Args:
        given: Checked options.
        at: What the defaults depend on.

    Raises:
        EngineRefusesError: more requests than batched tokens.
    """
    v0 = defaults.is_v0(at.version, given.get("use_v1"))
    usual = _of_v0(given, at) if v0 else _of_v1(given, at)
    clamps_tokens = defaults.V0_TOKENS_WITHIN_MODEL if v0 else defaults.TOKENS_WITHIN_MODEL
    seqs = given.get("max_num_seqs", usual.seqs)
    tokens = given.get("max_num_batched_tokens")
    if tokens is None:
        tokens = usual.tokens
        if clamps_tokens.holds(at.version):
            tokens = min(tokens, seqs * at.context)
    if "max_num_seqs" not in given and not v0 and defaults.SEQS_WITHIN_TOKENS.holds(at.version):
        seqs = min(seqs, tokens)
    if seqs > tokens:
        raise EngineRefusesError(
            f"vLLM refuses max_num_seqs ({seqs:,}) above max_num_batched_tokens ({tokens:,}).",
            hint=f"Raise max_num_batched_tokens to {seqs:,}, or lower max_num_seqs.",
        )
    return Batch(tokens, seqs)


def _of_v1(given: Mapping[str, Any], at: Situation) -> Batch:
    usual = defaults.batch(
        at.gpu, at.total_bytes, version=at.version, entry=given.get("usage_context", "serve")
    )
    tokens, seqs = usual.tokens, usual.seqs
    if defaults.BATCHED_DATA_PARALLEL.holds(at.version) and _batched_experts(given, at):
        tokens = defaults.BATCHED_DP_TOKENS
    if given.get("performance_mode") == "throughput" and defaults.THROUGHPUT_DOUBLES.holds(
        at.version
    ):
        tokens, seqs = 2 * tokens, 2 * seqs
    if not _chunks(given, at):
        tokens = max(tokens, at.context)
    return Batch(tokens, seqs)


def _chunks(given: Mapping[str, Any], at: Situation) -> bool:
    if not defaults.CHUNKING_CAN_BE_OFF.holds(at.version):
        return True
    usual = defaults.chunks_prefills(at.attention, at.context, v0=False)
    return bool(given.get("enable_chunked_prefill", usual))


def _batched_experts(given: Mapping[str, Any], at: Situation) -> bool:
    return (
        at.dp > 1
        and given.get("enable_expert_parallel", False)
        and given.get("all2all_backend") in defaults.BATCHED_ALL2ALL
    )


def _of_v0(given: Mapping[str, Any], at: Situation) -> Batch:
    """V0: one figure for every device and entry point.

    Source: vLLM 0.6.6, vllm/config.py, SchedulerConfig.__post_init__.
    """
    chunks = given.get("enable_chunked_prefill")
    if chunks is None:
        chunks = defaults.chunks_prefills(at.attention, at.context, v0=True)
    tokens = defaults.V0_TOKENS if chunks else max(at.context, defaults.V0_TOKENS)
    return Batch(tokens, defaults.V0_SEQS)
