"""HQQ: groups of inputs with a scale and a zero point in the model's own type."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.quantization.modules import Modules
from kvplan.architectures.quantization.scheme import Quantized, by_name, with_formats
from kvplan.errors import NotModelledError
from kvplan.models.formats import NumberFormat

_BITS = (1, 2, 4, 8)  # three bits are packed ten to a word of 32
_HALF = 2


def hqq_format(*, bits: int, group: int | None, packed_zero: bool) -> NumberFormat:
    """Packed integers, and a scale and a zero point a group; None: one group a row."""
    return NumberFormat(
        name="hqq",
        bits=bits,
        block_rows=1,
        block_columns=group,
        scale_bytes=_HALF + (1 if packed_zero else _HALF),
        source="mobiusml/hqq@0b32d9b hqq/core/quantize.py Quantizer.quantize",
    )


def hqq(settings: Fields, weights: Weights) -> Quantized:
    """``quant_method: hqq``: one setting for all, or one a kind of module.

    Raises:
        NotModelledError: three bits, or scales that are quantized as well.
        InputError: settings that are missing or make no sense.
    """
    stated = settings.section("quant_config")
    if stated is None:
        raise settings.error("quant_config", None, "an object")
    ignored = Modules(settings.texts("skip_modules") or ("lm_head",))
    if stated.has("weight_quant_params"):
        usual = _format(stated)
        format_of = by_name((), lambda _module: usual)
    else:
        format_of = by_name(_by_kind(stated), lambda _module: None)
    return Quantized(
        name="hqq",
        weights=with_formats(
            weights, lambda module: None if ignored.cover(module) else format_of(module)
        ),
    )


def _by_kind(stated: Fields) -> Iterator[tuple[str, NumberFormat]]:
    for name in stated.names():
        own = stated.section(name)
        if own is not None:
            yield name, _format(own)


def _format(stated: Fields) -> NumberFormat:
    weight = stated.section("weight_quant_params")
    if weight is None:
        raise stated.error("weight_quant_params", None, "an object")
    bits = weight.integer("nbits", most=8)
    if bits not in _BITS or stated.raw("scale_quant_params"):
        packed = " and packed scales" if bits in _BITS else ""
        raise NotModelledError(
            f"HQQ with {bits} bits{packed} is not modelled.",
            hint="Read the checkpoint's headers for exact sizes: a Hub id or the whole folder.",
        )
    return hqq_format(
        bits=bits,
        group=weight.optional_integer("group_size", most=2**20),
        packed_zero=bool(stated.raw("zero_quant_params")),
    )
