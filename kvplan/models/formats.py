"""Number formats and the exact bytes they take, scales and zero points included.

Only arithmetic: which tensors of a checkpoint are packed how is the business of
`kvplan.architectures.quantization`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict

Dtype = Literal["float32", "bfloat16", "float16"]
DTYPE_BYTES: dict[Dtype, int] = {"float32": 4, "bfloat16": 2, "float16": 2}


def ceil_div(dividend: int, divisor: int) -> int:
    """Integer ceiling of a quotient, exact for any size."""
    return -(-dividend // divisor)


def round_up(value: int, multiple: int) -> int:
    """The smallest multiple of ``multiple`` that is at least ``value``."""
    return ceil_div(value, multiple) * multiple


class NumberFormat(BaseModel):
    """How the elements of a weight matrix are stored.

    A matrix is cut into blocks of ``block_rows`` × ``block_columns`` elements (None: the whole
    dimension); each block carries ``scale_bytes`` and ``zero_bits``. One form covers plain
    types, per-tensor, per-channel and block FP8, grouped integers and micro-scaled floats.

    Attributes:
        name: Shown to people: ``bf16``, ``fp8``, ``awq``, ``mxfp4``.
        bits: Bits an element.
        column_bytes: Bytes an input column carries whatever the rows (GPTQ's order of inputs).
        span_elements: Elements, counted through the whole matrix, that share ``span_bytes``
            (the scale of many scales), or None.
        tensor_bytes: Fixed bytes a tensor (an activation scale, say).
        source: Where the layout is stated.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    name: str
    bits: int
    block_rows: int | None = None
    block_columns: int | None = None
    scale_bytes: int = 0
    zero_bits: int = 0
    column_bytes: int = 0
    span_elements: int | None = None
    span_bytes: int = 0
    tensor_bytes: int = 0
    source: str

    def tensor_size(self, rows: int, columns: int) -> int:
        """Bytes of one (rows, columns) = (out, in) matrix, scales and zero points included."""
        if rows == 0 or columns == 0:
            return 0
        blocks_down = ceil_div(rows, self.block_rows or rows)
        blocks_across = ceil_div(columns, self.block_columns or columns)
        blocks = blocks_down * blocks_across
        return (
            ceil_div(rows * columns * self.bits, 8)
            + blocks * self.scale_bytes
            # Zero points are packed along the output dimension, one row of words a group.
            + blocks_across * ceil_div(blocks_down * self.zero_bits, 8)
            + columns * self.column_bytes
            + ceil_div(rows * columns, self.span_elements or 1) * self.span_bytes
            + self.tensor_bytes
        )

    @property
    def plain_bytes(self) -> int | None:
        """Bytes an element where that is all there is, or None for packed and scaled formats."""
        carried = (
            self.scale_bytes,
            self.zero_bits,
            self.column_bytes,
            self.span_bytes,
            self.tensor_bytes,
        )
        return None if any(carried) or self.bits % 8 else self.bits // 8


PLAIN: dict[Dtype, NumberFormat] = {
    "float32": NumberFormat(name="fp32", bits=32, source="IEEE 754"),
    "bfloat16": NumberFormat(name="bf16", bits=16, source="bfloat16: 1+8+7 bits"),
    "float16": NumberFormat(name="fp16", bits=16, source="IEEE 754"),
}


class KvFormat(BaseModel):
    """How one K or V vector of one head is stored in the cache.

    Attributes:
        bits_k, bits_v: Bits an element of a key and of a value vector.
        scale_bytes_k, scale_bytes_v: Fixed bytes each vector carries (a scale per token and head).
        scale_block: Elements that share one scale byte (micro-scaled formats), or None.
        even: The sum of both vectors' bytes is rounded up to an even number.
        source: Where the layout is stated.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    name: str
    bits_k: int
    bits_v: int
    scale_bytes_k: int = 0
    scale_bytes_v: int = 0
    scale_block: int | None = None
    even: bool = False
    source: str

    def cell_bytes(self, head_dim_k: int, head_dim_v: int) -> int:
        """Bytes of one token's key and value of one head. A latent cell has head_dim_v = 0."""
        size = _vector_bytes(head_dim_k, self.bits_k, self.scale_bytes_k, self.scale_block)
        size += _vector_bytes(head_dim_v, self.bits_v, self.scale_bytes_v, self.scale_block)
        return round_up(size, 2) if self.even else size


def _vector_bytes(dim: int, bits: int, scale_bytes: int, scale_block: int | None) -> int:
    if dim == 0:
        return 0
    return ceil_div(dim * bits, 8) + scale_bytes + (dim // scale_block if scale_block else 0)


def plain_kv(dtype: Dtype) -> KvFormat:
    """The format of a cache that is stored in the model's own type."""
    return _PLAIN_KV[dtype]


_PLAIN_KV: dict[Dtype, KvFormat] = {
    dtype: KvFormat(
        name=dtype, bits_k=8 * size, bits_v=8 * size, source="cache in the model's own type"
    )
    for dtype, size in DTYPE_BYTES.items()
}
FP8_KV = KvFormat(
    name="fp8", bits_k=8, bits_v=8, source="vLLM: 8-bit cache, per-tensor scales kept as weights"
)
