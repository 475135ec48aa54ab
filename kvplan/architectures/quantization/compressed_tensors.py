"""compressed-tensors (LLM Compressor): groups of modules, each with its own number format."""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.quantization.fp8 import per_block, per_channel, per_tensor
from kvplan.architectures.quantization.modules import Modules
from kvplan.architectures.quantization.mxfp4 import MXFP4
from kvplan.architectures.quantization.mxfp8 import MXFP8
from kvplan.architectures.quantization.nvfp4 import nvfp4_format
from kvplan.architectures.quantization.scheme import (
    Quantized,
    by_name,
    quantizable_head,
    with_formats,
)
from kvplan.errors import NotModelledError
from kvplan.models.formats import NumberFormat

_SOURCE = "vLLM v0.33.0 vllm/model_executor/layers/quantization/compressed_tensors/schemes/"
_SHAPE_BYTES = 2 * 8  # weight_shape: two int64
_MOST_GROUPS = 64
_LINEAR = "Linear"  # torch's class: all linear layers
_DEFAULTS = "compressed-tensors 0.20.1 compressed_tensors/quantization/quant_args.py"


def packed(*, bits: int, group: int | None, symmetric: bool, ordered: bool) -> NumberFormat:
    """``pack-quantized``: integers packed in int32, scales in half precision."""
    return NumberFormat(
        name=f"w{bits}a16",
        bits=bits,
        block_rows=1,
        block_columns=group,
        scale_bytes=2,
        zero_bits=0 if symmetric else bits,
        column_bytes=4 if ordered else 0,
        tensor_bytes=_SHAPE_BYTES,
        source=f"{_SOURCE}compressed_tensors_wNa16.py",
    )


def int8(*, channel: bool) -> NumberFormat:
    """``int-quantized``: one fp32 scale an output row, or one for the matrix."""
    return NumberFormat(
        name="int8",
        bits=8,
        block_rows=1 if channel else None,
        scale_bytes=4,
        source=f"{_SOURCE}compressed_tensors_w8a8_int8.py",
    )


def compressed_tensors(settings: Fields, weights: Weights) -> Quantized:
    """``quant_method: compressed-tensors``: modules that are named go before those of a class.

    Raises:
        NotModelledError: a format that is not known, or sparse weights.
    """
    _check_dense(settings)
    ignored = Modules(settings.texts("ignore") or ())
    named, usual = _groups(settings)
    format_of = by_name(named, lambda module: None if module == "lm_head" else usual)
    # Whatever it says, vLLM takes FP8: v0.33.0 vllm/model_executor/layers/attention/attention.py.
    kv_scheme = "fp8" if settings.section("kv_cache_scheme") else None
    return Quantized(
        name="compressed-tensors",
        weights=with_formats(
            weights,
            lambda module: None if ignored.cover(module) else format_of(module),
            quantizable_head,
        ),
        kv_scheme=kv_scheme,
    )


def _check_dense(settings: Fields) -> None:
    sparsity = settings.section("sparsity_config")
    stated = sparsity.optional_text("format") if sparsity is not None else None
    if stated not in (None, "dense"):
        raise NotModelledError(
            f"Sparse weights in the form {stated[:40]!r} are not modelled.",
            hint="vLLM 0.33 does not load them either; use a checkpoint without sparsity.",
        )


def _groups(settings: Fields) -> tuple[list[tuple[str, NumberFormat]], NumberFormat | None]:
    """Formats by module name or pattern, and the one of all linear layers, or None."""
    groups = settings.section("config_groups")
    if groups is None:
        raise settings.error("config_groups", None, "an object")
    named: list[tuple[str, NumberFormat]] = []
    usual: NumberFormat | None = None
    for name in groups.names()[:_MOST_GROUPS]:
        group = groups.section(name)
        details = group.section("weights", source=_DEFAULTS) if group else None
        if group is None or details is None:
            continue
        stored_as = group.optional_text("format") or settings.optional_text("format") or ""
        number_format = _format(details, stored_as)
        targets = group.texts("targets") or (_LINEAR,)
        if _LINEAR in targets:
            usual = usual or number_format
        named += [(target, number_format) for target in targets if target != _LINEAR]
    return named, usual


def _format(details: Fields, stored_as: str) -> NumberFormat:
    bits = details.integer("num_bits", default=8, most=32)
    strategy = details.optional_text("strategy") or "tensor"
    floating = details.optional_text("type") == "float"
    match stored_as, floating, bits:
        case ("pack-quantized", False, 2 | 3 | 4 | 8):
            return packed(
                bits=bits,
                group=_group(details, strategy),
                symmetric=details.flag("symmetric", default=True),
                ordered=details.raw("actorder") in ("group", True),
            )
        case ("nvfp4-pack-quantized", True, 4):
            return nvfp4_format(details.integer("group_size", default=16, most=2**20))
        case ("mxfp4-pack-quantized", True, 4):
            return MXFP4
        case ("int-quantized" | "naive-quantized", False, 8):
            return int8(channel=strategy != "tensor")
        case ("float-quantized" | "naive-quantized" | "mxfp8-quantized", True, 8):
            return _float8(details, strategy)
    raise NotModelledError(
        f"compressed-tensors in the form {stored_as[:40]!r} with {bits} bits is not modelled yet.",
        hint="Packed integers, int8, FP8, NVFP4, MXFP4 and MXFP8 are.",
    )


def _group(details: Fields, strategy: str) -> int | None:
    if strategy == "channel":
        return None
    group = details.integer("group_size", default=-1, least=-1, most=2**20)
    if group == 0:
        raise details.error("group_size", group, "-1 (no groups) or a whole number above 0")
    return None if group < 0 else group


def _float8(details: Fields, strategy: str) -> NumberFormat:
    if strategy == "channel":
        return per_channel()
    if strategy == "block":
        block = details.integers("block_structure", least=1, most=2**20) or (128, 128)
        if len(block) != 2:
            raise details.error("block_structure", list(block), "two whole numbers")
        return per_block(*block)
    if strategy == "group" and details.raw("group_size") == MXFP8.block_columns:
        return MXFP8
    return per_tensor(static=True)
