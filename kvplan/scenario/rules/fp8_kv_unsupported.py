"""KV108: an 8-bit floating-point cache where the GPU or the backend has no such type."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.scenario.rules.base import Hit, Rule, Shown

# FP8 tensor cores came with compute capability 8.9 (Ada) and 9.0 (Hopper).
# Source: https://nvidia.github.io/TransformerEngine/support_matrix.html
_FIRST = (8, 9)


def _check(shown: Shown) -> Iterator[Hit]:
    plan, gpu = shown.plan, shown.gpu
    kv_dtype = shown.question.kv_dtype
    if kv_dtype == "auto" and plan is not None and plan.kv is not None:
        kv_dtype = plan.kv.dtype  # a checkpoint may bring its own
    if not kv_dtype.startswith("fp8"):
        return
    path = ("kv_dtype",)
    if plan is not None and plan.verdict == "refused" and plan.reasons:
        reason = plan.reasons[0]
        if reason.code == "engine_refuses" and "cache" in reason.message.lower():
            yield Hit(
                f"{reason.message.rstrip('.')}.", "Write kv_dtype: auto, or another GPU.", path
            )
            return
    if gpu is not None and gpu.sm is not None and gpu.sm < _FIRST:
        yield Hit(
            f"{gpu.id} (compute capability {gpu.compute_capability}) has no FP8 units: each read of"
            " the cache is converted first, if the backend can do it at all.",
            "Write kv_dtype: auto (or int8 where the engine has it), or take an Ada or newer GPU.",
            path,
        )


RULE = Rule(
    "KV108",
    "fp8-kv-unsupported",
    "warning",
    "An FP8 cache on a GPU or backend without FP8.",
    _check,
)
