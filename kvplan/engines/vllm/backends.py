"""Which attention backend vLLM picks, and the block sizes that follow from it.

Only what changes a size is told apart. Read from 0.33.0's selector for compute capability 8.9,
9.0 and 10.0; 7.5, 8.0, 8.6, 12.0 and 12.1 take the nearest older row, which the logged blocks of
public starts bear out (`kvplan validate`). Others take it too, and the plan says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.vllm.kv_dtypes import (
    FP8_NAMES,
    NVFP4_NAMES,
    PER_TOKEN_HEAD,
    SPARSE_CELLS,
    TURBOQUANT,
)
from kvplan.errors import EngineRefusesError

CHECKED = ((7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0), (12, 1))
DEFAULT_BLOCK = 16
HOPPER, BLACKWELL = (9, 0), (10, 0)
# FlashAttention 4's FP8 kernel for this head size has pages of 64 tokens on Hopper
# (vllm/v1/attention/backends/flash_attn.py, _get_sm90_fa4_fp8_kv_block_size).
_WIDE_HEAD, _WIDE_FP8_BLOCK = 512, 64


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend's name and the block sizes that it takes.

    Attributes:
        base: The smallest; all its multiples are taken.
        sizes: Those its kernels run unsplit, if not every multiple.
    """

    name: str
    base: int
    sizes: tuple[int, ...] = ()

    def largest_within(self, tokens: int) -> int:
        """The largest kernel block of at most ``tokens``, else the smallest there is.

        Source: _largest_kernel_block_within in vllm/model_executor/layers/attention/attention.py.
        """
        if not self.sizes:
            return max(self.base, tokens // self.base * self.base)
        return max((size for size in self.sizes if size <= tokens), default=min(self.sizes))


_TRITON = Backend("TRITON_ATTN", DEFAULT_BLOCK)
_FLASH = Backend("FLASH_ATTN", DEFAULT_BLOCK)
# On Intel's devices: multiples of 64 (flash_attn.py, get_supported_kernel_block_sizes).
_FLASH_INTEL = Backend("FLASH_ATTN", 64)
_FLASH_WIDE_FP8 = Backend("FLASH_ATTN", _WIDE_FP8_BLOCK, (_WIDE_FP8_BLOCK,))
_FLASHINFER = Backend("FLASHINFER", DEFAULT_BLOCK, (16, 32, 64))
_FLASHINFER_LARGE = Backend("FLASHINFER", DEFAULT_BLOCK, (16, 32, 64, 128, 256, 512, 1024))
TURBOQUANT_BACKEND = Backend("TURBOQUANT", DEFAULT_BLOCK, (16, 32, 64, 128))
# DeepSeek-V4's kernels prescribe the blocks of each of its caches.
COMPRESSED = Backend("FLASHMLA_SPARSE_DSV4", 256, (256,))


def attention_backend(
    kv_dtype: str,
    sm: tuple[int, int],
    *,
    head_dim: int = 0,
    grouped: bool = True,
    intel: bool = False,
) -> Backend:
    """For regular attention.

    Args:
        kv_dtype: The cache type in force.
        sm: Compute capability of the device.
        head_dim: Elements of a key.
        grouped: Whether several query heads share a KV head.
        intel: Whether the device is one of Intel's.

    Raises:
        EngineRefusesError: no backend of this device has the cache type.
    """
    _check_type(kv_dtype, sm)
    if intel:
        return _FLASH_INTEL
    if kv_dtype in TURBOQUANT:
        return TURBOQUANT_BACKEND
    if kv_dtype in PER_TOKEN_HEAD:
        return _TRITON
    if sm >= BLACKWELL:
        return _FLASHINFER_LARGE if grouped and sm[0] == BLACKWELL[0] else _FLASHINFER
    return _before_blackwell(kv_dtype, sm, head_dim)


def _before_blackwell(kv_dtype: str, sm: tuple[int, int], head_dim: int) -> Backend:
    if kv_dtype not in FP8_NAMES:
        return _FLASH
    if sm < HOPPER or kv_dtype == "fp8_e5m2":
        return _FLASHINFER
    return _FLASH_WIDE_FP8 if head_dim == _WIDE_HEAD else _FLASH


def _check_type(kv_dtype: str, sm: tuple[int, int]) -> None:
    if kv_dtype in SPARSE_CELLS:
        raise EngineRefusesError(
            f"vLLM has {kv_dtype} for sparse MLA alone.", hint="Use --kv-dtype auto or fp8."
        )
    if kv_dtype in NVFP4_NAMES and sm < BLACKWELL:
        raise EngineRefusesError(
            f"vLLM has no backend for an {kv_dtype} cache on compute capability {sm[0]}.{sm[1]}.",
            hint=f"{kv_dtype} needs Blackwell (10.0); use fp8 here.",
        )


def check_turboquant(kind: str) -> None:
    """TurboQuant's kernels know full attention alone.

    Raises:
        EngineRefusesError: another kind of layer.
    """
    if kind != "full":
        raise EngineRefusesError(
            f"vLLM has no TurboQuant backend for {kind} attention.",
            hint="Use --kv-dtype auto or fp8.",
        )


def latent_backend(kv_dtype: str, sm: tuple[int, int], *, sparse: bool) -> Backend:
    """For MLA, with (``sparse``) or without an indexer.

    Raises:
        EngineRefusesError: no backend of this device has the cache type, or sparse MLA.
    """
    if kv_dtype in (*PER_TOKEN_HEAD, *NVFP4_NAMES, *TURBOQUANT, "fp8_e5m2"):
        raise EngineRefusesError(
            f"vLLM has no MLA backend for a {kv_dtype} cache.", hint="Use auto or fp8."
        )
    if sparse:
        return _sparse_backend(kv_dtype, sm)
    if kv_dtype in SPARSE_CELLS:
        raise EngineRefusesError(
            f"vLLM has {kv_dtype} for sparse MLA alone.", hint="Use --kv-dtype auto or fp8."
        )
    if sm >= BLACKWELL:
        return Backend("FLASHINFER_MLA", 32, (32, 64))
    if sm < HOPPER:
        return Backend("TRITON_MLA", DEFAULT_BLOCK)
    if kv_dtype in FP8_NAMES:
        return Backend("FLASHMLA", 64, (64,))
    return Backend("FLASH_ATTN_MLA", DEFAULT_BLOCK)


def _sparse_backend(kv_dtype: str, sm: tuple[int, int]) -> Backend:
    if sm < HOPPER:
        raise EngineRefusesError(
            "vLLM has no sparse-MLA backend below compute capability 9.0.",
            hint="Use a Hopper or Blackwell GPU.",
        )
    if kv_dtype == "nvfp4_ds_mla" and sm < BLACKWELL:
        raise EngineRefusesError(
            "vLLM has no backend for an nvfp4_ds_mla cache before Blackwell.",
            hint="Use --kv-dtype fp8.",
        )
    return Backend("MLA_SPARSE", 64, (64,))
