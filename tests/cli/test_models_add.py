"""`kvplan models add`: a spec on stdout, what is missing on stderr."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from gguf_files import LLAMA, header
from loopback_hub import COMMIT, Repo, running

from kvplan.sources.model_specs import read_model_spec

Command = Callable[..., subprocess.CompletedProcess[str]]
CONFIG = {
    "bos_token_id": 1,
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "torch_dtype": "bfloat16",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "num_hidden_layers": 24,
    "num_attention_heads": 14,
    "num_key_value_heads": 2,
    "vocab_size": 151936,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": True,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "org--tiny"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(CONFIG))
    return path


def test_the_spec_gives_the_same_plan(kvplan: Command, folder: Path, tmp_path: Path) -> None:
    done = kvplan("models", "add", str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("schema: kvplan.model/1\nid: org/tiny\n\nconfig:\n")
    assert "bos_token_id" not in done.stdout
    assert str(tmp_path) not in done.stdout
    (tmp_path / "tiny.yaml").write_text(done.stdout)
    plans = [
        json.loads(kvplan("size", model, "--gpu", "L4", "--format", "json").stdout)
        for model in ("tiny.yaml", str(folder))
    ]
    assert plans[0]["verdict"] == "fits"
    assert plans[0]["capacity"] == plans[1]["capacity"]
    lines = [[(line["name"], line["bytes"]) for line in plan["ledger"]] for plan in plans]
    assert lines[0] == lines[1]


def test_what_is_missing_is_said(kvplan: Command, folder: Path) -> None:
    lines = kvplan("models", "add", str(folder)).stderr.splitlines()
    assert lines == [
        "No id is known: org/tiny is made from the file's place.",
        "No public source is known: replace `source` with one others can open.",
        "No revision is known.",
        "No size of the weight files is known.",
        "No number of parameters is stated.",
        "No licence was found on the model's card: add it with its source.",
        "There are no safetensors files; the weights' size is computed from the configuration.",
    ]
    assert kvplan("-q", "models", "add", str(folder)).stderr == ""


def test_output(kvplan: Command, folder: Path, tmp_path: Path) -> None:
    done = kvplan("models", "add", str(folder), "--output", "new.yaml")
    assert (done.returncode, done.stdout) == (0, "")
    assert read_model_spec(tmp_path / "new.yaml").id == "org/tiny"
    done = kvplan("models", "add", str(folder), "--output", "nowhere/new.yaml")
    assert done.returncode == 2
    assert "can't be written" in done.stderr


def test_from_the_hub(kvplan: Command) -> None:
    repo = Repo(files={"config.json": json.dumps(CONFIG).encode()})
    with running({"org/tiny": repo}) as hub:
        done = kvplan("models", "add", "org/tiny", variables={"HF_ENDPOINT": hub.url})
    assert done.returncode == 0, done.stderr
    assert f"source: org/tiny@{COMMIT}:config.json\nrevision: " in done.stdout
    assert "No id is known" not in done.stderr


def test_the_licence_of_the_card(kvplan: Command) -> None:
    card: dict[str, object] = {"cardData": {"license": "other", "license_name": "qwen-research"}}
    repo = Repo(files={"config.json": json.dumps(CONFIG).encode()}, card=card)
    with running({"org/tiny": repo}) as hub:
        done = kvplan("models", "add", "org/tiny", variables={"HF_ENDPOINT": hub.url})
    wanted = f'license:\n  value: qwen-research\n  source: "org/tiny@{COMMIT}, the model\'s card"\n'
    assert done.stdout.endswith(wanted)
    assert "licence" not in done.stderr


def test_the_licence_of_a_folder(kvplan: Command, folder: Path) -> None:
    (folder / "README.md").write_text(
        "---\nlanguage: en\nlicense: apache-2.0  # ours\n---\n# Tiny\n"
    )
    done = kvplan("models", "add", str(folder))
    assert 'license:\n  value: apache-2.0\n  source: "README.md of the folder"\n' in done.stdout
    assert "licence" not in done.stderr


def test_settings_for_images(kvplan: Command, folder: Path) -> None:
    """Of the processor's file, what decides the tokens of an image; nothing for a text model."""
    processor = {"min_pixels": 3136, "max_pixels": 1003520, "image_mean": [0.5], "patch_size": 14}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    assert "processor" not in kvplan("models", "add", str(folder)).stdout
    vision = {"depth": 2, "embed_dim": 64, "num_heads": 2, "hidden_size": 896}
    config = {"model_type": "qwen2_vl", "text_config": CONFIG, "vision_config": vision}
    (folder / "config.json").write_text(json.dumps(config))
    done = kvplan("models", "add", str(folder))
    assert done.returncode == 0, done.stderr
    assert (
        "processor:\n  config:\n    max_pixels: 1003520\n  source: preprocessor_config.json\n"
    ) in done.stdout


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("config.json", '{"model_type": "never_heard_of"}', 4),
        ("config.json", '{"model_type": "llama"}', 2),
        ("config.json", "{", 2),
    ],
)
def test_refusals(kvplan: Command, tmp_path: Path, name: str, data: str, code: int) -> None:
    (tmp_path / name).write_text(data)
    done = kvplan("models", "add", name, "--output", "new.yaml")
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "new.yaml").exists()


def test_a_gguf_file_has_no_configuration(kvplan: Command, tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(header(LLAMA, {}))
    done = kvplan("models", "add", "model.gguf")
    assert done.returncode == 2
    assert "GGUF file has none" in done.stderr


def test_no_such_model(kvplan: Command) -> None:
    done = kvplan("models", "add", "org/no-such-model", "--offline")
    assert done.returncode == 3
    assert done.stdout == ""
