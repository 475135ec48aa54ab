"""Which function reads which quantization scheme: one literal table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.origin import TRANSFORMERS
from kvplan.architectures.quantization.auto_round import auto_round
from kvplan.architectures.quantization.awq import awq
from kvplan.architectures.quantization.bitsandbytes import bitsandbytes
from kvplan.architectures.quantization.compressed_tensors import compressed_tensors
from kvplan.architectures.quantization.fp8 import fbgemm_fp8, fp8
from kvplan.architectures.quantization.gptq import gptq
from kvplan.architectures.quantization.hqq import hqq
from kvplan.architectures.quantization.mlx import mlx
from kvplan.architectures.quantization.modelopt import modelopt
from kvplan.architectures.quantization.mxfp4 import mxfp4
from kvplan.architectures.quantization.scheme import Quantized
from kvplan.architectures.quantization.torchao import torchao
from kvplan.errors import NotModelledError

_DEFAULTS = f"transformers {TRANSFORMERS} src/transformers/utils/quantization_config.py"
_MODELOPT_DEFAULTS = "vLLM v0.33.0 vllm/model_executor/layers/quantization/modelopt.py"

SCHEMES: dict[str, Callable[[Fields, Weights], Quantized]] = {
    "auto-round": auto_round,
    "awq": awq,
    "bitsandbytes": bitsandbytes,
    "compressed-tensors": compressed_tensors,
    "fbgemm_fp8": fbgemm_fp8,
    "fp8": fp8,
    "gptq": gptq,
    "hqq": hqq,
    "mlx": mlx,
    "modelopt": modelopt,
    "modelopt_fp4": modelopt,
    "mxfp4": mxfp4,
    "torchao": torchao,
}
REFUSED: dict[str, str] = {
    "aqlm": "its codebooks have sizes of their own",
    "exl2": "the bits of each layer are in the tensors, not in the configuration",
    "exl3": "the bits of each layer are in the tensors, not in the configuration",
    "quanto": "transformers does not save such checkpoints; it quantizes while it loads",
    "quark": "its settings may differ by layer and tensor in forms that were not read",
    "vptq": "its codebooks have sizes of their own",
}
"""Schemes that are known and not modelled, and why."""


def apply_quantization(
    config: Fields,
    hf_quant_config: Mapping[str, Any] | None,
    weights: Weights,
    *,
    measured: bool = False,
) -> Quantized:
    """Reads whatever quantization a checkpoint states, and applies it to its weights.

    Args:
        config: The model's configuration.
        hf_quant_config: ModelOpt's file beside it, or None.
        weights: The inventory in the model's own type.
        measured: Sizes will be read from the files' headers, so a scheme need not be modelled.

    Raises:
        NotModelledError: a scheme that is not in the table.
        InputError: a scheme whose settings make no sense.
    """
    settings = _settings(config)
    if hf_quant_config is not None and (settings is None or _is_modelopt(settings)):
        beside = Fields(hf_quant_config, where="hf_quant_config.json", source=_MODELOPT_DEFAULTS)
        return modelopt(beside, weights)
    if settings is None:
        return Quantized(weights=weights)
    method = _method(settings)
    scheme = SCHEMES.get(method)
    if scheme is None and measured and method:
        return Quantized(name=method[:40], weights=weights)
    if scheme is None:
        why = f": {REFUSED[method]}" if method in REFUSED else " yet"
        raise NotModelledError(
            f"Quantization by {method[:40] or 'an unnamed method'!r} is not modelled{why}.",
            hint=f"Modelled are {', '.join(sorted(SCHEMES))}. Headers of the files give exact"
            " sizes whatever the scheme.",
        )
    return scheme(settings, weights)


def _settings(config: Fields) -> Fields | None:
    # compressed-tensors once had a key of its own; MLX writes "quantization".
    for name in ("quantization_config", "compression_config", "quantization"):
        settings = config.section(name, source=_DEFAULTS)
        if settings is not None:
            return settings
    text = config.section("text_config")
    return text.section("quantization_config", source=_DEFAULTS) if text else None


def _method(settings: Fields) -> str:
    if _is_modelopt(settings):
        return "modelopt"
    stated = (settings.optional_text("quant_method") or "").lower()
    if not stated and settings.has("bits") and settings.has("group_size"):
        return "mlx"  # the only one that names no method
    stated = stated.removeprefix("intel/").replace("compressed_tensors", "compressed-tensors")
    return stated.replace("auto_round", "auto-round")


def _is_modelopt(settings: Fields) -> bool:
    if (settings.optional_text("quant_method") or "").startswith("modelopt"):
        return True
    producer = settings.section("producer")
    return producer is not None and producer.optional_text("name") == "modelopt"
