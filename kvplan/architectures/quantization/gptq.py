"""GPTQ: packed integers, a scale and a zero point a group, an order of the inputs."""

from __future__ import annotations

from collections.abc import Callable

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.quantization.modules import Modules
from kvplan.architectures.quantization.scheme import Quantized, with_format
from kvplan.errors import NotModelledError
from kvplan.models.formats import NumberFormat

_BITS = (2, 3, 4, 8)


def gptq_format(*, bits: int, group: int | None) -> NumberFormat:
    """qweight, half-precision scales, packed zero points, and g_idx (int32 an input)."""
    return NumberFormat(
        name="gptq",
        bits=bits,
        block_rows=1,
        block_columns=group,
        scale_bytes=2,
        zero_bits=bits,
        column_bytes=4,
        source="vLLM v0.33.0 vllm/model_executor/layers/quantization/auto_gptq.py",
    )


def gptq(settings: Fields, weights: Weights) -> Quantized:
    """``quant_method: gptq``.

    Raises:
        NotModelledError: different settings for different modules (``dynamic``).
    """
    if settings.raw("dynamic"):
        raise NotModelledError(
            "GPTQ with settings that differ by module (`dynamic`) is not modelled.",
            hint="Read the checkpoint's headers for exact sizes: a Hub id or the whole folder.",
        )
    bits = settings.integer("bits", most=8)
    if bits not in _BITS:
        raise settings.error("bits", bits, "2, 3, 4 or 8")
    group = settings.integer("group_size", default=128, least=-1, most=2**20)
    if group == 0:
        raise settings.error("group_size", group, "-1 (no groups) or a whole number above 0")
    number_format = gptq_format(bits=bits, group=None if group < 0 else group)
    return Quantized(name="gptq", weights=with_format(weights, number_format, _chosen(settings)))


def _chosen(settings: Fields) -> Callable[[str], bool]:
    groups = settings.raw("modules_in_block_to_quantize")
    if not isinstance(groups, list) or not groups:
        return lambda _module: True
    # A list of names, or of lists of names that are quantized together.
    lists = [group if isinstance(group, list) else [group] for group in groups]
    return Modules(name for names in lists for name in names if isinstance(name, str)).cover
