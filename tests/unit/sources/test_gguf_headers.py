"""GGUF headers: what is read, what is stepped over, and what is refused."""

from __future__ import annotations

import math
import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import gguf_files
import pytest
from gguf_files import LLAMA, LLAMA_TENSORS, header, start, tensor_info, text, typed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvplan.errors import InputError, KvplanError, NotModelledError, UsageError
from kvplan.models.facts import ModelFacts
from kvplan.models.ggml_types import GGML_CODES, GGML_FORMATS, GGML_TYPES
from kvplan.sources.gguf import GgufHeader, read_header
from kvplan.sources.gguf_vocabulary import WALKED
from kvplan.sources.local import read_path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "model.gguf"


def read(file: Path, data: bytes) -> GgufHeader:
    file.write_bytes(data)
    return read_header(file)


# What is read


def test_metadata_of_all_kinds(file: Path) -> None:
    stated = {"a": 7, "b": 1.5, "c": True, "d": "été", "e": [1, 2, 3], "f": [], "g": [True, False]}
    metadata = read(file, header(stated, {})).metadata
    assert metadata == {**stated, "e": (1, 2, 3), "f": (), "g": (True, False)}


def test_tensors(file: Path) -> None:
    found = read(file, header(LLAMA, LLAMA_TENSORS))
    assert [tensor.name for tensor in found.tensors] == list(LLAMA_TENSORS)
    for tensor in found.tensors:
        kind, shape = LLAMA_TENSORS[tensor.name]
        assert (tensor.dtype, tensor.shape) == (kind, tuple(shape))
        assert tensor.size == math.prod(shape) // GGML_TYPES[kind].block * GGML_TYPES[kind].size


def test_long_things_are_measured_not_built(file: Path) -> None:
    metadata = {
        "tokens": [f"token {n}" * (1 + (n % 50 == 0) * 40) for n in range(3000)],
        "scores": [0.5] * 20_000,
        "template": "x" * 20_000,
        "after": 1,
    }
    assert read(file, header(metadata, {})).metadata == {
        "tokens": {"length": 3000},
        "scores": {"length": 20_000},
        "template": {"bytes": 20_000},
        "after": 1,
    }


