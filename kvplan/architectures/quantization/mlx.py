"""MLX: groups of inputs with a scale and an offset, embeddings and head included."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.quantization.scheme import (
    Quantized,
    by_name,
    quantizable_ends,
    with_formats,
)
from kvplan.errors import NotModelledError
from kvplan.models.formats import NumberFormat

# Bytes a group: a scale and an offset in half precision, or one scale in eight bits.
_GROUP_BYTES: Mapping[str, int] = MappingProxyType(
    {"affine": 2 * 2, "mxfp4": 1, "mxfp8": 1, "nvfp4": 1}
)
_GROUPS: Mapping[str, int] = MappingProxyType({"affine": 64, "mxfp4": 32, "mxfp8": 32, "nvfp4": 16})
_BITS: Mapping[str, int] = MappingProxyType({"affine": 4, "mxfp4": 4, "mxfp8": 8, "nvfp4": 4})


def mlx_format(*, mode: str, bits: int, group: int) -> NumberFormat:
    """Packed numbers and what a group of them carries."""
    return NumberFormat(
        name=f"mlx {mode}" if mode != "affine" else "mlx",
        bits=bits,
        block_rows=1,
        block_columns=group,
        scale_bytes=_GROUP_BYTES[mode],
        source="ml-explore/mlx python/src/ops.cpp quantize; mlx/nn/layers/quantized.py",
    )


def mlx(settings: Fields, weights: Weights) -> Quantized:
    """``quantization: {group_size, bits}`` as mlx-lm writes it, with exceptions by module.

    Raises:
        NotModelledError: a mode that is not known.
        InputError: settings that make no sense.
    """
    usual = _format(settings)
    exceptions = (
        (name, _exception(settings, name))
        for name in settings.names()
        if "." in name or isinstance(settings.raw(name), Mapping)
    )
    format_of = by_name(exceptions, lambda _module: usual)
    return Quantized(name="mlx", weights=with_formats(weights, format_of, quantizable_ends))


def _exception(settings: Fields, name: str) -> NumberFormat | None:
    """False leaves a module as it is, an object gives it settings of its own."""
    if settings.raw(name) is False:
        return None
    own = settings.section(name)
    return _format(own if own is not None else settings)


def _format(settings: Fields) -> NumberFormat:
    mode = settings.optional_text("mode") or "affine"
    if mode not in _GROUP_BYTES:
        raise NotModelledError(
            f"MLX's mode {mode[:40]!r} is not modelled.",
            hint=f"Known are {', '.join(_GROUP_BYTES)}.",
        )
    return mlx_format(
        mode=mode,
        bits=settings.integer("bits", default=_BITS[mode], most=8),
        group=settings.integer("group_size", default=_GROUPS[mode], most=2**20),
    )
