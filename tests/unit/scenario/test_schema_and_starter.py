"""The JSON Schema says what the loader says; the starter is a file that passes both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kvplan.errors import InputError, UsageError
from kvplan.scenario.command import read_command
from kvplan.scenario.schema import json_schema
from kvplan.scenario.starter import starter
from tests.scenario_files import HEAD, LLAMA, loaded, one, questions, write

VALIDATOR = jsonschema.Draft202012Validator(json_schema())
FOLDER = Path(__file__).parents[3] / "examples"
EXAMPLES = sorted((*(FOLDER / "ci" / "deployments").glob("*.yaml"), FOLDER / "kvplan.yaml"))


def complaints(text: str) -> list[str]:
    data: Any = yaml.safe_load(text)
    return [error.message for error in VALIDATOR.iter_errors(data)]


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_every_key_is_described() -> None:
    schema = json_schema()
    for name, part in [("file", schema), *schema["$defs"].items()]:
        for key, value in part.get("properties", {}).items():
            assert value.get("description"), f"{name}.{key}"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_are_valid(path: Path) -> None:
    assert complaints(path.read_text(encoding="utf-8")) == []


GOOD = [
    "context: 32k",
    "context: auto",
    "context: max",
    "context: 131072",
    "tp: ${TP:-1}",
    "concurrency: ${N:-2}",
    "kv_budget: 40.5GiB",
    "workload: {sessions: {ttl: 15min}}",
    "workload: {sessions: {ttl: 900}}",
    "matrix: {tp: [1, 2]}",
    "prices: {gpu_hour: 2.5, currency: EUR}",
]
BAD = [
    "context: 32 parsecs",
    "context: 0",
    "tp: two",
    "tp: 0",
    "kv_budget: lots",
    "workload: {sessions: {ttl: 5 minutes}}",
    "workload: {prefixes: [{tokens: 4}]}",
    "workload: {prefixes: [{name: p, tokens: 4, scope: everybody}]}",
    "matrix: {tp: []}",
    "prices: {gpu_hour: 2.5, currency: euro}",
    "prices: {}",
    "unknown: 1",
    "expect: requests >= 3",
]


@pytest.mark.parametrize("body", GOOD)
def test_schema_and_loader_accept_the_same(body: str, tmp_path: Path) -> None:
    assert complaints(HEAD + one(body)) == []
    assert loaded(write(tmp_path, one(body)))


@pytest.mark.parametrize("body", BAD)
def test_schema_and_loader_refuse_the_same(body: str, tmp_path: Path) -> None:
    assert complaints(HEAD + one(body))
    with pytest.raises(InputError):
        loaded(write(tmp_path, one(body)))


COMMAND = """\
export CUDA_VISIBLE_DEVICES=0
docker run -e HF_TOKEN=${HF_TOKEN} vllm/vllm-openai:v0.10.1 \\
\t--model Qwen/Qwen3-8B --max-model-len 16384 --max-num-seqs 64 --made-up-flag 3
"""


def test_a_starter_keeps_the_command_and_is_valid(tmp_path: Path) -> None:
    text = starter(
        gpu="H100",
        engine="vllm==0.10.1",
        file="kvplan.yaml",
        command=COMMAND,
        read=read_command(COMMAND, "here"),
    )
    assert complaints(text) == []
    path = tmp_path / "kvplan.yaml"
    path.write_text(text, encoding="utf-8")
    (asked,) = questions(path)
    assert (asked.model, asked.context, asked.engine) == ("Qwen/Qwen3-8B", 16384, "vllm==0.10.1")
    assert asked.options["max_num_seqs"] == 64
    assert asked.scenario.command is not None
    assert "${HF_TOKEN}" in asked.scenario.command
    assert "# Not planned: " in text


def test_a_starter_without_a_command(tmp_path: Path) -> None:
    text = starter(gpu="custom:48GiB", engine="sglang==0.5.2", file="k.yaml", model=LLAMA)
    path = tmp_path / "k.yaml"
    path.write_text(text, encoding="utf-8")
    (asked,) = questions(path)
    assert (asked.model, asked.gpu, asked.context) == (LLAMA, "custom:48GiB", 32768)


def test_a_starter_needs_a_model() -> None:
    with pytest.raises(UsageError, match="No model is named"):
        starter(gpu="H100", engine="vllm", file="x")


def test_what_the_starter_comments_out_is_valid_too(tmp_path: Path) -> None:
    text = starter(gpu="H100", engine="vllm==0.33.0", file="k.yaml", model=LLAMA)
    body = text.partition("# Requests at once")[2]
    lines = [
        line.replace("# ", "", 1) if line.lstrip().startswith(("# ", "#   ")) else line
        for line in body.split("\n")[1:]
    ]
    whole = text.partition("    # Requests at once")[0] + "\n".join(lines)
    assert json.dumps(yaml.safe_load(whole))
    assert complaints(whole) == []
    path = tmp_path / "k.yaml"
    path.write_text(whole, encoding="utf-8")
    (asked,) = questions(path)
    assert asked.workload.prefixes[0].tokens == 1200
    assert len(asked.scenario.expect or ()) == 5
