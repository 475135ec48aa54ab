"""NVIDIA ModelOpt: FP8 and NVFP4, described by hf_quant_config.json or by config.json."""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.quantization.fp8 import per_channel, per_tensor
from kvplan.architectures.quantization.modules import Modules
from kvplan.architectures.quantization.nvfp4 import nvfp4_format
from kvplan.architectures.quantization.scheme import Quantized, with_format, without
from kvplan.errors import NotModelledError
from kvplan.models.formats import NumberFormat

_KV_ALGORITHMS = {"fp8": "fp8", "nvfp4": "nvfp4"}


def modelopt(settings: Fields, weights: Weights) -> Quantized:
    """Either form: the settings themselves or their ``quantization`` part.

    Raises:
        NotModelledError: an algorithm other than FP8 and NVFP4, mixed precision included.
    """
    settings = settings.section("quantization") or settings
    algorithm = (settings.optional_text("quant_algo") or "").upper()
    ignored = settings.texts("exclude_modules") or settings.texts("ignore") or ()
    number_format = _format(settings, algorithm)
    return Quantized(
        name=f"modelopt {algorithm.lower()}",
        weights=with_format(weights, number_format, without(Modules(ignored))),
        kv_scheme=_kv_scheme(settings),
    )


def _format(settings: Fields, algorithm: str) -> NumberFormat:
    if algorithm == "FP8":
        return per_tensor(static=True)
    if algorithm == "FP8_PER_CHANNEL_PER_TOKEN":
        return per_channel()
    if algorithm == "NVFP4":
        return nvfp4_format(settings.integer("group_size", default=16, most=2**20))
    raise NotModelledError(
        f"ModelOpt's algorithm {algorithm[:40]!r} is not modelled yet.",
        hint="FP8, FP8_PER_CHANNEL_PER_TOKEN and NVFP4 are.",
    )


def _kv_scheme(settings: Fields) -> str | None:
    # The order and the cases are vLLM's: v0.33.0 vllm/utils/torch_utils.py
    # get_kv_cache_quant_algo_string; what it does not know leaves the cache as it is.
    stated = settings.raw("kv_cache_scheme") or settings.raw("kv_cache_quant_algo")
    if isinstance(stated, str):
        return _KV_ALGORITHMS.get(stated.lower())
    if not isinstance(stated, dict) or stated.get("type") != "float":
        return None
    if stated.get("num_bits") == 8 and stated.get("dynamic") is False:
        return "fp8"
    return "nvfp4" if stated.get("num_bits") == 4 else None
