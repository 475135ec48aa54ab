"""AWQ: four bits, a scale and a zero point a group of inputs."""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.quantization.modules import Modules
from kvplan.architectures.quantization.scheme import Quantized, with_format, without
from kvplan.models.formats import NumberFormat


def awq_format(*, bits: int, group: int | None) -> NumberFormat:
    """qweight, half-precision scales, and packed zero points; None: one group a column."""
    return NumberFormat(
        name="awq",
        bits=bits,
        block_rows=1,
        block_columns=group,
        scale_bytes=2,
        zero_bits=bits,
        source="vLLM v0.33.0 vllm/model_executor/layers/quantization/auto_awq.py",
    )


def awq(settings: Fields, weights: Weights) -> Quantized:
    """``quant_method: awq``."""
    bits = settings.integer("bits", "w_bit", default=4, most=8)
    group = settings.integer("group_size", "q_group_size", default=128, least=-1, most=2**20)
    if group == 0:
        raise settings.error("group_size", group, "-1 (no groups) or a whole number above 0")
    ignored = Modules(settings.texts("modules_to_not_convert") or ())
    return Quantized(
        name="awq",
        weights=with_format(
            weights,
            awq_format(bits=bits, group=None if group < 0 else group),
            without(ignored),
        ),
    )
