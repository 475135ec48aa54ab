"""Recurrent states in SGLang: bytes on a rank, and the slots that a request takes.

Sources: SGLang 0.5.23, sglang/srt/configs/mamba_utils.py (shapes and types),
sglang/srt/mem_cache/kv_cache_configurator.py _calculate_mamba_ratio (slots).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.caches import RecurrentCache, StateTensor
from kvplan.models.formats import DTYPE_BYTES, Dtype

# SGLANG_MAMBA_CONV_DTYPE: whatever the model runs in.
_INPUT_TYPE: Dtype = "bfloat16"
_INPUTS = ("conv", "conv groups")
_GROUPS = "conv groups"
# Slots of a running request: itself, and two kept for the prefix cache.
SLOTS_WITH_CACHE = 3
# Classes that track states of a decode in additional slots (_MAMBA_EXTRA_BUFFER_ARCHS).
TRACKING = frozenset(
    {
        "KimiLinearForCausalLM",
        "Qwen3_5ForConditionalGeneration",
        "Qwen3_5MoeForConditionalGeneration",
        "Qwen3_5MoeForCausalLM",
        "Qwen3_5ForCausalLM",
        "Qwen3NextForCausalLM",
        "Qwen4ExpForConditionalGeneration",
        "InternS2PreviewForConditionalGeneration",
        "MiniCPMV4_6ForConditionalGeneration",
        "MiniCPMV4_7ForConditionalGeneration",
        "BailingMoeV2_5ForCausalLM",
        "BailingMoeV3ForCausalLM",
        "BailingMoeV3VLForConditionalGeneration",
        "FalconH1ForCausalLM",
        "GraniteMoeHybridForCausalLM",
        "Glm5NextForConditionalGeneration",
        "NemotronHForCausalLM",
        "NemotronHPuzzleForCausalLM",
        "NemotronH_Omni_Reasoning_V3",
        "KimiK3ForConditionalGeneration",
        "InklingForConditionalGeneration",
    }
)


def slot_bytes(caches: Iterable[RecurrentCache], *, tp: int, ssm_dtype: Dtype | None) -> int:
    """Bytes of one slot on one rank: the states of all layers.

    Args:
        caches: One a layer.
        tp: Ranks that split attention.
        ssm_dtype: mamba_ssm_dtype, or None: as the configuration says, else float32.

    Raises:
        EngineRefusesError: tensor parallelism does not divide the state.
        NotModelledError: SGLang keeps no such state.
    """
    return sum(_layer_bytes(cache, tp, ssm_dtype) for cache in caches)


def _layer_bytes(cache: RecurrentCache, tp: int, ssm_dtype: Dtype | None) -> int:
    if any(state.name == "shift" for state in cache.states):
        raise NotModelledError("SGLang keeps no states of RWKV.", hint="Use transformers.")
    return sum(_tensor_bytes(state, tp, ssm_dtype) for state in cache.states)


def _tensor_bytes(state: StateTensor, tp: int, ssm_dtype: Dtype | None) -> int:
    shape = list(state.shape)
    if state.split is not None:
        shape[state.split] = _split(state, shape[state.split], tp)
    dtype = _INPUT_TYPE if state.name in _INPUTS else ssm_dtype or state.dtype or "float32"
    return math.prod(shape) * DTYPE_BYTES[dtype]


def _split(state: StateTensor, count: int, tp: int) -> int:
    if count % tp == 0:
        return count // tp
    if state.name == _GROUPS:
        # Groups are repeated so that every rank has one for its heads.
        return 1
    raise EngineRefusesError(
        f"SGLang refuses --tp {tp}: it does not divide the {count} channels or heads of a "
        "recurrent state.",
        hint=f"Use --tp {_divisors(count)}.",
    )


def _divisors(number: int) -> str:
    return " or ".join(str(n) for n in (1, 2, 4, 8, 16) if number % n == 0)


def slots_per_request(
    architecture: str, *, cached: bool, tracked: bool, strategy: str, overlap: bool
) -> int:
    """Slots that one running request may take.

    Args:
        architecture: The model's class.
        cached: The prefix cache is on.
        tracked: The release tracks states where the class allows it.
        strategy: mamba_radix_cache_strategy.
        overlap: Batches overlap (not disable_overlap_schedule).
    """
    if not cached:
        return 1
    if strategy == "auto":
        allowed = tracked and overlap and architecture in TRACKING
        strategy = "extra_buffer" if allowed else "no_buffer"
    tracking = {"no_buffer": 0, "extra_buffer": 2 if overlap else 1, "extra_buffer_lazy": 1}
    return SLOTS_WITH_CACHE + tracking[strategy]
