"""The JSON Schema says what the loader says; the starter is a file that passes both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kvplan.errors import KvplanError, UsageError
from kvplan.scenario.command import read_command
from kvplan.scenario.json_schema import json_schema
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
    "tp: 2",
    "tp: ${TP}",
    "tp: ${TP:-2}",
    "concurrency: null",
    "context: ${C}",
    "kv_budget: 80GB",
    "engine: vllm",
    "engine: vllm==0.33.0",
    "engine: llama.cpp==b9000",
    "engine: ${E}",
    "expect: [requests >= 5]",
    "expect: ['requests >= ${N}']",
    "expect: [verdict == fits, headroom>=10%]",
    "options: {a: 1}",
    "prices: {gpu_hour: 0, currency: '${CUR}'}",
    "workload: {input_tokens: 1k, output_tokens: 300}",
    "workload: {rate: 5/s, lengths: 1k/9, decode_rate: 9}",
    "workload: {rate: '${R}', lengths: 1k/9, decode_rate: 9}",
    "workload: {daily: peak=2.5, rate: 5/s, lengths: 1k/9, decode_rate: 9}",
    "workload: {risk: 0.1%}",
    "workload: {risk: 0.001}",
    "workload: {users: 5, think: 30s, lengths: 1k/9, decode_rate: 9}",
    "workload: {lengths: 'p50=1k,p95=8k/300'}",
    "workload: {prefixes: [{name: a, tokens: 5, share: 80%, change: 24h, scope: user}]}",
    "workload: {sessions: {turns: 3, ttl: 5min}, think: 1min, lengths: 2/3, decode_rate: 3}",
    "workload: {trace: a.csv}",
    "workload: null",
    "gpu: ${G}",
    "model: ${M}",
    "workload: {seconds_per_request: 12}",
    "workload: {tokens_p99: 4k}",
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
    "tp: 1.5",
    "tpp: 2",
    "concurrency: -1",
    "context: many",
    "context: 32 k k",
    "kv_budget: 5 apples",
    "engine: vlm",
    "engine: vllm==",
    "engine: vllm==x",
    "expect: requests >= 5",
    "expect: [requests]",
    "expect: [requests => 5]",
    "expect: ['nothing >= 5']",
    "expect: ['requests >= 5GiB']",
    "options: 3",
    "options: [a]",
    "command: ''",
    "pool: '-x'",
    "prices: {gpu_hour: -1}",
    "prices: {currency: USD}",
    "prices: {gpu_hour: 1, currency: usd}",
    "matrix: {tp: 3}",
    "matrix: {tpp: [1]}",
    "workload: {input_tokens: 0}",
    "workload: {rate: 5}",
    "workload: {rate: 5/week}",
    "workload: {daily: [1,2]}",
    "workload: {daily: noon}",
    "workload: {risk: 60%}",
    "workload: {risk: 0.9}",
    "workload: {risk: 0}",
    "workload: {users: 0}",
    "workload: {decode_rate: 0}",
    "workload: {decode_rate: fast}",
    "workload: {think: 5 weeks}",
    "workload: {think: 0s}",
    "workload: {lengths: 5}",
    "workload: {prefixes: {name: a}}",
    "workload: {prefixes: [{tokens: 5}]}",
    "workload: {prefixes: [{name: a, tokens: 5, scope: world}]}",
    "workload: {prefixes: [{name: a, tokens: 5, share: 120%}]}",
    "workload: {prefixes: [{name: a, tokens: 5, personal_data: maybe}]}",
    "workload: {sessions: {turns: 0}}",
    "workload: {sessions: {ttl: 5min, x: 1}}",
    "workload: {sessions: [1]}",
    "workload: {trace: ''}",
    "workload: {trace: 5}",
    "description: 5",
    "gpus_per_node: 0",
    "workload: {tokens_p99: 4 GiB}",
]
VARIABLES = {
    "TP": "2",
    "C": "8k",
    "E": "vllm==0.33.0",
    "N": "3",
    "CUR": "EUR",
    "R": "5/s",
    "G": "L4",
    "M": LLAMA,
}


@pytest.mark.parametrize("body", GOOD)
def test_schema_and_loader_accept_the_same(body: str, tmp_path: Path) -> None:
    assert complaints(HEAD + one(body)) == []
    assert loaded(write(tmp_path, one(body)), VARIABLES)


@pytest.mark.parametrize("body", BAD)
def test_schema_and_loader_refuse_the_same(body: str, tmp_path: Path) -> None:
    assert complaints(HEAD + one(body))
    with pytest.raises(KvplanError):
        questions(write(tmp_path, one(body)))


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


CHECKER = "check_jsonschema"


@pytest.mark.skipif(find_spec(CHECKER) is None, reason=f"{CHECKER} is not installed")
def test_a_validator_of_the_command_line_says_the_same(tmp_path: Path) -> None:
    """check-jsonschema as a team runs it: on the examples, and on a file that is wrong."""
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(json_schema()), encoding="utf-8")
    wrong = write(tmp_path, one("tp: two\nexpect: [requsts >= 5]"))
    command = [sys.executable, "-m", CHECKER, "--schemafile", str(schema)]
    for files, code in ((EXAMPLES, 0), ([wrong], 1)):
        done = subprocess.run(
            [*command, *map(str, files)],
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )
        assert done.returncode == code, done.stdout
    assert "$.scenarios.a.tp" in done.stdout
    assert "$.scenarios.a.expect" in done.stdout


@pytest.mark.parametrize(
    ("secret", "kept"),
    [
        ("--api-key s3cret", "--api-key LEFT-OUT"),
        ("--api-key=s3cret", "--api-key=LEFT-OUT"),
        ("--hf-token 's3cret two'", "--hf-token LEFT-OUT"),
        ("--api-key $API_KEY", "--api-key $API_KEY"),
    ],
)
def test_a_starter_leaves_secrets_out(secret: str, kept: str, tmp_path: Path) -> None:
    line = f"HF_TOKEN=s3cret vllm serve {LLAMA} {secret} --max-num-seqs 8"
    text = starter(
        gpu="L4-24GB", engine="vllm==0.33.0", file="f", command=line, read=read_command(line, "x")
    )
    assert "s3cret" not in text
    assert kept in text
    assert "# What the command keeps secret was left out" in text
    (asked,) = questions(write(tmp_path, text.partition(f"{HEAD}")[2]))
    assert asked.options == {"max_num_seqs": 8}
