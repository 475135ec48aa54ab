"""torchao: integers or floats with scales in the model's own type, described by a config class."""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.quantization.fp8 import per_channel, per_tensor
from kvplan.architectures.quantization.modules import Modules
from kvplan.architectures.quantization.scheme import (
    Quantized,
    quantizable,
    quantizable_ends,
    with_formats,
)
from kvplan.errors import NotModelledError
from kvplan.models.formats import NumberFormat

_SOURCE = "pytorch/ao torchao/quantization/quantize_/workflows/"
_HALF = 2


def torchao_int4(group: int) -> NumberFormat:
    """Four bits, a scale and a zero point a group."""
    return NumberFormat(
        name="int4",
        bits=4,
        block_rows=1,
        block_columns=group,
        scale_bytes=2 * _HALF,
        source=f"{_SOURCE}int4/int4_tensor.py Int4Tensor",
    )


def torchao_int8() -> NumberFormat:
    """Eight bits, a scale an output row."""
    return NumberFormat(
        name="int8",
        bits=8,
        block_rows=1,
        scale_bytes=_HALF,
        source=f"{_SOURCE}int8/int8_tensor.py Int8Tensor",
    )


def torchao(settings: Fields, weights: Weights) -> Quantized:
    """``quant_method: torchao``.

    Raises:
        NotModelledError: a configuration class whose layout is not known.
    """
    stated = settings.section("quant_type")
    default = stated.section("default") if stated is not None else None
    if default is None:
        raise NotModelledError(
            "torchao checkpoints that do not state `quant_type.default` are not modelled.",
            hint="Save the model again with a current transformers.",
        )
    kind = default.optional_text("_type") or ""
    number_format = _format(kind, default.section("_data") or default)
    ignored = Modules(settings.texts("modules_to_not_convert") or ())
    both_ends = settings.flag("include_input_output_embeddings", default=False)
    return Quantized(
        name=f"torchao {number_format.name}",
        weights=with_formats(
            weights,
            lambda module: None if ignored.cover(module) else number_format,
            quantizable_ends if both_ends else quantizable,
        ),
    )


def _format(kind: str, data: Fields) -> NumberFormat:
    match kind:
        case "Int4WeightOnlyConfig":
            return torchao_int4(data.integer("group_size", default=128, most=2**20))
        case "Int8WeightOnlyConfig" | "Int8DynamicActivationInt8WeightConfig" if not data.has(
            "group_size"
        ):
            return torchao_int8()
        case "Float8WeightOnlyConfig":
            return per_channel()
        case "Float8DynamicActivationFloat8WeightConfig":
            return (
                per_channel()
                if "PerRow" in str(data.raw("granularity"))
                else per_tensor(static=False)
            )
    raise NotModelledError(
        f"torchao's {kind[:60] or 'unnamed configuration'!r} is not modelled.",
        hint="Int4WeightOnly, Int8WeightOnly and the Float8 configurations are.",
    )
