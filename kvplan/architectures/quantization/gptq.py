"""GPTQ: packed integers, a scale and a zero point a group, an order of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.quantization.modules import Modules
from kvplan.architectures.quantization.scheme import (
    Quantized,
    by_name,
    quantizable,
    quantizable_head,
    with_formats,
)
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
    """``quant_method: gptq``, with exceptions by module in ``dynamic``."""
    usual, chosen = _format(settings, settings), _chosen(settings)
    format_of = by_name(_exceptions(settings), lambda module: usual if chosen(module) else None)
    eligible = quantizable_head if settings.raw("lm_head") is True else quantizable
    return Quantized(name="gptq", weights=with_formats(weights, format_of, eligible))


def _exceptions(settings: Fields) -> Iterator[tuple[str, NumberFormat | None]]:
    """``-:`` leaves the modules of a pattern plain, others give them settings of their own.

    Source: vLLM v0.33.0 vllm/model_executor/layers/quantization/utils/gptq_utils.py.
    """
    dynamic = settings.section("dynamic")
    for pattern in dynamic.names() if dynamic is not None else ():
        own = dynamic.section(pattern) if dynamic is not None else None
        if pattern.startswith("-:") or own is None:
            yield f"re:{pattern.removeprefix('-:')}", None
        else:
            yield f"re:{pattern.removeprefix('+:')}", _format(own, settings)


def _format(own: Fields, settings: Fields) -> NumberFormat:
    """A module's format: its own settings first, the general ones otherwise."""
    bits = (own if own.has("bits") else settings).integer("bits", most=8)
    if bits not in _BITS:
        raise own.error("bits", bits, "2, 3, 4 or 8")
    grouped = own if own.has("group_size") else settings
    group = grouped.integer("group_size", default=128, least=-1, most=2**20)
    if group == 0:
        raise grouped.error("group_size", group, "-1 (no groups) or a whole number above 0")
    return gptq_format(bits=bits, group=None if group < 0 else group)


def _chosen(settings: Fields) -> Callable[[str], bool]:
    groups = settings.raw("modules_in_block_to_quantize")
    if not isinstance(groups, list) or not groups:
        return lambda _module: True
    # A list of names, or of lists of names that are quantized together.
    lists = [group if isinstance(group, list) else [group] for group in groups]
    return Modules(name for names in lists for name in names if isinstance(name, str)).cover
