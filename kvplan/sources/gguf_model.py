"""A GGUF file, or all files of a split one, as facts about a model."""

from __future__ import annotations

import re
from pathlib import Path

from kvplan.errors import InputError
from kvplan.models.facts import ModelFacts, TensorHeader
from kvplan.sources import files
from kvplan.sources.gguf import GgufHeader, read_header

# As llama.cpp names the parts: src/llama.cpp llama_split_path.
_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})(\.gguf)", re.IGNORECASE | re.ASCII)
_MOST_PARTS = 1000


def read_gguf(path: Path) -> ModelFacts:
    """Reads the headers of a GGUF model; a path to any part of a split one stands for all.

    Raises:
        UsageError: no such file.
        InputError: a header that is damaged, a part that is missing, or a tensor in two of them.
        NotModelledError: a version, byte order or number type that is not read.
    """
    files.file_size(path)
    parts = _parts(path)
    headers = [read_header(part) for part in parts]
    _check_parts(headers, parts, path)
    tensors = _joined(headers, parts)
    _check_tensors(headers[0], len(tensors), path)
    missing = sum(header.missing_bytes for header in headers)
    return ModelFacts(
        id=str(path),
        source=str(parts[0]),
        config=headers[0].metadata,
        gguf=True,
        tensors=tensors,
        checkpoint_bytes=sum(tensor.size for tensor in tensors) or None,
        checkpoint_source="GGUF header",
        notes=_cut_short(missing),
    )


def _parts(path: Path) -> tuple[Path, ...]:
    name = _PART.fullmatch(path.name)
    if name is None:
        return (path,)
    stem, _, total, ending = name.groups()
    if not 0 < int(total) <= _MOST_PARTS:
        raise InputError(
            f"The name says there are {int(total)} parts.",
            hint="Check the file's name.",
            location=str(path),
        )
    there = files.list_names(path.parent)
    wanted = [f"{stem}-{number:05d}-of-{total}{ending}" for number in range(1, int(total) + 1)]
    missing = [part for part in wanted if part not in there]
    if missing:
        raise InputError(
            f"{len(missing)} of the model's {len(wanted)} files are not there ({missing[0]}).",
            hint="Download all of them into one folder.",
            location=str(path),
        )
    return tuple(path.with_name(part) for part in wanted)


def _check_parts(headers: list[GgufHeader], parts: tuple[Path, ...], path: Path) -> None:
    """Parts state how many there are and which they are, as llama.cpp checks when it loads them."""
    stated = headers[0].metadata.get("split.count", 1)
    if stated not in (0, 1, len(headers)):
        raise InputError(
            f"The file is one of {stated} parts, and its name does not say which.",
            hint="Give the parts the names they were published under: NAME-00001-of-00003.gguf.",
            location=str(path),
        )
    for number, (header, part) in enumerate(zip(headers, parts, strict=True)):
        own = header.metadata.get("split.no", number)
        if own != number and len(parts) > 1:
            raise InputError(
                f"The file is named part {number + 1}, and states that it is part {_next(own)}.",
                hint="Give the parts the names they were published under.",
                location=str(part),
            )


def _next(number: object) -> object:
    return number + 1 if isinstance(number, int) else repr(number)[:40]


def _check_tensors(first: GgufHeader, count: int, path: Path) -> None:
    stated = first.metadata.get("split.tensors.count", count)
    if stated not in (0, count):
        raise InputError(
            f"The model has {stated} tensors by its first file, and {count:,} in all.",
            hint="Download all parts again; they are not of one model.",
            location=str(path),
        )


def _joined(headers: list[GgufHeader], parts: tuple[Path, ...]) -> tuple[TensorHeader, ...]:
    tensors: dict[str, TensorHeader] = {}
    for header, part in zip(headers, parts, strict=True):
        for tensor in header.tensors:
            if tensor.name in tensors:
                raise InputError(
                    f"The tensor {tensor.name[:80]!r} is in two of the files.",
                    hint="Are these parts of one model?",
                    location=str(part),
                )
            tensors[tensor.name] = tensor
    return tuple(tensors.values())


def _cut_short(missing: int) -> tuple[str, ...]:
    if not missing:
        return ()
    sentence = (
        f"The file ends {missing:,} bytes before its tensors do: sizes are read from its header,"
        " but no engine could load it."
    )
    return (sentence,)
