"""Bytes of keys and values that are packed in groups, and what the packers refuse.

Sources: transformers 5.24.0, src/transformers/cache_utils.py (QuantizedLayer,
QuantoQuantizedLayer, HQQQuantizedLayer, Fp8QuantizedLayer); optimum-quanto 0.2.7,
optimum/quanto/tensor/grouped.py and packed.py; hqq 0.2.8, hqq/core/quantize.py and bitpack.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kvplan.engines.transformers.kept import Rows
from kvplan.models.formats import ceil_div

Backend = Literal["quanto", "hqq", "fp8"]
BITS: dict[str, tuple[int, ...]] = {"quanto": (2, 4), "hqq": (1, 2, 3, 4, 8)}
AXES: dict[str, tuple[int, ...]] = {"quanto": (0, -1), "hqq": (0, 1)}
# bitpack.py, pack_3bit_32: ten numbers of three bits in an int32.
_THREES, _INT32 = 10, 4


@dataclass(frozen=True, slots=True)
class Scheme:
    """How a quantized cache packs.

    Attributes:
        nbits: Bits of a packed element.
        group: Elements that share a scale and a shift.
        residual: Tokens at which what is not packed yet is packed with all that came before.
        axis_key, axis_value: Axis that is kept apart.
        element_bytes: Bytes of a scale, of a shift, and of an element that is not packed yet.
    """

    backend: Backend
    nbits: int
    group: int
    residual: int
    axis_key: int
    axis_value: int
    element_bytes: int


def quantized_bytes(rows: Rows, scheme: Scheme, batch: int, prompt: int, steps: int) -> int:
    """Bytes of one layer's keys and values after ``steps`` passes of one token."""
    packed, loose = _split(scheme, prompt, steps)
    keys = batch * rows.heads * rows.key_dim
    values = batch * rows.heads * rows.value_dim
    return (
        _packed(scheme, scheme.axis_key, keys * packed)
        + _packed(scheme, scheme.axis_value, values * packed)
        + (keys + values) * loose * scheme.element_bytes
    )


def _split(scheme: Scheme, prompt: int, steps: int) -> tuple[int, int]:
    """Tokens that are packed, and tokens that wait.

    The prompt is packed at once; then every ``residual`` steps all there is.
    """
    if scheme.backend == "fp8":
        return prompt + steps, 0
    waiting = steps % max(scheme.residual, 1)
    return prompt + steps - waiting, waiting


def _packed(scheme: Scheme, axis: int, elements: int) -> int:
    if scheme.backend == "fp8":
        return elements
    groups = ceil_div(elements, scheme.group)
    return _numbers(scheme, axis, groups) + 2 * groups * scheme.element_bytes


def _numbers(scheme: Scheme, axis: int, groups: int) -> int:
    """The packed numbers: bytes, or int32 of three bits each, packed down the first dimension."""
    rows, columns = _matrix(scheme, axis, groups)
    if scheme.nbits == 3:
        return ceil_div(rows, _THREES) * columns * _INT32
    return ceil_div(rows * scheme.nbits, 8) * columns


def _matrix(scheme: Scheme, axis: int, groups: int) -> tuple[int, int]:
    """The matrix of groups: quanto keeps axis 0 in its rows, hqq axis 1."""
    grouped_rows = axis == 0 if scheme.backend == "quanto" else axis == 1
    return (groups, scheme.group) if grouped_rows else (scheme.group, groups)


def refusal(rows: Rows, scheme: Scheme, batch: int, prompt: int, steps: int) -> str | None:
    """Why a packer rejects a tensor of such a generation, or None."""
    if scheme.backend == "fp8":
        return None
    sides = ((scheme.axis_key, rows.key_dim), (scheme.axis_value, rows.value_dim))
    for axis, dim in sides:
        if axis == 1 and steps and not _unpacks(scheme, batch * rows.heads):
            return "hqq can't unpack 3 bits along axis 1: it cuts the tensor to the wrong size."
        for tokens in _packings(scheme, prompt, steps):
            reason = _indivisible(scheme, axis, batch, (rows.heads, tokens, dim))
            if reason:
                return reason
    return None


def _unpacks(scheme: Scheme, sequences: int) -> bool:
    """Whether hqq gets back what it packed.

    Three bits are unpacked with padding, of which dequantize() keeps as many rows as the first
    two dimensions have groups: right for matrices, for a cache only where that is one row, which
    is then broadcast.
    """
    return scheme.nbits != 3 or sequences // scheme.group == 1


def _packings(scheme: Scheme, prompt: int, steps: int) -> Iterator[int]:
    """Lengths at which tensors are packed; what divides repeats within a group's elements."""
    every = max(scheme.residual, 1)
    for index in range(min(steps // every, 8 * scheme.group) + 1):
        yield prompt + index * every


def _indivisible(scheme: Scheme, axis: int, batch: int, shape: tuple[int, int, int]) -> str | None:
    heads, tokens, dim = shape
    elements = batch * heads * tokens * dim
    if scheme.backend == "quanto":
        apart = batch if axis == 0 else dim
        along = elements // max(apart, 1)
        if along % scheme.group:
            return f"quanto: group size {scheme.group} does not divide {along}."
        return None
    if elements % scheme.group:
        return f"hqq: group size {scheme.group} does not divide {elements} elements."
    rows, _ = _matrix(scheme, axis, elements // scheme.group)
    if scheme.nbits in (1, 2, 4) and rows * scheme.nbits % 8:
        return f"hqq packs {8 // scheme.nbits} rows into one, and {rows} are no multiple of that."
    return None
