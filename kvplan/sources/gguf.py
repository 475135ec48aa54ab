"""Headers of GGUF files: metadata, names, types and shapes of tensors, never their values.

The format: magic, version, two counts, the metadata as typed key-value pairs, then one record a
tensor, all little-endian: ggml-org/llama.cpp@0c1e57098 docs in ggml/include/gguf.h, checks as in
ggml/src/gguf.cpp. Most of a header is the vocabulary, hundreds of thousands of strings that
nobody here needs: they are stepped over and never built.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any, NamedTuple

from kvplan.errors import InputError, NotModelledError
from kvplan.models.facts import TensorHeader
from kvplan.models.ggml_types import GGML_CODES
from kvplan.sources import files
from kvplan.sources.gguf_cursor import Cursor, open_cursor
from kvplan.sources.gguf_vocabulary import Vocabulary

MAX_PAIRS = 65_536
MAX_TENSORS = 200_000
LONGEST_KEY = 65_535  # bytes, by the format
KEPT_STRING = 16_384  # bytes; templates and licences beyond that are stepped over
KEPT_ARRAY = 16_384  # elements; per-layer figures are kept, scores of tokens are not
DEFAULT_ALIGNMENT = 32
_MOST_DIMENSIONS = 4  # GGML_MAX_DIMS
_LARGEST = 2**62  # elements of a tensor, and bytes before one

_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d",
}  # fmt: skip


class GgufHeader(NamedTuple):
    """What the start of a GGUF file states.

    Attributes:
        metadata: Values by key. An array that was not kept is ``{"length": n}``, a long string
            ``{"bytes": n}``.
        tensors: In the order they lie in the file; shapes with the row last, as in safetensors.
        missing_bytes: How much of the tensors' data is not there.
    """

    metadata: dict[str, Any]
    tensors: tuple[TensorHeader, ...]
    missing_bytes: int


def read_header(path: Path) -> GgufHeader:
    """Reads one file's header; the tensors are left on the disk.

    Raises:
        UsageError: no such file.
        InputError: it can't be read, or its header is not one, or contradicts itself.
        NotModelledError: a version, byte order or number type that is not read.
    """
    size = files.file_size(path)
    with open_cursor(path, size) as cursor:
        vocabulary = Vocabulary(cursor)
        try:
            return _header(cursor, vocabulary, size)
        except (InputError, NotModelledError):
            if not vocabulary.leapt:
                raise
    with open_cursor(path, size) as cursor:
        return _header(cursor, Vocabulary(cursor, leap=False), size)


def _header(cursor: Cursor, vocabulary: Vocabulary, size: int) -> GgufHeader:
    tensor_count, pair_count = _start(cursor)
    metadata = _metadata(cursor, vocabulary, pair_count)
    alignment = _alignment(metadata, cursor)
    tensors, data_bytes = _tensors(cursor, tensor_count, alignment)
    data_start = -(-cursor.position // alignment) * alignment
    missing = max(0, data_start + data_bytes - size) if tensors else 0
    return GgufHeader(metadata, tensors, missing)


def _start(cursor: Cursor) -> tuple[int, int]:
    """Checks magic and version, and returns the counts of tensors and of pairs."""
    magic = cursor.take(4)
    if magic != b"GGUF":
        raise InputError(
            "The file does not start with 'GGUF'.",
            hint="Check that this is a GGUF file.",
            location=cursor.name,
        )
    (version,) = struct.unpack("<I", cursor.take(4))
    if version and version % 65_536 == 0:
        raise _unread("is big-endian", cursor)
    if version not in (2, 3):
        raise _unread(f"has version {version}", cursor)
    tensor_count, pair_count = struct.unpack("<QQ", cursor.take(16))
    _check_count(tensor_count, MAX_TENSORS, "tensors", cursor)
    _check_count(pair_count, MAX_PAIRS, "metadata pairs", cursor)
    return tensor_count, pair_count


def _metadata(cursor: Cursor, vocabulary: Vocabulary, count: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for number in range(count):
        vocabulary.last = number == count - 1
        key = cursor.text(LONGEST_KEY)
        if key in metadata:
            raise cursor.damaged(f"has the key {key[:80]!r} twice")
        metadata[key] = _value(cursor, vocabulary, cursor.number("I"))
    return metadata


def _value(cursor: Cursor, vocabulary: Vocabulary, kind: int) -> Any:
    if kind == _STRING:
        return _string(cursor)
    if kind == _ARRAY:
        return _array(cursor, vocabulary)
    code = _SCALARS.get(kind)
    if code is None:
        raise cursor.damaged(f"has a value of the unknown type {kind}")
    return cursor.number(code)


def _string(cursor: Cursor) -> str | dict[str, int]:
    length = cursor.number("Q")
    if length <= KEPT_STRING:
        return cursor.take(length).decode("utf-8", "replace")
    cursor.skip(length)
    return {"bytes": length}


def _array(cursor: Cursor, vocabulary: Vocabulary) -> tuple[Any, ...] | dict[str, int]:
    kind, count = cursor.number("I"), cursor.number("Q")
    if kind == _STRING:
        vocabulary.skip(count)
        return {"length": count}
    code = _SCALARS.get(kind)
    if code is None:
        what = "arrays within arrays" if kind == _ARRAY else f"values of the unknown type {kind}"
        raise cursor.damaged(f"has {what}")
    width = struct.calcsize(f"<{code}")
    if count <= KEPT_ARRAY:
        return struct.unpack(f"<{count}{code}", cursor.take(count * width))
    cursor.skip(count * width)
    return {"length": count}


def _alignment(metadata: dict[str, Any], cursor: Cursor) -> int:
    stated = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(stated) is not int or not 0 < stated <= 2**20 or stated & (stated - 1):
        raise cursor.damaged("states an alignment that is no power of two")
    return stated


def _tensors(cursor: Cursor, count: int, alignment: int) -> tuple[tuple[TensorHeader, ...], int]:
    """The tensors, and the bytes from the first one's start to the last one's end."""
    tensors: dict[str, TensorHeader] = {}
    expected = end = 0
    for _ in range(count):
        tensor, offset = _tensor(cursor)
        if tensor.name in tensors:
            raise cursor.damaged(f"has the tensor {tensor.name[:80]!r} twice")
        if offset != expected:
            raise cursor.damaged(
                f"puts the tensor {tensor.name[:80]!r} at byte {offset:,}, not {expected:,}"
            )
        tensors[tensor.name] = tensor
        end = offset + tensor.size
        expected = -(-end // alignment) * alignment
        if expected > _LARGEST:
            raise cursor.damaged("has tensors of an absurd size")
    return tuple(tensors.values()), end


def _tensor(cursor: Cursor) -> tuple[TensorHeader, int]:
    name = cursor.text(LONGEST_KEY)
    dimensions = cursor.number("I")
    if not 0 < dimensions <= _MOST_DIMENSIONS:
        raise cursor.damaged(f"gives the tensor {name[:80]!r} {dimensions} dimensions")
    shape = struct.unpack(f"<{dimensions}Q", cursor.take(8 * dimensions))
    if 0 in shape:
        raise cursor.damaged(f"gives the tensor {name[:80]!r} a dimension of 0")
    kind, offset = cursor.number("I"), cursor.number("Q")
    stored = GGML_CODES.get(kind)
    if stored is None:
        raise NotModelledError(
            f"The tensor {name[:80]!r} is stored as number type {kind}, which is not known.",
            hint="Types that llama.cpp has removed can't be loaded; newer ones come with updates.",
            location=cursor.name,
        )
    elements = math.prod(shape)
    if elements > _LARGEST or shape[0] % stored.block:
        raise cursor.damaged(
            f"gives the tensor {name[:80]!r} a shape that {stored.name} can't have"
        )
    header = TensorHeader(
        name=name, dtype=stored.name, shape=shape[::-1], size=stored.tensor_bytes(elements)
    )
    return header, offset


def _check_count(count: int, most: int, what: str, cursor: Cursor) -> None:
    if count > most:
        raise cursor.damaged(f"claims {count:,} {what}; at most {most:,} are read")


def _unread(reason: str, cursor: Cursor) -> NotModelledError:
    return NotModelledError(
        f"The GGUF file {reason}; little-endian versions 2 and 3 are read.",
        hint="Convert it again with a current llama.cpp.",
        location=cursor.name,
    )
