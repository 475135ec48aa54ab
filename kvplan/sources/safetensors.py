"""Headers of safetensors files: names, types, shapes and sizes of tensors, never their values.

The format: 8 bytes with the header's length (little-endian), the header as a JSON object, the
tensors' bytes without holes. Rules and limits as in huggingface/safetensors@24b0b28:
safetensors/src/tensor.rs (``MAX_HEADER_SIZE``, ``bitsize``, ``Metadata::validate``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kvplan.errors import InputError
from kvplan.models.facts import TensorHeader
from kvplan.sources import files
from kvplan.sources.json_reader import parse_json_object

PREFIX_BYTES = 8
FORMAT_LIMIT = 100_000_000  # bytes of a header, by the format
# By kvplan. With MAX_VALUES it allows some 40,000 tensors in a file; large models have more files.
HEADER_LIMIT = 16 * 2**20

_BITS = {
    "F4": 4,
    "F6_E2M3": 6, "F6_E3M2": 6,
    "BOOL": 8, "U8": 8, "I8": 8,
    "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32,
    "I64": 64, "U64": 64, "F64": 64, "C64": 64,
}  # fmt: skip


class _Entry(NamedTuple):
    begin: int
    end: int
    name: str
    dtype: str
    shape: tuple[int, ...]


def header_length(prefix: bytes, name: str, file_size: int) -> int:
    """Bytes of the header that follows the first 8 bytes of a file.

    Args:
        prefix: The file's first 8 bytes, or all of a shorter one.
        name: What the file is called in errors.
        file_size: Bytes of the whole file.

    Raises:
        InputError: fewer than 8 bytes, or a length that the file or the format can't have.
    """
    if len(prefix) < PREFIX_BYTES:
        raise _not_whole(f"it ends after {len(prefix)} bytes", name)
    (length,) = struct.unpack("<Q", prefix[:PREFIX_BYTES])
    if length > FORMAT_LIMIT:
        raise InputError(
            f"The safetensors header claims {length:,} bytes; the format allows {FORMAT_LIMIT:,}.",
            hint="The file is damaged, or no safetensors file.",
            location=name,
        )
    if length > file_size - PREFIX_BYTES:
        raise _not_whole(f"its header has {length:,} bytes and the file {file_size:,}", name)
    if length > HEADER_LIMIT:
        raise files.too_large(length, HEADER_LIMIT, f"{name} (header)")
    return int(length)


def parse_header(data: bytes, name: str, file_size: int) -> tuple[TensorHeader, ...]:
    """Reads the header at the start of a safetensors file.

    Args:
        data: The file's start: at least the 8 bytes of the length and the header.
        name: What the file is called in errors.
        file_size: Bytes of the whole file, which the tensors must fill exactly.

    Returns:
        The tensors in the order they lie in the file.

    Raises:
        InputError: truncated, not a header, or one that contradicts itself or the file's size.
    """
    length = header_length(data, name, file_size)
    body = data[PREFIX_BYTES : PREFIX_BYTES + length]
    if len(body) < length:
        raise _not_whole(f"{len(body):,} of its header's {length:,} bytes are there", name)
    if not body.startswith(b"{"):
        raise InputError(
            "The safetensors header does not start with '{'.",
            hint="The file is damaged, or no safetensors file; download it again.",
            location=name,
        )
    tensors = parse_json_object(body, name, limit=HEADER_LIMIT)
    tensors.pop("__metadata__", None)
    entries = sorted(_entry(tensor, tensors[tensor], name) for tensor in tensors)
    _check_layout(entries, name, file_size - PREFIX_BYTES - length)
    return tuple(
        TensorHeader(
            name=entry.name, dtype=entry.dtype, shape=entry.shape, size=entry.end - entry.begin
        )
        for entry in entries
    )


def _entry(tensor: str, stated: Any, name: str) -> _Entry:
    match stated:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [begin, end]} if (
            len(stated) == 3 and _are_counts(shape) and _are_counts((begin, end))
        ):
            entry = _Entry(begin, end, tensor, dtype, tuple(shape))
        case _:
            raise _contradiction(
                tensor, "needs a dtype, a shape and two offsets, all counts of 0 or more", name
            )
    if end < begin:
        raise _contradiction(tensor, f"ends at byte {end:,}, before it begins at {begin:,}", name)
    if not _size_fits(entry):
        raise _contradiction(
            tensor, f"has {end - begin:,} bytes, which is not {dtype} × its shape", name
        )
    return entry


def _are_counts(values: Iterable[Any]) -> bool:
    # Called for every tensor: a loop takes half the time of a generator expression.
    for value in values:  # noqa: SIM110
        if type(value) is not int or value < 0:
            return False
    return True


def _size_fits(entry: _Entry) -> bool:
    """Whether dtype × shape is the size that the offsets give; at least a bit an element."""
    size_bits = 8 * (entry.end - entry.begin)
    elements = 0 if 0 in entry.shape else 1
    for dimension in entry.shape:
        elements *= dimension
        if elements > size_bits:
            return False
    bits = _BITS.get(entry.dtype)
    return bits is None or elements * bits == size_bits


def _check_layout(entries: Iterable[_Entry], name: str, data_bytes: int) -> None:
    """Tensors follow one another without holes and fill the file."""
    position = 0
    for entry in entries:
        if entry.end > data_bytes:
            raise _contradiction(
                entry.name, f"ends at byte {entry.end:,} of {data_bytes:,} in the file", name
            )
        if entry.begin < position:
            raise _contradiction(entry.name, "overlaps the tensor before it", name)
        if entry.begin > position:
            raise _contradiction(entry.name, "leaves a hole before it", name)
        position = entry.end
    if position != data_bytes:
        raise _not_whole(f"its tensors take {position:,} bytes and {data_bytes:,} are there", name)


def _not_whole(reason: str, name: str) -> InputError:
    return InputError(
        f"The safetensors file is not whole: {reason}.",
        hint="Download the file again.",
        location=name,
    )


def _contradiction(tensor: str, reason: str, name: str) -> InputError:
    shown = repr(tensor if len(tensor) <= 80 else tensor[:79] + "…")
    return InputError(
        f"The tensor {shown} {reason}.",
        hint="The header is damaged; download the file again.",
        location=name,
    )


def read_header(path: Path) -> tuple[TensorHeader, ...]:
    """Reads one file's header; the tensors are left on the disk.

    Raises:
        UsageError: no such file.
        InputError: it can't be read, or its header is not one.
    """
    size = files.file_size(path)
    length = header_length(files.read_start(path, PREFIX_BYTES), str(path), size)
    return parse_header(files.read_start(path, PREFIX_BYTES + length), str(path), size)


def merge_headers(
    shards: Iterable[tuple[str, tuple[TensorHeader, ...]]],
) -> tuple[TensorHeader, ...]:
    """Joins the tensors of several files (name, headers).

    Raises:
        InputError: a tensor is in two of them.
    """
    return tuple(_once(shards))


def _once(shards: Iterable[tuple[str, tuple[TensorHeader, ...]]]) -> Iterator[TensorHeader]:
    owner: dict[str, str] = {}
    for name, headers in shards:
        for header in headers:
            if owner.setdefault(header.name, name) != name:
                raise _contradiction(header.name, f"is also in {owner[header.name]}", name)
            yield header
