"""Which files hold the weights, and what an index says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors_files import header_bytes

from kvplan.errors import InputError
from kvplan.sources.checkpoint import (
    CheckpointIndex,
    parse_index,
    read_local_headers,
    weight_files,
)

INDEX = "model.safetensors.index.json"


def index_of(stated: Any = None, **weight_map: str) -> CheckpointIndex:
    data = json.dumps({"metadata": {"total_size": stated}, "weight_map": weight_map})
    return parse_index(data.encode(), INDEX)


def write(folder: Path, name: str, **tensors: tuple[str, list[int]]) -> None:
    """A weight file whose tensors are all zero."""
    data, size = header_bytes(tensors)
    with (folder / name).open("wb") as file:
        file.write(data)
        file.truncate(size)


@pytest.mark.parametrize(
    ("stated", "total"),
    [
        (141107412992, 141107412992),
        (23702829384.0, 23702829384),
        (0, None),
        (-5, None),
        (1.5, None),
        ("141107412992", None),
        (True, None),
        (2**62, None),
        ([1], None),
        (None, None),
    ],
)
def test_total_size(stated: Any, total: int | None) -> None:
    """Tools write all of these; only a whole number of bytes is believed."""
    index = index_of(stated)
    assert index.total_bytes == total
    assert (index.note is None) == (total is not None)


@pytest.mark.parametrize("text", ["{}", '{"metadata": null}', '{"metadata": [1]}'])
def test_an_index_of_nothing(text: str) -> None:
    assert parse_index(text.encode(), INDEX).files == ()
    assert parse_index(text.encode(), INDEX).total_bytes is None


@pytest.mark.parametrize(
    "name", ["../x.safetensors", "a/b", "", ".", "..", "a\\b", "a\nb", "x" * 300, 7, None, ["a"]]
)
def test_an_index_that_points_elsewhere(name: Any) -> None:
    with pytest.raises(InputError, match="same folder") as caught:
        parse_index(json.dumps({"weight_map": {"a": name}}).encode(), INDEX)
    assert caught.value.location == INDEX


def test_a_weight_map_that_is_none() -> None:
    with pytest.raises(InputError, match="same folder"):
        parse_index(b'{"weight_map": ["a"]}', INDEX)


@given(st.binary(max_size=50))
def test_any_bytes(data: bytes) -> None:
    for text in (data, b'{"weight_map": ' + data + b"}", b'{"metadata": ' + data + b"}"):
        try:
            parse_index(text, INDEX)
        except InputError as error:
            hint = error.location
            assert hint


def test_a_shard_tells_of_those_that_are_not_there(tmp_path: Path) -> None:
    first = "model-00001-of-00003.safetensors"
    assert weight_files({first, "extra.safetensors"}, None) == (
        "extra.safetensors",
        first,
        "model-00002-of-00003.safetensors",
        "model-00003-of-00003.safetensors",
    )
    write(tmp_path, first, a=("BF16", [4]))
    weights = read_local_headers(tmp_path)
    assert weights.tensors is None
    assert weights.total_bytes is None
    assert "2 of 3 weight files are not there" in weights.notes[0]


@pytest.mark.parametrize("name", ["m-1-of-999999.safetensors", "m-1-of-0.safetensors"])
def test_shards_beyond_counting(name: str) -> None:
    assert weight_files({name}, None) == (name,)


def test_weight_files() -> None:
    """The index, else the usual name, else what is there; never an adapter or a second copy."""
    names = {"model.safetensors", "b.safetensors", "config.json"}
    assert weight_files(names, index_of(x="b.safetensors", y="a.safetensors")) == (
        "a.safetensors",
        "b.safetensors",
    )
    assert weight_files(names, None) == ("model.safetensors",)
    assert weight_files(names, index_of(x="pytorch_model-1.bin")) == ("model.safetensors",)
    shards = {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}
    others = {"consolidated.safetensors", "adapter_model.safetensors", "vae/x.safetensors"}
    assert weight_files(shards | others, None) == tuple(sorted(shards))
    assert weight_files(others, None) == ("consolidated.safetensors",)
    assert weight_files({"pytorch_model.bin"}, None) == ()


def test_local_headers(tmp_path: Path) -> None:
    """All shards together; a missing one leaves the index's total and a note."""
    write(tmp_path, "a.safetensors", x=("BF16", [10]))
    write(tmp_path, "b.safetensors", y=("F32", [2, 2]))
    index = {
        "metadata": {"total_size": 99},
        "weight_map": {"x": "a.safetensors", "y": "b.safetensors"},
    }
    (tmp_path / INDEX).write_text(json.dumps(index))
    weights = read_local_headers(tmp_path)
    assert weights.tensors is not None
    assert [tensor.name for tensor in weights.tensors] == ["x", "y"]
    assert (weights.total_bytes, weights.notes) == (36, ())
    (tmp_path / "b.safetensors").unlink()
    weights = read_local_headers(tmp_path)
    assert (weights.tensors, weights.total_bytes, weights.source) == (None, 99, INDEX)
    assert "b.safetensors is not there" in weights.notes[0]
    (tmp_path / "a.safetensors").unlink()
    assert "2 of 2 weight files" in read_local_headers(tmp_path).notes[0]


def test_no_weights(tmp_path: Path) -> None:
    weights = read_local_headers(tmp_path)
    assert (weights.tensors, weights.total_bytes, weights.source) == (None, None, None)
    assert "no safetensors files" in weights.notes[0]
    (tmp_path / "pytorch_model.bin").touch()
    assert "pickled" in read_local_headers(tmp_path).notes[0]


def test_pytorch_index(tmp_path: Path) -> None:
    text = '{"metadata": {"total_size": 0}, "weight_map": {"x": "pytorch_model-1.bin"}}'
    (tmp_path / "pytorch_model.bin.index.json").write_text(text)
    weights = read_local_headers(tmp_path)
    assert weights.total_bytes is None
    assert "'0'" in weights.notes[1]


def test_a_tensor_in_two_files(tmp_path: Path) -> None:
    write(tmp_path, "a.safetensors", x=("BF16", [10]))
    write(tmp_path, "b.safetensors", x=("BF16", [10]))
    with pytest.raises(InputError, match=r"is also in a\.safetensors"):
        read_local_headers(tmp_path)


def test_real_indexes(shared: Path) -> None:
    """Every index that was collected is read; the odd totals are left out with a note."""
    odd = set()
    paths = sorted((shared / "configs").glob("*/*.index.json"))
    assert len(paths) > 50
    for path in paths:
        index = parse_index(path.read_bytes(), str(path))
        if index.total_bytes is None:
            odd.add(path.parent.name)
    assert odd == {"nvidia--Cosmos-Reason2-8B", "lizpreciatior--lzlv_70b_fp16_hf"}
