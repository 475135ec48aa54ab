"""Headers of safetensors files, honest and hostile."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import measured
from safetensors_files import header_bytes, pack

from kvplan.errors import InputError
from kvplan.models.facts import TensorHeader
from kvplan.sources.safetensors import (
    FORMAT_LIMIT,
    HEADER_LIMIT,
    header_length,
    merge_headers,
    parse_header,
    read_header,
)

GOOD = {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}

# One tensor of 399,981 dimensions, the last of which is 0.
LONG_SHAPE = (
    """b'{"a":{"dtype":"U8","data_offsets":[0,0],"shape":['"""
    """ + b'9223372036854775807,' * 399_980 + b'0]}}'"""
)


def parse(entries: Any, data_bytes: int) -> tuple[TensorHeader, ...]:
    data = pack(entries)
    return parse_header(data, "m.safetensors", len(data) + data_bytes)


def refusal(data: bytes, size: int) -> InputError | None:
    """The one kind of error that reading may raise."""
    try:
        parse_header(data, "m.safetensors", size)
    except InputError as error:
        return error
    return None


def test_reads() -> None:
    """Every kind of type, an empty tensor, a scalar; metadata are ignored."""
    entries = {
        "__metadata__": {"format": "pt"},
        "b": {"dtype": "F8_E4M3", "shape": [4, 5], "data_offsets": [12, 32]},
        "a": GOOD,
        "scalar": {"dtype": "F32", "shape": [], "data_offsets": [32, 36]},
        "empty": {"dtype": "F32", "shape": [7, 0], "data_offsets": [36, 36]},
        "packed": {"dtype": "F4", "shape": [3, 2], "data_offsets": [36, 39]},
        "unknown": {"dtype": "F3_E1M1", "shape": [8], "data_offsets": [39, 42]},
    }
    assert parse(entries, 42) == (
        TensorHeader(name="a", dtype="BF16", shape=(2, 3), size=12),
        TensorHeader(name="b", dtype="F8_E4M3", shape=(4, 5), size=20),
        TensorHeader(name="scalar", dtype="F32", shape=(), size=4),
        TensorHeader(name="empty", dtype="F32", shape=(7, 0), size=0),
        TensorHeader(name="packed", dtype="F4", shape=(3, 2), size=3),
        TensorHeader(name="unknown", dtype="F3_E1M1", shape=(8,), size=3),
    )


def test_a_file_without_tensors() -> None:
    assert parse({}, 0) == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shape": [2, 4]}, "not BF16 × its shape"),
        ({"dtype": "F32"}, "not F32 × its shape"),
        ({"shape": [2**62, 2**62]}, "not BF16 × its shape"),
        ({"shape": [2**62, 0]}, "not BF16 × its shape"),
        ({"dtype": "X1", "shape": [97]}, "not X1 × its shape"),
        ({"shape": [-2, -3]}, "counts of 0 or more"),
        ({"shape": [2.0, 3]}, "counts of 0 or more"),
        ({"shape": [True, 6]}, "counts of 0 or more"),
        ({"shape": "2,3"}, "counts of 0 or more"),
        ({"shape": None}, "counts of 0 or more"),
        ({"shape": [[2, 3]]}, "counts of 0 or more"),
        ({"dtype": 7}, "counts of 0 or more"),
        ({"data_offsets": [12]}, "counts of 0 or more"),
        ({"data_offsets": [-12, 0]}, "counts of 0 or more"),
        ({"data_offsets": {"begin": 0}}, "counts of 0 or more"),
        ({"data_offsets": [12, 0]}, "before it begins"),
        ({"data_offsets": [1, 13]}, "ends at byte 13 of 12"),
        ({"data_offsets": [2**62, 2**62 + 12]}, "ends at byte 4,611"),
        ({"extra": 1}, "counts of 0 or more"),
    ],
)
def test_a_tensor_that_contradicts_itself(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        parse({"weight": GOOD | change}, 12)
    assert "'weight'" in caught.value.message
    assert caught.value.location == "m.safetensors"
    assert caught.value.hint


def test_layout() -> None:
    """Overlaps, holes and a file of another size."""
    second = {"dtype": "U8", "shape": [4], "data_offsets": [10, 14]}
    with pytest.raises(InputError, match="'second' overlaps"):
        parse({"weight": GOOD, "second": second}, 14)
    with pytest.raises(InputError, match="'second' leaves a hole"):
        parse({"weight": GOOD, "second": second | {"data_offsets": [13, 17]}}, 17)
    with pytest.raises(InputError, match="12 bytes and 13 are there"):
        parse({"weight": GOOD}, 13)
    with pytest.raises(InputError, match="12 of 11"):
        parse({"weight": GOOD}, 11)


def test_a_name_twice() -> None:
    body = b'{"w":%s,"w":%s}' % ((json.dumps(GOOD).encode(),) * 2)
    error = refusal(struct.pack("<Q", len(body)) + body, 8 + len(body) + 12)
    assert error is not None
    assert "'w' appears twice" in error.message


@pytest.mark.parametrize(
    ("data", "size", "said"),
    [
        (b"", 0, "ends after 0 bytes"),
        (b"1234567", 7, "ends after 7 bytes"),
        (struct.pack("<Q", 2**63) + b"{}", 10, "9,223,372,036,854,775,808 bytes"),
        (struct.pack("<Q", FORMAT_LIMIT + 1), 2**40, "the format allows 100,000,000"),
        (struct.pack("<Q", HEADER_LIMIT + 1), 2**40, "kvplan reads at most"),
        (struct.pack("<Q", 3) + b"{}", 10, "its header has 3 bytes"),
        (struct.pack("<Q", 100) + b"{}", 2**20, "2 of its header's 100 bytes"),
        (struct.pack("<Q", 2) + b"[]", 10, "does not start with"),
        (struct.pack("<Q", 3) + b" {}", 11, "does not start with"),
        (struct.pack("<Q", 2) + b"{ ", 10, "not JSON"),
        (struct.pack("<Q", 0), 8, "does not start with"),
        (b"PK\x03\x04\x00\x00\x00\x00archive", 15, "bytes"),
    ],
)
def test_not_a_header(data: bytes, size: int, said: str) -> None:
    error = refusal(data, size)
    assert error is not None
    assert said in error.message


@given(st.binary(max_size=60), st.integers(0, 200))
def test_any_bytes(data: bytes, size: int) -> None:
    refusal(data, size)
    refusal(struct.pack("<Q", len(data)) + data, 8 + len(data) + size)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=3) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "__metadata__"]),
        values
        | st.fixed_dictionaries(
            {
                "dtype": st.sampled_from(["BF16", "F4", "X"]) | values,
                "shape": st.lists(st.integers(0, 4), max_size=3) | values,
                "data_offsets": st.lists(st.integers(0, 9), min_size=2, max_size=2) | values,
            }
        ),
    ),
    st.integers(0, 20),
)
def test_any_entries(entries: dict[str, Any], data_bytes: int) -> None:
    """Whatever is accepted fills the file exactly."""
    data = pack(entries)
    if refusal(data, len(data) + data_bytes) is None:
        tensors = parse_header(data, "m.safetensors", len(data) + data_bytes)
        assert sum(tensor.size for tensor in tensors) == data_bytes


def test_read_header_leaves_the_tensors(tmp_path: Path) -> None:
    """A file of a terabyte is read in no time, since only its start is."""
    path = tmp_path / "m.safetensors"
    data, size = header_bytes({"w": ("BF16", [2**20, 2**19])})
    with path.open("wb") as file:
        file.write(data)
        file.truncate(size)
    assert read_header(path)[0].size == 2**40
    with path.open("r+b") as file:
        file.truncate(size - 1)
    with pytest.raises(InputError, match="ends at byte"):
        read_header(path)


def test_header_length() -> None:
    assert header_length(struct.pack("<Q", 40), "x", 48) == 40


def test_merge() -> None:
    first = TensorHeader(name="a", dtype="U8", shape=(1,), size=1)
    second = replace(first, name="b")
    assert merge_headers([("1", (first,)), ("2", (second,))]) == (first, second)
    with pytest.raises(InputError, match="'a' is also in 1") as caught:
        merge_headers([("1", (first,)), ("2", (second, first))])
    assert caught.value.location == "2"


@pytest.mark.parametrize(
    "make",
    [
        "b'{\"a\":\"' + b'x' * (2**24 - 8) + b'\"}'",
        "('{\"😀\":\"' + 'x' * (2**24 - 20) + '\"}').encode()",
        "b'{\"a\":[' + b'{\"a\":1},' * 199_900 + b'1]}'",
        "b'{' + b','.join(b'\"%d\":1.5' % i for i in range(399_990)) + b'}'",
        LONG_SHAPE,
    ],
)
def test_hostile_headers_take_little(make: str) -> None:
    result = measured(
        setup="import struct\nfrom kvplan.sources.safetensors import parse_header\n"
        f"data = {make}\ndata = struct.pack('<Q', len(data)) + data",
        run="parse_header(data, 'm', len(data))",
    )
    assert result.seconds < 2
    assert result.megabytes < 200
