"""Which function reads which quantization scheme: one literal table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.origin import TRANSFORMERS
from kvplan.architectures.quantization.awq import awq
from kvplan.architectures.quantization.compressed_tensors import compressed_tensors
from kvplan.architectures.quantization.fp8 import fbgemm_fp8, fp8
from kvplan.architectures.quantization.gptq import gptq
from kvplan.architectures.quantization.modelopt import modelopt
from kvplan.architectures.quantization.mxfp4 import mxfp4
from kvplan.architectures.quantization.scheme import Quantized
from kvplan.errors import NotModelledError

_DEFAULTS = f"transformers {TRANSFORMERS} src/transformers/utils/quantization_config.py"
_MODELOPT_DEFAULTS = "vLLM v0.33.0 vllm/model_executor/layers/quantization/modelopt.py"

SCHEMES: dict[str, Callable[[Fields, Weights], Quantized]] = {
    "awq": awq,
    "compressed-tensors": compressed_tensors,
    "fbgemm_fp8": fbgemm_fp8,
    "fp8": fp8,
    "gptq": gptq,
    "modelopt": modelopt,
    "modelopt_fp4": modelopt,
    "mxfp4": mxfp4,
}


def apply_quantization(
    config: Fields, hf_quant_config: Mapping[str, Any] | None, weights: Weights
) -> Quantized:
    """Reads whatever quantization a checkpoint states, and applies it to its weights.

    Args:
        config: The model's configuration.
        hf_quant_config: ModelOpt's file beside it, or None.
        weights: The inventory in the model's own type.

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
    if scheme is None:
        raise NotModelledError(
            f"Quantization by {method[:40] or 'an unnamed method'!r} is not modelled yet.",
            hint=f"Modelled are {', '.join(sorted(SCHEMES))}.",
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
    return stated.replace("compressed_tensors", "compressed-tensors")


def _is_modelopt(settings: Fields) -> bool:
    if (settings.optional_text("quant_method") or "").startswith("modelopt"):
        return True
    producer = settings.section("producer")
    return producer is not None and producer.optional_text("name") == "modelopt"
