"""The options in force: what was given, and what llama.cpp fills in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from kvplan.engines.llamacpp.options import read_options, unsized
from kvplan.engines.llamacpp.values import CACHE_TYPES
from kvplan.errors import UsageError, shown
from kvplan.units import MIB

# common/common.h: common_params.
N_BATCH, N_UBATCH, FIT_TARGET_MIB = 2048, 512, 1024
# src/llama-cparams.h.
MAX_SEQUENCES = 256
DRAFT_TOKENS = 3


@dataclass(frozen=True, slots=True)
class Settings:
    """Resolved options. None: not given, and the load or the model decides.

    Attributes:
        n_ctx: Cells of the whole process; 0: the model's own maximum.
        n_gpu_layers: A number, ``all``, or ``auto`` (what ``--fit`` chooses).
        tensor_split: Shares of the GPUs; empty: by free memory.
        fit_target: MiB that ``--fit`` leaves free on each GPU.
        n_cpu_moe: Layers, from the first, whose experts stay on the host.
        unsized: Options that were given and that no device's bytes depend on.
        assumed: Names of the options that kvplan filled in.
    """

    cache_type_k: str
    cache_type_v: str
    flash_attn: bool
    kv_unified: bool
    swa_full: bool
    n_batch: int
    n_ubatch: int
    n_gpu_layers: int | str
    no_kv_offload: bool
    fit_target: int
    assumed: tuple[str, ...]
    n_ctx: int | None = None
    n_seq_max: int | None = None
    tensor_split: tuple[float, ...] = ()
    n_outputs_max: int | None = None
    n_rs_seq: int | None = None
    cpu_moe: bool = False
    n_cpu_moe: int = 0
    model_draft: str | None = None
    spec_type: str | None = None
    spec_draft_n_max: int = DRAFT_TOKENS
    cache_type_k_draft: str = "f16"
    cache_type_v_draft: str = "f16"
    cache_ram: int | None = None
    ctx_checkpoints: int | None = None
    unsized: tuple[str, ...] = ()

    @property
    def fit_target_bytes(self) -> int:
        """Bytes that ``--fit`` leaves free on each GPU."""
        return self.fit_target * MIB

    @property
    def drafts(self) -> bool:
        """Whether tokens are drafted."""
        return self.model_draft is not None or self.spec_type is not None

    def as_options(self) -> dict[str, Any]:
        """Option names and values for people and JSON; what is unset is left out."""
        hidden = {"assumed", "unsized"}
        if not self.drafts:
            hidden |= {"spec_draft_n_max", "cache_type_k_draft", "cache_type_v_draft"}
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in hidden}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if value is not None and value != ()
        }


def resolve(options: Mapping[str, Any], kv_dtype: str) -> Settings:
    """Fills in what the user left out.

    Args:
        options: llama.cpp's own names and values.
        kv_dtype: The type of both halves of the cache, or ``auto``.

    Raises:
        UsageError, UnknownNameError, NotModelledError: see `options.read_options`.
    """
    given = read_options(options)
    if given.get("n_seq_max", 1) > MAX_SEQUENCES:
        raise UsageError(
            f"llama.cpp holds at most {MAX_SEQUENCES} sequences.",
            hint=f"Write -o n_seq_max={MAX_SEQUENCES}, and start several servers.",
        )
    cache = _cache_type(kv_dtype, given)
    filled: dict[str, Any] = {
        "cache_type_k": cache,
        "cache_type_v": cache,
        "flash_attn": True,
        "kv_unified": False,
        "swa_full": False,
        "n_batch": N_BATCH,
        "n_ubatch": N_UBATCH,
        "n_gpu_layers": "all",
        "no_kv_offload": False,
        "fit_target": FIT_TARGET_MIB,
    }
    if given.get("flash_attn", True) is None:
        del given["flash_attn"]
    return Settings(
        **(filled | given),
        unsized=unsized(given),
        assumed=tuple(name for name in filled if name not in given),
    )


def _cache_type(kv_dtype: str, given: Mapping[str, Any]) -> str:
    if kv_dtype == "auto":
        return "f16"
    if kv_dtype.casefold() not in CACHE_TYPES:
        raise UsageError(
            f"llama.cpp has no cache type {shown(kv_dtype)}.",
            hint=f"Use {', '.join(CACHE_TYPES)}.",
        )
    if "cache_type_k" in given or "cache_type_v" in given:
        raise UsageError(
            "The cache's type is given twice.",
            hint="Use --kv-dtype for both halves, or cache_type_k and cache_type_v.",
        )
    return kv_dtype.casefold()
