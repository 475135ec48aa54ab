"""NVIDIA ModelOpt: FP8, NVFP4 and mixes, described by hf_quant_config.json or by config.json."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.quantization.fp8 import per_block, per_channel, per_tensor
from kvplan.architectures.quantization.modules import Modules
from kvplan.architectures.quantization.mxfp8 import MXFP8
from kvplan.architectures.quantization.nvfp4 import nvfp4_format
from kvplan.architectures.quantization.scheme import (
    Quantized,
    by_name,
    quantizable_head,
    with_format,
    with_formats,
    without,
)
from kvplan.errors import NotModelledError
from kvplan.models.formats import NumberFormat

_KV_ALGORITHMS = {"fp8": "fp8", "nvfp4": "nvfp4"}


def modelopt(settings: Fields, weights: Weights) -> Quantized:
    """Either form: the settings themselves or their ``quantization`` part.

    Raises:
        NotModelledError: an algorithm that is not known.
    """
    settings = settings.section("quantization") or settings
    algorithm = (settings.optional_text("quant_algo") or "").upper()
    ignored = Modules(settings.texts("exclude_modules") or settings.texts("ignore") or ())
    if algorithm == "MIXED_PRECISION":
        weights = _mixed(settings, weights, ignored)
    else:
        weights = with_format(weights, _format(settings, algorithm), without(ignored))
    return Quantized(
        name=f"modelopt {algorithm.lower()}",
        weights=weights,
        kv_scheme=_kv_scheme(settings),
    )


def _mixed(settings: Fields, weights: Weights, ignored: Modules) -> Weights:
    """An algorithm for each module that is named; the others are left as they are."""
    layers = settings.section("quantized_layers")
    if layers is None:
        raise settings.error("quantized_layers", None, "an object")
    format_of = by_name(_by_layer(layers), lambda _module: None)
    return with_formats(
        weights,
        lambda module: None if ignored.cover(module) else format_of(module),
        quantizable_head,
    )


def _by_layer(layers: Fields) -> Iterator[tuple[str, NumberFormat]]:
    for name in layers.names():
        own = layers.section(name)
        if own is not None:
            yield name, _format(own, (own.optional_text("quant_algo") or "").upper())


def _format(settings: Fields, algorithm: str) -> NumberFormat:
    match algorithm:
        case "FP8":
            return per_tensor(static=True)
        case "FP8_PER_CHANNEL_PER_TOKEN":
            return per_channel()
        case "FP8_PB_WO" | "FP8_BLOCK_SCALES":
            block = settings.optional_integer("group_size", most=2**20) or 128
            return per_block(block, block)
        case "NVFP4" | "W4A16_NVFP4":
            group = settings.optional_integer("group_size", most=2**20) or 16
            return nvfp4_format(group, input_scale=algorithm == "NVFP4")
        case "MXFP8":
            return MXFP8
    raise NotModelledError(
        f"ModelOpt's algorithm {algorithm[:40]!r} is not modelled yet.",
        hint="FP8 (a scale a matrix, a row or a block), NVFP4 and MXFP8 are.",
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
