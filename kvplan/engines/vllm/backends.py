"""Which attention backend vLLM picks, and the block size that follows from it.

Only what changes a size is told apart. Read from 0.33.0's selector for compute capability 8.9,
9.0 and 10.0; other devices take the nearest older row, and the plan says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.vllm.kv_dtypes import FP8_NAMES, PER_TOKEN_HEAD
from kvplan.errors import EngineRefusesError

CHECKED = ((8, 9), (9, 0), (10, 0))
DEFAULT_BLOCK = 16


@dataclass(frozen=True, slots=True)
class Backend:
    """A backend's name and the block sizes that it takes: multiples of ``base``."""

    name: str
    base: int


def attention_backend(kv_dtype: str, sm: tuple[int, int]) -> Backend:
    """For regular attention. Every one of them takes blocks of 16 tokens.

    Raises:
        EngineRefusesError: no backend of this device has the cache type.
    """
    if kv_dtype == "nvfp4" and sm < (10, 0):
        raise EngineRefusesError(
            f"vLLM has no backend for an nvfp4 cache on compute capability {sm[0]}.{sm[1]}.",
            hint="nvfp4 needs Blackwell (10.0); use fp8 here.",
        )
    if kv_dtype in PER_TOKEN_HEAD:
        return Backend("TRITON_ATTN", DEFAULT_BLOCK)
    if sm >= (10, 0):
        return Backend("FLASHINFER", DEFAULT_BLOCK)
    plain = kv_dtype not in FP8_NAMES
    flash = plain or (sm >= (9, 0) and kv_dtype != "fp8_e5m2")
    return Backend("FLASH_ATTN" if flash else "FLASHINFER", DEFAULT_BLOCK)


def latent_backend(kv_dtype: str, sm: tuple[int, int], *, sparse: bool) -> Backend:
    """For MLA, with (``sparse``) or without an indexer.

    Raises:
        EngineRefusesError: no backend of this device has the cache type, or sparse MLA.
    """
    if kv_dtype in PER_TOKEN_HEAD or kv_dtype in ("fp8_e5m2", "nvfp4"):
        raise EngineRefusesError(
            f"vLLM has no MLA backend for a {kv_dtype} cache.", hint="Use auto or fp8."
        )
    if sparse:
        if sm < (9, 0):
            raise EngineRefusesError(
                "vLLM has no sparse-MLA backend below compute capability 9.0.",
                hint="Use a Hopper or Blackwell GPU.",
            )
        return Backend("MLA_SPARSE", 64)
    if sm >= (10, 0):
        return Backend("FLASHINFER_MLA", 32)
    if sm < (9, 0):
        return Backend("TRITON_MLA", 16)
    return Backend("FLASHMLA", 64) if kv_dtype in FP8_NAMES else Backend("FLASH_ATTN_MLA", 16)


def block_size(backend: Backend, asked: int | None) -> int:
    """Tokens a block: the user's if the backend takes it, else 16 or the backend's smallest.

    Raises:
        EngineRefusesError: the backend does not take the asked size.
    """
    if asked is None:
        return max(DEFAULT_BLOCK, backend.base)
    if asked < 1 or asked % backend.base:
        raise EngineRefusesError(
            f"{backend.name} takes blocks in multiples of {backend.base} tokens, not {asked}.",
            hint=f"Use -o block_size={backend.base} or leave it out.",
        )
    return asked
