"""AutoRound (Intel Neural Compressor): GPTQ's or AWQ's packing, block FP8, or MX floats."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.quantization.awq import awq_format
from kvplan.architectures.quantization.fp8 import per_block
from kvplan.architectures.quantization.modules import Modules
from kvplan.architectures.quantization.mxfp4 import MXFP4
from kvplan.architectures.quantization.mxfp8 import MXFP8
from kvplan.architectures.quantization.scheme import (
    Quantized,
    by_name,
    quantizable_head,
    with_formats,
)
from kvplan.errors import NotModelledError
from kvplan.models.formats import NumberFormat

_SOURCE = "vLLM v0.33.0 vllm/model_executor/layers/quantization/inc/"
_SPECIAL = re.compile(r"[*+?^$()\[\]{}|\\]")
_BITS = (2, 3, 4, 8)
_PLAIN = 16  # bits from which on a module is left as it is
_PACKINGS = ("gptq", "awq")


def auto_round(settings: Fields, weights: Weights) -> Quantized:
    """``quant_method: auto-round``: settings for all, and exceptions in ``extra_config``.

    Raises:
        NotModelledError: a packing or a type that is not known.
        InputError: settings that make no sense.
    """
    usual = _format(settings, settings)
    blocks = _block_names(settings)

    def of_all(module: str) -> NumberFormat | None:
        taken = module != "lm_head" if blocks is None else blocks.cover(module)
        return usual if taken else None

    format_of = by_name(_exceptions(settings), of_all)
    return Quantized(name="auto-round", weights=with_formats(weights, format_of, quantizable_head))


def _block_names(settings: Fields) -> Modules | None:
    for name in ("block_name_to_quantize", "to_quant_block_names"):
        stated = settings.raw(name)
        if isinstance(stated, str):
            # "model.layers" means everything inside; `Modules` asks for a layer's number.
            return Modules(f"{part.strip()}*" for part in stated.split(","))
        names = settings.texts(name) if stated is not None else None
        if names:
            return Modules(f"{part}*" for part in names)
    return None


def _exceptions(settings: Fields) -> Iterator[tuple[str, NumberFormat | None]]:
    extra = settings.section("extra_config")
    for name in extra.names() if extra is not None else ():
        own = extra.section(name) if extra is not None else None
        if own is not None:
            yield f"re:.*{name}" if _SPECIAL.search(name) else name, _format(own, settings)


def _format(own: Fields, settings: Fields) -> NumberFormat | None:
    """The format of a module: its own settings first, the general ones otherwise."""
    bits = (own if own.has("bits") else settings).integer("bits", most=64)
    if bits >= _PLAIN:
        return None
    data_type = settings.optional_text("data_type") or "int"
    if "mx_fp" in data_type and bits in (4, 8):
        return MXFP4 if bits == 4 else MXFP8
    grouped = own if own.has("group_size") else settings
    if data_type in ("fp", "fp8") and bits == 8:
        return _blocks(grouped)
    packing = settings.optional_text("packing_format") or "auto_round:auto_gptq"
    if data_type != "int" or bits not in _BITS or not packing.endswith(_PACKINGS):
        raise NotModelledError(
            f"AutoRound with {bits} bits of type {data_type[:20]!r} as {packing[:40]!r} is not"
            " modelled.",
            hint="Two, three, four and eight bits packed like GPTQ or AWQ, FP8 and MX are.",
        )
    group = grouped.integer("group_size", default=128, least=-1, most=2**20)
    if group == 0:
        raise grouped.error("group_size", group, "-1 (no groups) or a whole number above 0")
    # Both packings hold the same: integers, half-precision scales, packed zero points.
    return awq_format(bits=bits, group=None if group < 0 else group).model_copy(
        update={"name": "auto-round", "source": f"{_SOURCE}schemes/inc_wna16_scheme.py"}
    )


def _blocks(settings: Fields) -> NumberFormat:
    block = settings.integers("group_size", least=1, most=2**20)
    if block is None or len(block) != 2:
        raise settings.error("group_size", settings.raw("group_size"), "two whole numbers")
    return per_block(*block)
