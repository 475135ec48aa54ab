"""The number types of GGUF files: elements and bytes of one block.

All facts: ggml-org/llama.cpp@0c1e57098 ggml/include/ggml.h (``enum ggml_type``), ggml/src/ggml.c
(``type_traits``, which gives the names) and ggml/src/ggml-common.h (the blocks).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

from kvplan.models.formats import NumberFormat

SOURCE = "ggml-org/llama.cpp@0c1e57098 ggml/src/ggml-common.h"


class GgmlType(NamedTuple):
    """One type.

    Attributes:
        code: Its number in a file.
        name: As llama.cpp prints it.
        block: Elements of a block; a row of a tensor is a whole number of blocks.
        size: Bytes of a block, scales included.
    """

    code: int
    name: str
    block: int
    size: int

    def tensor_bytes(self, elements: int) -> int:
        """Bytes of so many elements, which are whole blocks."""
        return elements // self.block * self.size


_TYPES = (
    GgmlType(0, "f32", 1, 4),
    GgmlType(1, "f16", 1, 2),
    GgmlType(2, "q4_0", 32, 18),
    GgmlType(3, "q4_1", 32, 20),
    GgmlType(6, "q5_0", 32, 22),
    GgmlType(7, "q5_1", 32, 24),
    GgmlType(8, "q8_0", 32, 34),
    GgmlType(9, "q8_1", 32, 36),
    GgmlType(10, "q2_K", 256, 84),
    GgmlType(11, "q3_K", 256, 110),
    GgmlType(12, "q4_K", 256, 144),
    GgmlType(13, "q5_K", 256, 176),
    GgmlType(14, "q6_K", 256, 210),
    GgmlType(15, "q8_K", 256, 292),
    GgmlType(16, "iq2_xxs", 256, 66),
    GgmlType(17, "iq2_xs", 256, 74),
    GgmlType(18, "iq3_xxs", 256, 98),
    GgmlType(19, "iq1_s", 256, 50),
    GgmlType(20, "iq4_nl", 32, 18),
    GgmlType(21, "iq3_s", 256, 110),
    GgmlType(22, "iq2_s", 256, 82),
    GgmlType(23, "iq4_xs", 256, 136),
    GgmlType(24, "i8", 1, 1),
    GgmlType(25, "i16", 1, 2),
    GgmlType(26, "i32", 1, 4),
    GgmlType(27, "i64", 1, 8),
    GgmlType(28, "f64", 1, 8),
    GgmlType(29, "iq1_m", 256, 56),
    GgmlType(30, "bf16", 1, 2),
    GgmlType(34, "tq1_0", 256, 54),
    GgmlType(35, "tq2_0", 256, 66),
    GgmlType(39, "mxfp4", 32, 17),
    GgmlType(40, "nvfp4", 64, 36),
    GgmlType(41, "q1_0", 128, 18),
    GgmlType(42, "q2_0", 64, 18),
)
GGML_TYPES = MappingProxyType({kind.name: kind for kind in _TYPES})
GGML_CODES = MappingProxyType({kind.code: kind for kind in _TYPES})


def _format(kind: GgmlType) -> NumberFormat:
    # The bits that every element has; what a block has beyond that is carried by the block.
    bits = 8 * kind.size // kind.block
    return NumberFormat(
        name=kind.name,
        bits=bits,
        block_rows=1 if kind.block > 1 else None,
        block_columns=kind.block if kind.block > 1 else None,
        scale_bytes=kind.size - bits * kind.block // 8,
        source=SOURCE,
    )


GGML_FORMATS = MappingProxyType({kind.name: _format(kind) for kind in _TYPES})
"""Each type as a `NumberFormat`, by name."""

FILE_TYPES = MappingProxyType(
    {
        0: "F32",
        1: "F16",
        2: "Q4_0",
        3: "Q4_1",
        7: "Q8_0",
        8: "Q5_0",
        9: "Q5_1",
        10: "Q2_K",
        11: "Q3_K_S",
        12: "Q3_K_M",
        13: "Q3_K_L",
        14: "Q4_K_S",
        15: "Q4_K_M",
        16: "Q5_K_S",
        17: "Q5_K_M",
        18: "Q6_K",
        19: "IQ2_XXS",
        20: "IQ2_XS",
        21: "Q2_K_S",
        22: "IQ3_XS",
        23: "IQ3_XXS",
        24: "IQ1_S",
        25: "IQ4_NL",
        26: "IQ3_S",
        27: "IQ3_M",
        28: "IQ2_S",
        29: "IQ2_M",
        30: "IQ4_XS",
        31: "IQ1_M",
        32: "BF16",
        36: "TQ1_0",
        37: "TQ2_0",
        38: "MXFP4_MOE",
        39: "NVFP4",
        40: "Q1_0",
        41: "Q2_0",
    }
)
"""What llama.cpp calls the mix of types in a file, by ``general.file_type``: include/llama.h."""
