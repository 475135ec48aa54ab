"""Flash attention of CUDA builds: for which types of the cache there are kernels.

A build has kernels for a few types unless it was made with ``GGML_CUDA_FA_ALL_QUANTS``, which is
off by default. Left to itself (``-fa auto``) llama-server turns flash attention off where its
operation would land on another device than the layer's cache; ``-fa on`` lets the host compute it.
Sizes of heads that have no kernel either are not looked at.

Source: ggml-org/llama.cpp@00a2d6092 ggml/src/ggml-cuda/fattn.cu
``ggml_cuda_get_best_fattn_kernel``, src/llama-context.cpp ``sched_reserve``;
ggml-org/llama.cpp#24485, ggml-org/llama.cpp#28456.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kvplan.engines.llamacpp.devices import Machine
from kvplan.engines.llamacpp.settings import Settings
from kvplan.models.ggml_types import GGML_TYPES
from kvplan.plan import Reason

_ALIKE = ("f32", "f16", "bf16", "q8_0", "q4_0")
_UNLIKE = (("q8_0", "q4_0"),)
_ALL = "a build with GGML_CUDA_FA_ALL_QUANTS=ON"
_CODE = "flash_attention_by_build"


def settle(settings: Settings, machine: Machine) -> Settings:
    """The settings with flash attention as llama-server of a default build chooses it.

    What was given stays. A quantized V needs it: then it stays on, and `remarks` says that a
    default build does not start.
    """
    if "flash_attn" not in settings.assumed or not _lacks_kernels(settings, machine):
        return settings
    return replace(settings, flash_attn=_is_quantized(settings.cache_type_v))


def remarks(settings: Settings, machine: Machine) -> Iterator[Reason]:
    """What a default build makes of the cache's types."""
    if not _lacks_kernels(settings, machine):
        return
    types = f"K in {settings.cache_type_k} and V in {settings.cache_type_v}"
    hint = f"Use one type for both, such as q8_0 with q8_0, or {_ALL}."
    if "flash_attn" not in settings.assumed:
        if settings.flash_attn:
            message = (
                f"A default CUDA build has no flash attention for {types}: with -fa on the host "
                "computes it, which is slow."
            )
            yield Reason(code=_CODE, message=message, hint=hint)
    elif settings.flash_attn:
        message = (
            f"Planned for {_ALL}: a default one has no flash attention for {types}, and does not "
            "start with a quantized V without it."
        )
        yield Reason(code=_CODE, message=message, hint="Use q8_0 or q4_0 for both otherwise.")
    else:
        message = (
            f"A default CUDA build has no flash attention for {types} and turns it off, so that "
            "compute buffers hold the scores of attention."
        )
        hint = f"Use one type for both, or {_ALL} and -o flash_attn=on."
        yield Reason(code=_CODE, message=message, hint=hint)


def _lacks_kernels(settings: Settings, machine: Machine) -> bool:
    """Whether NVIDIA GPUs hold a cache of types that a default build has no kernels for."""
    pair = settings.cache_type_k, settings.cache_type_v
    there = pair in _UNLIKE or (pair[0] == pair[1] and pair[0] in _ALIKE)
    on_gpus = settings.n_gpu_layers != 0 and not settings.no_kv_offload
    return not there and on_gpus and any(gpu.cuda for gpu in machine.gpus)


def _is_quantized(cache_type: str) -> bool:
    return GGML_TYPES[cache_type].block > 1