@given(st.lists(st.binary(max_size=300), max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_strings_of_any_length_are_stepped_over(file: Path, strings: list[bytes]) -> None:
    pairs = text("s") + struct.pack("<IIQ", 9, 8, len(strings)) + b"".join(map(text, strings))
    data = start(0, 2) + pairs + text("after") + typed(5)
    assert read(file, data).metadata == {"s": {"length": len(strings)}, "after": 5}


@given(st.lists(st.binary(max_size=40), min_size=64, max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_strings_that_windows_cut(file: Path, strings: list[bytes]) -> None:
    """A window ends within a length, a text, or between two strings."""
    body = b"".join(map(text, strings))
    before = bytes(2**20 - len(body) // 2)
    pairs = text("bytes") + struct.pack("<IIQ", 9, 0, len(before)) + before
    pairs += text("s") + struct.pack("<IIQ", 9, 8, len(strings)) + body
    data = start(0, 4) + text("x") + struct.pack("<IIQ", 9, 8, 1) + text("y") + pairs
    found = read(file, data + text("after") + typed(5)).metadata
    assert found["after"] == 5


def vocabulary(count: int, one: bytes = text("Ġtoken") + text("in")) -> bytes:
    """A pair with an array of an even number of strings."""
    pair = text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, count)
    return pair + one * (count // 2)


def whole(*pairs: bytes) -> bytes:
    """A file with these pairs and the tensors of the small model."""
    tensors = header({}, LLAMA_TENSORS)[24:]
    return start(len(LLAMA_TENSORS), len(pairs)) + b"".join(pairs) + tensors


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("count", [262_144, 3_000_000])
def test_a_vocabulary_costs_neither_time_nor_memory(file: Path, count: int, last: bool) -> None:  # noqa: FBT001
    """The goal is 50 ms and 50 MB however many tokens there are, and merges as many."""
    merges = vocabulary(count).replace(b"tokens", b"merges")
    after = text("tokenizer.ggml.eos_token_id") + typed(7)
    pairs = (vocabulary(count), after, merges) if last else (vocabulary(count), merges, after)
    file.write_bytes(whole(text("general.architecture") + typed("llama"), *pairs))
    tracemalloc.start()
    assert read_header(file).metadata["tokenizer.ggml.eos_token_id"] == 7
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2**20
    spent = []
    for _ in range(5):
        began = time.process_time()
        assert len(read_header(file).tensors) == len(LLAMA_TENSORS)
        spent.append(time.process_time() - began)
    assert min(spent) < 0.05


LONG = WALKED + 2
MERGES = vocabulary(LONG).replace(b"tokens", b"merges")
AFTER = text("tokenizer.ggml.eos_token_id") + typed(7)


@pytest.mark.parametrize(
    "pairs",
    [
        (vocabulary(LONG), AFTER),
        (vocabulary(LONG), AFTER, MERGES, text("z.z") + typed(1)),
        (vocabulary(LONG), text("unheard.of") + typed(1)),
        (vocabulary(LONG), text("unheard.of") + typed(1), AFTER),
        (AFTER, vocabulary(LONG)),
        (vocabulary(LONG, text("tokenizer.ggml.eos_token_id") + text("general.x")), AFTER),
        (vocabulary(LONG, text("tokenizer.x" * 30) + text("general.x" * 30)), AFTER),
        (vocabulary(LONG, text("") * 2), AFTER),
        (vocabulary(LONG, text("x" * 70) * 2), AFTER),
    ],
)
def test_long_arrays_end_where_their_lengths_say(
    file: Path, monkeypatch: pytest.MonkeyPatch, pairs: tuple[bytes, ...]
) -> None:
    """What stands behind a vocabulary, and tokens that look like keys, change nothing."""
    found = read(file, whole(*pairs))
    monkeypatch.setattr("kvplan.sources.gguf_vocabulary.WALKED", 2**40)
    assert read_header(file) == found
    assert found.metadata["tokenizer.ggml.tokens"] == {"length": LONG}
    assert len(found.metadata) == len(pairs)


def test_a_long_array_with_a_damaged_end_is_refused(file: Path) -> None:
    """The error is that of the walk, not of a place that was taken for the end."""
    data = whole(vocabulary(LONG), AFTER)
    with pytest.raises(InputError, match="ends before its header"):
        read(file, data[: data.index(text("tokenizer.ggml.eos_token_id"))])
    with pytest.raises(InputError, match="unknown type 77"):
        read(file, data.replace(AFTER, AFTER[:-8] + struct.pack("<II", 77, 0)))


def test_alignment_and_missing_data(file: Path) -> None:
    metadata = {"general.alignment": 64}
    tensors = {"a": ("f32", [3]), "b": ("q8_0", [4, 32])}
    data = header(metadata, tensors, align=64)
    whole = -(-len(data) // 64) * 64 + 64 + 136
    assert read(file, data.ljust(whole, b"\0")).missing_bytes == 0
    assert read(file, data.ljust(whole - 1, b"\0")).missing_bytes == 1


# What is refused


def info(**changes: Any) -> bytes:
    """A file with one tensor."""
    stated = {"name": "t", "kind": 0, "row_first": (8, 4), "offset": 0} | changes
    return start(1, 0) + tensor_info(**stated)


def array(kind: int, count: int, body: bytes = b"") -> bytes:
    return start(0, 1) + text("k") + struct.pack("<IIQ", 9, kind, count) + body


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "ends before its header"),
        (b"GGML" + bytes(20), "does not start with 'GGUF'"),
        (b"GGUF\x03", "ends before its header"),
        (start(2**63, 0), "claims 9,223,372,036,854,775,808 tensors"),
        (start(0, 2**63), "claims 9,223,372,036,854,775,808 metadata pairs"),
        (start(0, 1), "ends before its header"),
        (start(0, 1) + struct.pack("<Q", 2**62), "a name of 4,611,686,018,427,387,904 bytes"),
        (start(0, 1) + struct.pack("<Q", 2) + b"\xff\xfe", "not UTF-8"),
        (start(0, 1) + text("k") + struct.pack("<I", 99), "unknown type 99"),
        (start(0, 1) + text("k") + struct.pack("<IQ", 8, 2**63), "ends before its header"),
        (array(8, 2**23), "ends before its header"),
        (array(8, 2**63), "claims 9,223,372,036,854,775,808 strings"),
        (array(8, 1, struct.pack("<Q", 2**63)), "ends before its header"),
        (array(4, 2**62), "ends before its header"),
        (array(9, 1), "arrays within arrays"),
        (array(13, 1), "unknown type 13"),
        (start(0, 2) + 2 * (text("k") + typed(1)), "has the key 'k' twice"),
        (header({"general.alignment": 48}, {}), "no power of two"),
        (header({"general.alignment": 0}, {}), "no power of two"),
        (header({"general.alignment": "32"}, {}), "no power of two"),
        (header({"general.alignment": True}, {}), "no power of two"),
        (info(row_first=()), "0 dimensions"),
        (info(row_first=(1,) * 5), "5 dimensions"),
        (info(row_first=(8, 0)), "'t' a dimension of 0"),
        (info(row_first=(0, 8)), "'t' a dimension of 0"),
        (start(1, 0) + text("t") + struct.pack("<I", 2**32 - 1), "4294967295 dimensions"),
        (info(kind=12, row_first=(255, 4)), "a shape that q4_K can't have"),
        (info(row_first=(2**40, 2**40)), "a shape that f32 can't have"),
        (info(offset=32), "at byte 32, not 0"),
        (start(2, 0) + 2 * tensor_info("t", 0, (8,), 0), "tensor 't' twice"),
        (start(2, 0) + b"".join(tensor_info(n, 0, (8,), 0) for n in "ab"), "at byte 0, not 32"),
        (info(row_first=(2**61,)), "absurd size"),
    ],
)
def test_damaged_headers(file: Path, data: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        read(file, data)
    assert caught.value.location == str(file)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (start(0, 0, version=1), "version 1"),
        (start(0, 0, version=4), "version 4"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (info(kind=31), "number type 31"),
        (info(kind=99), "number type 99"),
    ],
)
def test_forms_that_are_not_read(file: Path, data: bytes, said: str) -> None:
    with pytest.raises(NotModelledError, match=said) as caught:
        read(file, data)
    assert caught.value.hint


def sparse(file: Path, data: bytes, size: int) -> None:
    file.write_bytes(data)
    with file.open("r+b") as longer:
        longer.truncate(size)


@pytest.mark.parametrize("count", [2**23 + 1, 2**32, 2**61])
def test_more_strings_than_any_vocabulary(file: Path, count: int) -> None:
    sparse(file, array(8, count), 2**40)
    began = time.process_time()
    with pytest.raises(InputError, match=f"claims {count:,} strings; at most 8,388,608 are read"):
        read_header(file)
    assert time.process_time() - began < 0.5


def test_a_header_without_end(file: Path) -> None:
    """Strings are gone through up to a limit, be there as many as they may."""
    count = 2**22
    began = time.process_time()
    file.write_bytes(start(0, 1) + vocabulary(count, text("x" * 90) * 2))
    with pytest.raises(InputError, match="at most 268,435,456"):
        read_header(file)
    assert time.process_time() - began < 5


def test_no_file_or_no_regular_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_header(tmp_path / "none.gguf")
    with pytest.raises(InputError, match="a folder"):
        read_header(tmp_path)


WHOLE = header(LLAMA | {"tokens": ["a", "bb"] * 40}, LLAMA_TENSORS)


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_broken_bytes_are_read_or_refused(file: Path, data: st.DataObject) -> None:
    """Cut short anywhere, or with bytes replaced: never another error."""
    cut = data.draw(st.integers(0, len(WHOLE)))
    broken = bytearray(WHOLE[:cut])
    for at, byte in data.draw(st.lists(st.tuples(st.integers(0, cut), st.integers(0, 255)))):
        if at < cut:
            broken[at] = byte
    try:
        found = read(file, bytes(broken))
    except KvplanError:
        return
    assert all(tensor.size >= 0 for tensor in found.tensors)


# As a model


def facts(path: Path, data: bytes) -> ModelFacts:
    path.write_bytes(data)
    return read_path(path)


def test_facts_of_a_file(file: Path) -> None:
    found = facts(file, header(LLAMA, LLAMA_TENSORS) + bytes(2**22))
    assert found.gguf
    assert found.config["llama.block_count"] == 2
    assert found.tensors is not None
    assert found.checkpoint_bytes == sum(tensor.size for tensor in found.tensors)
    assert found.notes == ()


def test_a_file_cut_short_is_noted(file: Path) -> None:
    assert "bytes before its tensors do" in facts(file, header(LLAMA, LLAMA_TENSORS)).notes[0]


def test_parts_are_joined(tmp_path: Path) -> None:
    names = sorted(LLAMA_TENSORS)
    for part in range(2):
        some = {name: LLAMA_TENSORS[name] for name in names[part::2]}
        metadata = LLAMA | {"split.count": 2} if part == 0 else {"split.count": 2}
        path = tmp_path / f"m-{part + 1:05d}-of-00002.gguf"
        path.write_bytes(header(metadata, some))
    found = read_path(tmp_path / "m-00002-of-00002.gguf")
    assert found.tensors is not None
    assert sorted(tensor.name for tensor in found.tensors) == names
    assert found.config["general.architecture"] == "llama"
    (tmp_path / "m-00001-of-00002.gguf").unlink()
    with pytest.raises(InputError, match="1 of the model's 2 files"):
        read_path(tmp_path / "m-00002-of-00002.gguf")


def test_parts_that_do_not_belong_together(tmp_path: Path) -> None:
    for part in (1, 2):
        path = tmp_path / f"m-{part:05d}-of-00002.gguf"
        path.write_bytes(header({"split.count": 2}, {"same": ("f32", [8])}))
    with pytest.raises(InputError, match="in two of the files"):
        read_path(tmp_path / "m-00001-of-00002.gguf")
    alone = tmp_path / "renamed.gguf"
    alone.write_bytes(header({"split.count": 2}, {}))
    with pytest.raises(InputError, match="one of 2 parts"):
        read_path(alone)
    endless = tmp_path / "m-00001-of-99999.gguf"
    endless.touch()
    with pytest.raises(InputError, match="99999 parts"):
        read_path(endless)


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"split.no": 0}, "named part 2, and states that it is part 1"),
        ({"split.no": "one"}, "named part 2, and states that it is part 'one'"),
        ({"split.no": 1}, "5 tensors by its first file, and 2 in all"),
    ],
)
def test_parts_that_state_something_else(tmp_path: Path, stated: dict[str, Any], said: str) -> None:
    for part, more in ((1, {"split.no": 0, "split.tensors.count": 5}), (2, stated)):
        path = tmp_path / f"m-{part:05d}-of-00002.gguf"
        path.write_bytes(header({"split.count": 2} | more, {f"t{part}": ("f32", [8])}))
    with pytest.raises(InputError, match=said):
        read_path(tmp_path / "m-00001-of-00002.gguf")


def test_real_metadata(shared: Path) -> None:
    seen = 0
    for path in sorted((shared / "oracle" / "gguf").glob("*.gguf")):
        found = read_header(path)
        assert found.metadata["general.architecture"]
        assert found.tensors == ()
        seen += 1
    assert seen > 50


def test_every_type_has_a_format_of_its_bytes() -> None:
    for kind in GGML_CODES.values():
        stored = GGML_FORMATS[kind.name]
        assert stored.tensor_size(7, 5 * kind.block) == kind.tensor_bytes(7 * 5 * kind.block)
        assert stored.plain_bytes == (kind.size if kind.block == 1 else None)


def test_the_writer_of_these_tests_writes_what_it_says() -> None:
    assert gguf_files.typed(3) == struct.pack("<II", 4, 3)
    assert gguf_files.typed([True]) == struct.pack("<IIQB", 9, 7, 1, 1)
