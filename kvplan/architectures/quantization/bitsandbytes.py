"""bitsandbytes: eight bits with a scale an output row, or four bits with a scale a block.

Sizes are those on disk. An engine that quantizes while it loads ends with the same tensors,
whatever the files hold; one that unpacks the scales of the scales holds more: 4 bytes a block.
"""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.quantization.modules import Modules
from kvplan.architectures.quantization.scheme import Quantized, with_format, without
from kvplan.models.formats import NumberFormat

_SOURCE = "bitsandbytes-foundation/bitsandbytes@01327aa bitsandbytes/"
_BLOCK = 64  # elements that share a scale
_SPAN = 256 * _BLOCK  # elements whose scales share a scale
_CODE = 16 * 4  # the sixteen values of a 4-bit number, fp32
_NESTED_CODE = 256 * 4  # the values of a scale that is itself in eight bits
_TYPES = ("nf4", "fp4")


def bnb_8bit() -> NumberFormat:
    """LLM.int8(): one fp32 scale (SCB) an output row, and a byte that names the layout."""
    return NumberFormat(
        name="bnb-8bit",
        bits=8,
        block_rows=1,
        scale_bytes=4,
        tensor_bytes=1,
        source=f"{_SOURCE}nn/modules.py Linear8bitLt",
    )


def bnb_4bit(kind: str, *, double: bool) -> NumberFormat:
    """NF4 or FP4: blocks of 64; with double quantization their scales are in eight bits too."""
    return NumberFormat(
        name=kind,
        bits=4,
        block_rows=1,
        block_columns=_BLOCK,
        scale_bytes=1 if double else 4,
        span_elements=_SPAN if double else None,
        span_bytes=4 if double else 0,
        tensor_bytes=_CODE + (_NESTED_CODE if double else 0),
        source=f"{_SOURCE}functional.py QuantState.as_dict",
    )


def bitsandbytes(settings: Fields, weights: Weights) -> Quantized:
    """``quant_method: bitsandbytes``; what the model needs whole it names itself.

    Raises:
        InputError: neither four bits nor eight, or a type that does not exist.
    """
    number_format = _format(settings)
    ignored = Modules(settings.texts("llm_int8_skip_modules") or ())
    return Quantized(
        name=f"bitsandbytes {number_format.name.removeprefix('bnb-')}",
        weights=with_format(weights, number_format, without(ignored)),
    )


def _format(settings: Fields) -> NumberFormat:
    if settings.flag("load_in_4bit", "_load_in_4bit", default=False):
        kind = settings.optional_text("bnb_4bit_quant_type") or "fp4"
        if kind not in _TYPES:
            raise settings.error("bnb_4bit_quant_type", kind, " or ".join(_TYPES))
        return bnb_4bit(kind, double=settings.flag("bnb_4bit_use_double_quant", default=False))
    if settings.flag("load_in_8bit", "_load_in_8bit", default=False):
        return bnb_8bit()
    raise settings.error("load_in_4bit", settings.raw("load_in_4bit"), "true, or load_in_8bit")
