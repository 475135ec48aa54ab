"""llama.cpp's option names and types: what is sized, what is only noted, what is refused.

Names are those of llama_context_params and llama_model_params (include/llama.h); the flags of
llama-server (common/arg.cpp) are aliases. All at ggml-org/llama.cpp@0c1e57098.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from kvplan.engines.llamacpp import values
from kvplan.errors import NotModelledError, UnknownNameError, UsageError, nearest, shown

READERS: Mapping[str, Callable[[str, Any], Any]] = MappingProxyType(
    {
        "n_ctx": values.tokens,
        "n_seq_max": values.count,
        "kv_unified": values.flag,
        "cache_type_k": values.cache_type,
        "cache_type_v": values.cache_type,
        "flash_attn": values.attention,
        "swa_full": values.flag,
        "n_batch": values.count,
        "n_ubatch": values.amount,
        "n_gpu_layers": values.layers,
        "tensor_split": values.proportions,
        "n_outputs_max": values.amount,
        "n_rs_seq": values.amount,
        "no_kv_offload": values.flag,
        "fit_target": values.amount,
        "cpu_moe": values.flag,
        "n_cpu_moe": values.amount,
        "model_draft": values.word,
        "spec_type": values.word,
        "spec_draft_n_max": values.count,
        "cache_type_k_draft": values.cache_type,
        "cache_type_v_draft": values.cache_type,
        "cache_ram": values.amount,
        "ctx_checkpoints": values.amount,
    }
)
"""What `settings.Settings` holds, by name; the order is that of reports."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "c": "n_ctx",
        "ctx_size": "n_ctx",
        "np": "n_seq_max",
        "parallel": "n_seq_max",
        "n_parallel": "n_seq_max",
        "kvu": "kv_unified",
        "ctk": "cache_type_k",
        "ctv": "cache_type_v",
        "type_k": "cache_type_k",
        "type_v": "cache_type_v",
        "fa": "flash_attn",
        "b": "n_batch",
        "batch_size": "n_batch",
        "ub": "n_ubatch",
        "ubatch_size": "n_ubatch",
        "ngl": "n_gpu_layers",
        "gpu_layers": "n_gpu_layers",
        "ts": "tensor_split",
        "nkvo": "no_kv_offload",
        "fitt": "fit_target",
        "cmoe": "cpu_moe",
        "ncmoe": "n_cpu_moe",
        "md": "model_draft",
        "spec_draft_model": "model_draft",
        "ctkd": "cache_type_k_draft",
        "ctvd": "cache_type_v_draft",
        "spec_draft_type_k": "cache_type_k_draft",
        "spec_draft_type_v": "cache_type_v_draft",
        "cram": "cache_ram",
        "ctxcp": "ctx_checkpoints",
    }
)
# Flags that turn off what an option turns on.
_NEGATED = MappingProxyType(
    {"offload_kqv": "no_kv_offload", "kv_offload": "no_kv_offload", "no_kv_unified": "kv_unified"}
)
# Taken and named to the reader, but no byte of a device depends on them: they bound host memory.
UNSIZED = ("cache_ram", "ctx_checkpoints")
# llama.cpp has these, kvplan does not size what they do: refused rather than ignored.
_NOT_YET = (
    "split_mode",
    "override_tensor",
    "n_cpu_ffn",
    "main_gpu",
    "device",
    "lora",
    "mmproj",
    "kv_unified_per_slot",
    "embedding",
    "rpc",
)
# As they are by default, they ask for nothing.
_DEFAULTS: Mapping[str, Any] = MappingProxyType({"split_mode": "layer", "main_gpu": 0})
_ARGUMENTS = MappingProxyType({"model": "the first argument", "m": "the first argument"})


def read_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Checks names and types; names come back as llama.cpp's own.

    Raises:
        UnknownNameError: llama.cpp has no such option; the nearest name is the hint.
        UsageError: a value of the wrong type or out of range, or a name given twice.
        NotModelledError: an option of llama.cpp's that kvplan does not size yet.
    """
    read: dict[str, Any] = {}
    for written, value in options.items():
        name = written.strip().lstrip("-").replace("-", "_")
        own = ALIASES.get(name, _NEGATED.get(name, name))
        if own in read:
            raise UsageError(f"{own} is given twice.", hint="Keep one of the two.")
        if own in READERS:
            given = READERS[own](name, value)
            read[own] = not given if name in _NEGATED else given
        else:
            _refuse(name, value)
    return read


def unsized(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Of checked options, those that no device's bytes depend on."""
    return tuple(name for name in UNSIZED if name in given)


def _refuse(name: str, value: Any) -> None:
    if name in _ARGUMENTS:
        raise UsageError(f"{name} is not set with -o.", hint=f"Use {_ARGUMENTS[name]}.")
    if name not in _NOT_YET:
        known = (*READERS, *ALIASES, *_NEGATED, *_NOT_YET)
        raise UnknownNameError(
            f"llama.cpp has no option {shown(name)} that kvplan knows.",
            hint=nearest(name, known) or f"It knows {', '.join(READERS)}.",
        )
    if name not in _DEFAULTS or value != _DEFAULTS[name]:
        raise NotModelledError(
            f"kvplan does not size llama.cpp's {name} yet.", hint="Leave it out to plan without it."
        )
