"""Models on this machine: a folder with ``config.json``, such a file alone, or a GGUF file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kvplan.errors import InputError
from kvplan.models.facts import ModelFacts
from kvplan.sources import checkpoint, contents, files, gguf_model
from kvplan.sources.json_reader import CONFIG_LIMIT, parse_json_object

CONFIG, MODELOPT, OLD_GPTQ = "config.json", "hf_quant_config.json", "quantize_config.json"
# How images are prepared: the file's older name, and the newer one that holds the same nested.
PROCESSORS = ("preprocessor_config.json", "processor_config.json")


def read_path(path: Path) -> ModelFacts:
    """Reads whatever model a path names.

    Raises:
        UsageError: nothing is there.
        InputError: it can't be read as a model.
        NotModelledError: a GGUF file of a version that is not read.
    """
    if path.name.lower().endswith(".gguf"):
        return gguf_model.read_gguf(path)
    return read_folder(path) if files.is_folder(path) else read_config_file(path)


def read_folder(path: Path) -> ModelFacts:
    """Reads a folder's configuration, quantization files, index and safetensors headers.

    Raises:
        UsageError: no such folder.
        InputError: no ``config.json`` in it, or one of the files is damaged.
    """
    names = files.list_names(path)
    if CONFIG not in names:
        what, hint = contents.without_config(names)
        raise InputError(
            f"The folder holds {what} and no config.json.", hint=hint, location=str(path)
        )
    config = _read_object(path / CONFIG)
    old = _read_object(path / OLD_GPTQ) if OLD_GPTQ in names else None
    weights = checkpoint.read_local_headers(path, names)
    return ModelFacts(
        id=str(path),
        source=str(path / CONFIG),
        config=contents.with_old_quantization(config, old),
        quantization=_read_object(path / MODELOPT) if MODELOPT in names else None,
        processor=_processor(path, names),
        tensors=weights.tensors,
        checkpoint_bytes=weights.total_bytes,
        checkpoint_source=weights.source,
        notes=weights.notes,
    )


def read_config_file(path: Path) -> ModelFacts:
    """Reads a configuration file. One named ``config.json`` stands for its whole folder.

    Raises:
        UsageError: no such file.
        InputError: it can't be read, or is not a JSON object.
    """
    files.file_size(path)
    if path.name == CONFIG:
        return read_folder(path.parent).model_copy(update={"id": str(path)})
    return ModelFacts(id=str(path), source=str(path), config=_read_object(path))


def _processor(path: Path, names: frozenset[str]) -> dict[str, Any] | None:
    name = next((name for name in PROCESSORS if name in names), None)
    return None if name is None else _read_object(path / name)


def _read_object(path: Path) -> dict[str, Any]:
    return parse_json_object(files.read_whole(path, limit=CONFIG_LIMIT), str(path))
