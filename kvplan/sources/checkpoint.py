"""Which files hold a model's weights, and what an index says of them."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.errors import InputError
from kvplan.models.facts import TensorHeader
from kvplan.sources import files, safetensors
from kvplan.sources.json_reader import parse_json_object

# Both names as huggingface_hub and transformers write them; the first that exists is read.
INDEX_NAMES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
INDEX_LIMIT = 32 * 2**20  # bytes; 280,000 tensors take some 28 MB
SINGLE_FILE = "model.safetensors"

# Mistral publishes its own layout of the same weights under this name, beside the usual one.
_SECOND_COPY = re.compile(r"consolidated.*\.safetensors")
_SHARD = re.compile(
    r"(?P<first>.*)-(?P<number>[0-9]{1,6})-of-(?P<count>[0-9]{1,6})\.safetensors", re.ASCII
)
_MOST_SHARDS = 2_000
_NOT_THE_MODEL = re.compile(r"(adapter|optimizer|scheduler).*\.safetensors")


class CheckpointIndex(BaseModel):
    """An index of sharded weights.

    Attributes:
        files: The files it names, sorted.
        total_bytes: Tensor bytes over all of them, or None if the index has no usable figure.
        note: Why ``total_bytes`` is None, as a sentence, or None.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    files: tuple[str, ...]
    total_bytes: int | None
    note: str | None = None


class Weights(BaseModel):
    """What is known of a model's weight files.

    Attributes:
        tensors: All headers, or None if one of them could not be had.
        total_bytes: Tensor bytes over all files, or None.
        source: Where they come from, or None if nothing is known.
        notes: What could not be had, as sentences.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    tensors: tuple[TensorHeader, ...] | None = None
    total_bytes: int | None = None
    source: str | None = None
    notes: tuple[str, ...] = ()


def parse_index(data: bytes, name: str) -> CheckpointIndex:
    """Reads ``model.safetensors.index.json`` or its PyTorch sibling.

    Raises:
        InputError: not a JSON object, or a ``weight_map`` that names anything but files in the
            same folder.
    """
    index = parse_json_object(data, name, limit=INDEX_LIMIT)
    weight_map = index.get("weight_map", {})
    if not isinstance(weight_map, dict) or not all(map(_is_file_name, weight_map.values())):
        raise InputError(
            "The index's weight_map does not map tensors to files of the same folder.",
            hint="Save the model again, or remove the index.",
            location=name,
        )
    metadata = index.get("metadata")
    stated = metadata.get("total_size") if isinstance(metadata, dict) else None
    total, note = _total_bytes(stated)
    return CheckpointIndex(
        files=tuple(sorted(set(weight_map.values()))), total_bytes=total, note=note
    )


def _is_file_name(value: Any) -> bool:
    return (
        isinstance(value, str)
        and 0 < len(value) <= 255
        and value.isprintable()
        and value not in {".", ".."}
        and "/" not in value
        and "\\" not in value
    )


def _total_bytes(stated: Any) -> tuple[int | None, str | None]:
    """The index's figure; some tools write it as 0, as a float or not at all."""
    match stated:
        case bool() | str():
            pass
        case int() | float() if 0 < stated < 2**53 and int(stated) == stated:
            return int(stated), None
        case None:
            return None, "The index states no total size."
    return None, f"The index states a total size of {str(stated)[:40]!r}, which was left out."


def weight_files(names: Collection[str], index: CheckpointIndex | None) -> tuple[str, ...]:
    """The safetensors files that hold the model, in order.

    With an index those it names, as loaders do; else ``model.safetensors``; else every
    safetensors file that is neither an adapter nor a second copy in another layout, with those
    of a numbered set that ought to be beside it.
    """
    if index is not None and any(name.endswith(".safetensors") for name in index.files):
        return tuple(name for name in index.files if name.endswith(".safetensors"))
    if SINGLE_FILE in names:
        return (SINGLE_FILE,)
    found = sorted(
        name
        for name in names
        if name.endswith(".safetensors") and "/" not in name and not _NOT_THE_MODEL.fullmatch(name)
    )
    usual = tuple(name for name in found if not _SECOND_COPY.fullmatch(name))
    return _all_shards(usual or tuple(found))


def _all_shards(found: tuple[str, ...]) -> tuple[str, ...]:
    """The files, and those of their set (``-00001-of-00003``) that are not there."""
    names = set(found)
    shards = (match for name in found if (match := _SHARD.fullmatch(name)))
    # One of each set is enough.
    for shard in {(match["first"], match["count"]): match for match in shards}.values():
        first, width, count = shard["first"], len(shard["number"]), int(shard["count"])
        if count > _MOST_SHARDS:
            continue
        ending = f"-of-{shard['count']}.safetensors"
        names |= {f"{first}-{number:0{width}}{ending}" for number in range(1, count + 1)}
    return tuple(sorted(names))


def read_local_headers(folder: Path, names: Collection[str] | None = None) -> Weights:
    """Reads the headers of all weight files of a folder; never the tensors.

    Args:
        folder: Where they are.
        names: What is in it, if it was listed before.

    Returns:
        Headers if every file is there, else the index's total, with notes.

    Raises:
        InputError: a header or an index that is damaged, or a tensor in two files.
    """
    names = files.list_names(folder) if names is None else names
    index_name = next((name for name in INDEX_NAMES if name in names), None)
    index = None
    if index_name is not None:
        path = folder / index_name
        index = parse_index(files.read_whole(path, limit=INDEX_LIMIT), str(path))
    wanted = weight_files(names, index)
    missing = tuple(name for name in wanted if name not in names)
    if not wanted or missing:
        return without_headers(index, index_name, absent_note(wanted, missing, names))
    shards = ((name, safetensors.read_header(folder / name)) for name in wanted)
    return with_headers(safetensors.merge_headers(shards))


def with_headers(tensors: tuple[TensorHeader, ...]) -> Weights:
    """Weights whose headers were all read."""
    total = sum(tensor.size for tensor in tensors)
    return Weights(tensors=tensors, total_bytes=total or None, source="safetensors headers")


def without_headers(index: CheckpointIndex | None, index_name: str | None, note: str) -> Weights:
    """Weights known by their index alone, or not at all."""
    if index is None:
        return Weights(notes=(note,))
    notes = (note, index.note) if index.note else (note,)
    if index.total_bytes is None:
        return Weights(notes=notes)
    return Weights(total_bytes=index.total_bytes, source=index_name, notes=notes)


def absent_note(wanted: Collection[str], missing: Collection[str], names: Collection[str]) -> str:
    """Says why there are no headers to read."""
    if missing:
        return (
            f"{len(missing)} of {len(wanted)} weight files are not there "
            f"({min(missing)} and so on); their headers were not read."
            if len(missing) > 1
            else f"The weight file {min(missing)} is not there; no headers were read."
        )
    if any(name.endswith((".bin", ".pt", ".pth")) for name in names):
        return "The weights are pickled PyTorch files, which kvplan does not open."
    return "There are no safetensors files; the weights' size is computed from the configuration."
