"""MXFP4 as in gpt-oss: the routed experts only."""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.quantization.modules import Modules
from kvplan.architectures.quantization.scheme import Quantized, with_format
from kvplan.models.formats import NumberFormat

MXFP4 = NumberFormat(
    name="mxfp4",
    bits=4,
    block_rows=1,
    block_columns=32,
    scale_bytes=1,
    source="vLLM v0.33.0 vllm/model_executor/layers/quantization/mxfp4.py",
)


def mxfp4(settings: Fields, weights: Weights) -> Quantized:
    """``quant_method: mxfp4``: everything but the experts stays in the model's own type."""
    ignored = Modules(settings.texts("modules_to_not_convert") or ())
    return Quantized(
        name="mxfp4",
        weights=with_format(
            weights,
            MXFP4,
            lambda module: ".experts." in module and not ignored.cover(module),
        ),
    )
