"""Makes safetensors files, or only their headers."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

_BYTES = {"BF16": 2, "F16": 2, "F32": 4, "F8_E4M3": 1, "U8": 1, "I8": 1, "I32": 4, "I64": 8}


def header_bytes(tensors: Mapping[str, tuple[str, list[int]]]) -> tuple[bytes, int]:
    """Length and header of a file with these tensors (dtype, shape), and the file's whole size."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    position = 0
    for name, (dtype, shape) in tensors.items():
        end = position + _BYTES[dtype] * math.prod(shape)
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [position, end]}
        position = end
    return pack(entries), len(pack(entries)) + position


def pack(entries: Any) -> bytes:
    """The 8 bytes of the length and the header."""
    body = json.dumps(entries, separators=(",", ":")).encode()
    body += b" " * (-len(body) % 8)
    return struct.pack("<Q", len(body)) + body
