"""Makes GGUF files, or only their headers."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from kvplan.models.ggml_types import GGML_TYPES

UINT32, FLOAT32, BOOL, STRING, ARRAY, UINT64 = 4, 6, 7, 8, 9, 10
_CODES = {UINT32: "I", FLOAT32: "f", BOOL: "?", UINT64: "Q"}


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def typed(value: Any) -> bytes:
    """A metadata value with its type in front; integers are 32 bits wide."""
    kind = kind_of(value[0] if isinstance(value, list) and value else value)
    if isinstance(value, list):
        items = b"".join(bare(item) for item in value)
        return struct.pack("<IIQ", ARRAY, kind if value else UINT32, len(value)) + items
    return struct.pack("<I", kind) + bare(value)


def kind_of(value: Any) -> int:
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return UINT32
    return FLOAT32 if isinstance(value, float) else STRING


def bare(value: Any) -> bytes:
    if isinstance(value, str | bytes):
        return text(value)
    return struct.pack(f"<{_CODES[kind_of(value)]}", value)


def tensor_info(name: str, kind: int, row_first: Sequence[int], offset: int) -> bytes:
    dimensions = struct.pack(f"<I{len(row_first)}Q", len(row_first), *row_first)
    return text(name) + dimensions + struct.pack("<IQ", kind, offset)


def start(tensors: int, pairs: int, version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, pairs)


def header(
    metadata: Mapping[str, Any], tensors: Mapping[str, tuple[str, Sequence[int]]], align: int = 32
) -> bytes:
    """A header; shapes with the row last, as everywhere else in kvplan."""
    infos, offset = b"", 0
    for name, (kind, shape) in tensors.items():
        stored = GGML_TYPES[kind]
        infos += tensor_info(name, stored.code, tuple(shape)[::-1], offset)
        offset += -(-stored.tensor_bytes(math.prod(shape)) // align) * align
    pairs = b"".join(text(key) + typed(value) for key, value in metadata.items())
    return start(len(tensors), len(metadata)) + pairs + infos


LLAMA = {
    "general.architecture": "llama",
    "general.file_type": 15,
    "llama.block_count": 2,
    "llama.context_length": 8192,
    "llama.embedding_length": 512,
    "llama.feed_forward_length": 1024,
    "llama.attention.head_count": 8,
    "llama.attention.head_count_kv": 2,
}
"""A small model; `LLAMA_TENSORS` are its weights."""

_LAYER: dict[str, tuple[str, Sequence[int]]] = {
    "attn_norm.weight": ("f32", [512]),
    "attn_q.weight": ("q4_K", [512, 512]),
    "attn_k.weight": ("q4_K", [128, 512]),
    "attn_v.weight": ("q6_K", [128, 512]),
    "attn_output.weight": ("q4_K", [512, 512]),
    "ffn_norm.weight": ("f32", [512]),
    "ffn_gate.weight": ("q4_K", [1024, 512]),
    "ffn_up.weight": ("q4_K", [1024, 512]),
    "ffn_down.weight": ("q6_K", [512, 1024]),
}
LLAMA_TENSORS: dict[str, tuple[str, Sequence[int]]] = {
    "token_embd.weight": ("q4_K", [1000, 512]),
    "output_norm.weight": ("f32", [512]),
    "output.weight": ("q6_K", [1000, 512]),
    "rope_freqs.weight": ("f32", [32]),
    **{f"blk.{layer}.{name}": kind for layer in range(2) for name, kind in _LAYER.items()},
}
