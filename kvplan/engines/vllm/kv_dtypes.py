"""vLLM's KV cache types: the string a user writes → how a cell is stored.

Cell layouts: vllm/v1/kv_cache_interface.py and the attention backends of 0.33.0.
"""

from __future__ import annotations

from kvplan.errors import EngineRefusesError, NotModelledError, UnknownNameError, nearest, shown
from kvplan.models.formats import DTYPE_BYTES, FP8_KV, Dtype, KvFormat, plain_kv

_SOURCE = "vLLM 0.33.0, vllm/v1/kv_cache_interface.py"

FP8_NAMES = ("fp8", "fp8_e4m3", "fp8_e5m2")
PER_TOKEN_HEAD: dict[str, KvFormat] = {
    name: KvFormat(
        name=name, bits_k=bits, bits_v=bits, scale_bytes_k=4, scale_bytes_v=4, source=_SOURCE
    )
    for name, bits in (
        ("int8_per_token_head", 8),
        ("fp8_per_token_head", 8),
        ("int4_per_token_head", 4),
    )
}
_NVFP4 = KvFormat(name="nvfp4", bits_k=4, bits_v=4, scale_block=16, source=_SOURCE)
_LATER = (
    "turboquant_k8v4",
    "turboquant_4bit_nc",
    "turboquant_k3v4_nc",
    "turboquant_3bit_nc",
    "nvfp4_4over6",
    "fp8_ds_mla",
    "nvfp4_ds_mla",
)
_PLAIN = tuple(DTYPE_BYTES)
KNOWN = ("auto", *_PLAIN, *FP8_NAMES, *PER_TOKEN_HEAD, "nvfp4", *_LATER)


def resolve(kv_dtype: str, dtype: Dtype, checkpoint_scheme: str | None) -> tuple[str, KvFormat]:
    """The cache type in force and its format.

    Under ``auto`` a checkpoint's own scheme decides (0.14 and later; kvplan applies it to all).

    Raises:
        UnknownNameError: vLLM has no such type.
        EngineRefusesError: a plain type that differs from the model's.
        NotModelledError: a type of vLLM's that kvplan does not size yet.
    """
    if kv_dtype == "auto" and checkpoint_scheme is not None:
        kv_dtype = checkpoint_scheme
    if kv_dtype == "auto":
        return dtype, plain_kv(dtype)
    if kv_dtype in FP8_NAMES:
        return kv_dtype, FP8_KV
    if kv_dtype in PER_TOKEN_HEAD:
        return kv_dtype, PER_TOKEN_HEAD[kv_dtype]
    if kv_dtype == "nvfp4":
        return kv_dtype, _NVFP4
    if kv_dtype in _PLAIN:
        if kv_dtype != dtype:
            raise EngineRefusesError(
                f"vLLM refuses a {kv_dtype} cache for a model that computes in {dtype}.",
                hint="Leave --kv-dtype at auto, or use fp8.",
            )
        return kv_dtype, plain_kv(dtype)
    if kv_dtype in _LATER:
        raise NotModelledError(
            f"kvplan does not size vLLM's {kv_dtype} cache yet.", hint="Use auto or fp8."
        )
    raise UnknownNameError(
        f"vLLM has no KV cache type {shown(kv_dtype)}.",
        hint=nearest(kv_dtype, KNOWN) or f"It has {', '.join(KNOWN[:7])} and others.",
    )
