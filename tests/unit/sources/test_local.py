"""Models on this machine: what people have in folders, and what they mistake for a model."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import NoReturn

import pytest
from gguf_files import header
from measured import measured
from safetensors_files import header_bytes

from kvplan.errors import InputError, KvplanError, UsageError
from kvplan.sources.local import read_config_file, read_folder, read_path

CONFIG = {"model_type": "llama", "hidden_size": 64}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def test_a_folder(folder: Path) -> None:
    """Everything that is beside the configuration is read with it."""
    data, size = header_bytes({"w": ("BF16", [8])})
    (folder / "model.safetensors").write_bytes(data + bytes(size - len(data)))
    (folder / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "FP8"}}')
    facts = read_path(folder)
    assert facts.id == str(folder)
    assert facts.revision is None
    assert facts.source == str(folder / "config.json")
    assert facts.config == CONFIG
    assert facts.quantization == {"quantization": {"quant_algo": "FP8"}}
    assert facts.tensors is not None
    assert facts.tensors[0].name == "w"
    assert facts.checkpoint_bytes == 16
    assert facts.notes == ()


def test_old_gptq(folder: Path) -> None:
    """The old file fills quantization_config, and only where there is none."""
    (folder / "quantize_config.json").write_text('{"bits": 4, "desc_act": true}')
    assert read_folder(folder).config["quantization_config"] == {
        "bits": 4,
        "desc_act": True,
        "quant_method": "gptq",
    }
    (folder / "quantize_config.json").write_text('{"w_bit": 4, "zero_point": true}')
    assert read_folder(folder).config["quantization_config"] == {"w_bit": 4, "zero_point": True}
    (folder / "config.json").write_text('{"quantization_config": {"quant_method": "awq"}}')
    assert read_folder(folder).config["quantization_config"] == {"quant_method": "awq"}


def test_a_config_file(folder: Path) -> None:
    """``config.json`` stands for its folder; under another name it is alone."""
    (folder / "hf_quant_config.json").write_text("{}")
    facts = read_path(folder / "config.json")
    assert facts.id == str(folder / "config.json")
    assert facts.quantization == {}
    other = folder / "draft.json"
    other.write_text('{"model_type": "qwen3"}')
    facts = read_config_file(other)
    assert facts.config == {"model_type": "qwen3"}
    assert (facts.source, facts.quantization, facts.notes) == (str(other), None, ())


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file or folder"):
        read_path(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="no file or folder"):
        read_folder(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="no file or folder"):
        read_path(tmp_path / "nowhere.gguf")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("model-Q4.gguf", "GGUF files"),
        ("model_index.json", "diffusers"),
        ("adapter_config.json", "LoRA adapter"),
        ("params.json", "own layout"),
        ("README.md", "README.md"),
    ],
)
def test_a_folder_without_config(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(InputError, match="holds nothing and no config"):
        read_path(tmp_path)
    (tmp_path / name).touch()
    with pytest.raises(InputError, match=said) as caught:
        read_path(tmp_path)
    assert caught.value.location == str(tmp_path)
    assert caught.value.hint


def test_gguf(tmp_path: Path) -> None:
    path = tmp_path / "Model.GGUF"
    path.write_bytes(header({"general.architecture": "llama"}, {}))
    assert read_path(path).config == {"general.architecture": "llama"}


def test_a_folder_where_a_file_should_be(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()
    with pytest.raises(InputError, match="a folder, where a file was expected"):
        read_path(tmp_path)
    with pytest.raises(InputError, match="Not a directory"):
        read_folder(Path(__file__))


def test_a_pipe_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(InputError, match="not a regular file"):
        read_path(tmp_path)


def test_a_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "config.json").symlink_to(tmp_path / "config.json")
    with pytest.raises(InputError, match="can't be read"):
        read_path(tmp_path)


def test_no_permission(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's refusal becomes a sentence (a user who may read everything never sees it)."""

    def refuse(*_: object) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError, match="may not be read") as caught:
        read_path(folder)
    assert caught.value.location == str(folder / "config.json")
    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(InputError, match="may not be read"):
        read_path(folder)


@pytest.mark.parametrize(
    "name", ["config.json", "hf_quant_config.json", "quantize_config.json", "model.safetensors"]
)
def test_damage_anywhere_is_one_error(folder: Path, name: str) -> None:
    (folder / name).write_bytes(b"\x00broken")
    with pytest.raises(KvplanError) as caught:
        read_path(folder)
    assert caught.value.exit_code == 2
    assert caught.value.location is not None
    assert name in caught.value.location


def test_a_large_config_is_refused_by_its_size(folder: Path) -> None:
    """50 MB are not even read."""
    with (folder / "config.json").open("wb") as file:
        file.truncate(50_000_000)
    result = measured(
        setup="from pathlib import Path\nfrom kvplan.sources.local import read_path",
        run=f"read_path(Path({str(folder)!r}))",
    )
    assert result.raised is not None
    assert "50,000,000 bytes" in result.raised
    assert result.seconds < 0.5
    assert result.megabytes < 100


def test_real_folders(shared: Path) -> None:
    """Every configuration that was collected is read."""
    folders = sorted(path.parent for path in (shared / "configs").glob("*/config.json"))
    assert len(folders) > 300
    for folder in folders:
        facts = read_folder(folder)
        assert facts.config
        assert facts.tensors is None
