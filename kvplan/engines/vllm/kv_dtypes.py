"""vLLM's KV cache types: the string a user writes → how a cell is stored.

Cell layouts: vllm/v1/kv_cache_interface.py and the attention backends of 0.33.0.
"""

from __future__ import annotations

from kvplan.engines.base import Version, parse_version
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
NVFP4_NAMES = ("nvfp4", "nvfp4_4over6")
_TURBOQUANT_SOURCE = (
    "vLLM 0.33.0, vllm/model_executor/layers/quantization/turboquant/config.py: packed keys with a"
    " norm, packed values with scale and zero point"
)
TURBOQUANT: dict[str, KvFormat] = {
    name: KvFormat(
        name=name,
        bits_k=key_bits,
        bits_v=value_bits,
        scale_bytes_k=0 if key_bits == 8 else 2,
        scale_bytes_v=4,
        even=True,
        source=_TURBOQUANT_SOURCE,
    )
    for name, key_bits, value_bits in (
        ("turboquant_k8v4", 8, 4),
        ("turboquant_4bit_nc", 4, 4),
        ("turboquant_k3v4_nc", 3, 4),
        ("turboquant_3bit_nc", 3, 3),
    )
}
# Cells of sparse MLA that kernels prescribe as a whole: 512 fp8 + 16 bytes of scales + 64 bf16 for
# rope, and its FP4 sibling. Source: vLLM 0.33.0, vllm/model_executor/layers/attention/
# mla_attention.py get_kv_cache_spec.
SPARSE_CELLS: dict[str, int] = {"fp8_ds_mla": 656, "nvfp4_ds_mla": 352}
_FORMATS: dict[str, KvFormat] = {
    **dict.fromkeys(FP8_NAMES, FP8_KV),
    **PER_TOKEN_HEAD,
    **dict.fromkeys(NVFP4_NAMES, _NVFP4),
    **TURBOQUANT,
    # The cell is a whole; the format only says that it is quantized.
    **dict.fromkeys(SPARSE_CELLS, FP8_KV),
}
_PLAIN = tuple(DTYPE_BYTES)
# ROCm's and experimental types, whose cells no reference case covers.
_LATER = ("ultraquant_4bit", "octave_k3v4", "octave_k3v3", "octave_k3v3_compact")
KNOWN = ("auto", *_PLAIN, *FP8_NAMES, *PER_TOKEN_HEAD, *NVFP4_NAMES, *TURBOQUANT, *SPARSE_CELLS)
# The release that first takes a type; the others are older than any modelled. Source: the choices
# of --kv-cache-dtype (vllm/config.py, later vllm/config/cache.py: CacheDType) of one wheel of every
# minor release from 0.6 to 0.33 but 0.15.
_SINCE: dict[str, Version] = {
    "bfloat16": (0, 11),
    "fp8_ds_mla": (0, 11, 1),
    "float16": (0, 18),
    "int8_per_token_head": (0, 20),
    "fp8_per_token_head": (0, 20),
    "nvfp4": (0, 20),
    **dict.fromkeys(TURBOQUANT, (0, 20)),
    "int4_per_token_head": (0, 25),
    "nvfp4_4over6": (0, 28),
    "nvfp4_ds_mla": (0, 30),
}


def check_release(kv_dtype: str, version: str) -> None:
    """Refuses a type that the release does not take yet.

    Raises:
        EngineRefusesError: a later release brought it.
    """
    since = _SINCE.get(kv_dtype, ())
    if parse_version(version) < since:
        first = ".".join(map(str, since))
        raise EngineRefusesError(
            f"vLLM {version} has no {kv_dtype} cache; {first} brought it.",
            hint=f"Leave --kv-dtype at auto, or plan for vllm=={first} or later.",
        )


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
    if kv_dtype in _FORMATS:
        return kv_dtype, _FORMATS[kv_dtype]
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
