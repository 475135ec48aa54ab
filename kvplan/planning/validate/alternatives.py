"""What a record leaves out and would explain its figures: one flag at a time, tried in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from kvplan.errors import KvplanError
from kvplan.measurement import Measurement
from kvplan.planning.validate.lacking import LackingError, extra
from kvplan.planning.validate.match import Start

# Flags that change blocks or tokens, with the values that are in use.
_FLAGS: tuple[tuple[str, Any], ...] = (
    ("enable_prefix_caching", False),
    ("enable_prefix_caching", True),
    ("disable_hybrid_kv_cache_manager", True),
    ("kv_cache_dtype", "bfloat16"),
    ("kv_cache_dtype", "fp8"),
    ("block_size", 32),
    ("block_size", 64),
    ("block_size", 128),
    ("max_num_batched_tokens", 2048),
    ("max_num_batched_tokens", 8192),
    ("max_num_batched_tokens", 16384),
)
# Where no GPU is named: a card of each other generation, as CUDA numbers them.
_CAPABILITIES = ("8.0", "8.9", "10.0", "12.0")


def explanation(start: Start, agrees: Callable[[Start], bool]) -> str | None:
    """The first flag that makes the start agree, in words; None if none does.

    Args:
        start: A start whose figures are not what was logged.
        agrees: Whether a start's figures are.
    """
    for words, other in _others(start):
        try:
            if agrees(other):
                return words
        except (KvplanError, LackingError):
            continue
    return None


def _others(start: Start) -> Iterator[tuple[str, Start]]:
    for name, value in _FLAGS:
        if not _is_stated(start.record, name):
            yield (
                f"{name}={str(value).lower()}",
                replace(start, record=_with(start.record, name, value)),
            )
    if not start.gpu_stated:
        for capability in _CAPABILITIES:
            gpu = start.gpu.model_copy(update={"compute_capability": capability})
            yield f"a GPU of compute capability {capability}", replace(start, gpu=gpu)


def _is_stated(record: Measurement, name: str) -> bool:
    if extra(record, f"{name}_assumed"):
        return False
    return record.model_dump().get(name) not in (None, "auto")


def _with(record: Measurement, name: str, value: Any) -> Measurement:
    return Measurement.model_validate({**record.model_dump(), name: value})
