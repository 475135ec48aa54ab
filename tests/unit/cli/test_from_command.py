"""`--from-command` on the command line: manifests, standard input, and flags beside it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kvplan.cli import from_command
from kvplan.cli.main import run
from kvplan.cli.request import Request, onto
from kvplan.engines.vllm.command_read import Command
from kvplan.errors import InputError, KvplanError, UsageError

# https://docs.vllm.ai/en/v0.8.2/deployment/k8s.html, shortened
KUBERNETES = """\
cat <<EOF |kubectl apply -f -
apiVersion: v1
kind: Secret
metadata:
  name: hf-token-secret
data:
  token: $(HF_TOKEN)
---
apiVersion: apps/v1
kind: Deployment
spec:
  template:
    spec:
      initContainers:
      - image: busybox
        command: ["sh", "-c", "sleep 1"]
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.8.2
        command: ["/bin/sh", "-c"]
        args: [
          "vllm serve meta-llama/Llama-3.2-1B-Instruct"
        ]
        env:
        - name: HUGGING_FACE_HUB_TOKEN
EOF
"""
# https://aws.github.io/deep-learning-containers/vllm/deployment/eks/, shortened
EKS = """\
containers:
  - name: vllm
    image: public.ecr.aws/deep-learning-containers/vllm:server-cuda
    args:
      - "--model"
      - "openai/gpt-oss-20b"
      - "--port"
      - "8000"
"""
# A sidecar stands before the server, which has several replicas.
SIDECAR = """\
kind: Deployment
spec:
  replicas: 3
  template:
    spec:
      containers:
        - name: metrics
          image: prom/statsd-exporter
          args: ["--model-metrics", "x"]
        - name: server
          image: vllm/vllm-openai:v0.12.0
          command: [vllm, serve]
          args: [a/b]
"""
# https://cd-linux.club/?p=179, shortened
COMPOSE = """\
services:
  vllm:
    environment:
      - HUGGING_FACE_HUB_TOKEN=${HF_TOKEN}
    command: >
      --model Qwen/Qwen2.5-3B-Instruct-GPTQ-Int4
      --max-model-len 8192
      --enforce-eager
"""


@pytest.mark.parametrize(
    ("text", "model", "version"),
    [
        (KUBERNETES, "meta-llama/Llama-3.2-1B-Instruct", "0.8.2"),
        (EKS, "openai/gpt-oss-20b", None),
        (COMPOSE, "Qwen/Qwen2.5-3B-Instruct-GPTQ-Int4", None),
        ('["--model", "a/b", "--max-model-len", "8192"]', "a/b", None),
        ("- --model=a/b\n- --tensor-parallel-size\n- 2\n", "a/b", None),
        ("- serve\n- a/b\n", "a/b", None),
        ('args: ["--model", "a/b"]\n', "a/b", None),
        ('{"image": "x/vllm:v0.20.0", "args": ["a/b", "--enforce-eager"]}', "a/b", "0.20.0"),
        ("entrypoint: [bash, -c, 'echo hi; vllm serve a/b']\n", "a/b", None),
        (SIDECAR, "a/b", "0.12.0"),
        (SIDECAR.replace("image: vllm/vllm-openai:v0.12.0", "x: y"), "a/b", None),
    ],
)
def test_manifests(text: str, model: str, version: str | None) -> None:
    command = from_command.read(text)
    assert (command.model, command.version) == (model, version)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("args: [sleep, 1]\n", UsageError, "No container in that text starts vLLM"),
        ("kind: Pod\n", UsageError, "No container in that text starts vLLM"),
        ("args: [\n", InputError, "."),
        ("[1, [2]]", UsageError, "holds no arguments"),
        ('args: ["--max-model-len", "$(LEN)"]', UsageError, "only a shell can fill in"),
        ("vllm serve --config /nowhere/at/all.yaml", InputError, "can't be read"),
    ],
)
def test_what_cannot_be_read(text: str, error: type[KvplanError], message: str) -> None:
    with pytest.raises(error, match=message):
        from_command.read(text)


def test_replicas_are_said() -> None:
    command = from_command.read(SIDECAR)
    assert "One of 3 replicas is planned; --dp 3 counts them all." in command.remarks
    assert from_command.read(SIDECAR.replace("replicas: 3", "replicas: 1")).remarks == ()


def test_a_container_has_an_environment() -> None:
    command = from_command.read(
        "args: [--model, a/b]\nenv: [{name: VLLM_USE_V1, value: '0'}, {name: X, valueFrom: {}}]\n"
    )
    assert command.options == {"use_v1": False}


@pytest.mark.parametrize("written", ["[VLLM_USE_V1=0, HF_TOKEN]", "{VLLM_USE_V1: 0, X: null}"])
def test_a_service_of_compose_has_an_environment(written: str) -> None:
    command = from_command.read(
        "services:\n  a:\n    image: vllm/vllm-openai:v0.8.5\n    command: --model a/b\n"
        f"    environment: {written}\n"
    )
    assert (command.model, command.version, command.options) == ("a/b", "0.8.5", {"use_v1": False})


@pytest.mark.parametrize(
    ("flag", "named"),
    [
        ("--attention_config.use_fp4_indexer_cache=True", "use_fp4_indexer_cache"),
        ('--attention-config \'{"indexer_kv_dtype": "mxfp4"}\'', "indexer_kv_dtype"),
        ("--attention_config.use_fp4_indexer_cache=False", None),
        ("--attention-config.indexer_kv_dtype auto", None),
    ],
)
def test_a_type_of_the_indexers_cache_is_said(flag: str, named: str | None) -> None:
    said = from_command.read(f"vllm serve a/b {flag}").remarks
    assert [one.partition(" is not planned")[0] for one in said] == (
        [] if named is None else [f"--attention-config.{named}"]
    )


def test_a_model_of_another_machine_is_to_be_named(tmp_path: Path) -> None:
    away = f"{tmp_path}/gone/model"
    request = Request(model=away, gpu="L4", engine="vllm")
    with pytest.raises(UsageError, match="is not on this machine") as raised:
        from_command.with_weights(request, from_command.read(f"vllm serve {away}"))
    assert raised.value.hint is not None
    assert "kvplan size ORG/NAME" in raised.value.hint
    named = Request(model="a/b", gpu="L4", engine="vllm")
    assert from_command.with_weights(named, from_command.read(f"vllm serve {away}")) is named


def test_a_config_file_is_read(tmp_path: Path) -> None:
    target = tmp_path / "flags.yaml"
    target.write_text("model: a/b\ntensor-parallel-size: 2\nenforce-eager: true\n")
    command = from_command.read(f"vllm serve --config {target} -tp 4")
    assert (command.model, command.tp, command.options) == ("a/b", 4, {"enforce_eager": True})


class _Stdin:
    def __init__(self, data: bytes) -> None:
        self.buffer = io.BytesIO(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", "no command"), (b"  \n", "no command"), (b"x" * (2**20 + 1), "too long")],
)
def test_standard_input_has_to_hold_a_command(
    monkeypatch: pytest.MonkeyPatch, data: bytes, message: str
) -> None:
    monkeypatch.setattr(sys, "stdin", _Stdin(data))
    with pytest.raises(UsageError, match=message):
        from_command.read("-")


def test_standard_input_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", _Stdin(b"\xff\xfe"))
    with pytest.raises(InputError, match="no text in UTF-8"):
        from_command.read("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="closed"):
        from_command.read("-")
    monkeypatch.setattr(sys, "stdin", _Stdin(b"vllm serve \\\n  a/b\n"))
    assert from_command.read("-").model == "a/b"


COMMAND = Command(
    model="a/b",
    version="0.11.0",
    tp=4,
    context="auto",
    kv_dtype="fp8",
    options={"max_num_seqs": 8, "enforce_eager": True},
)


def test_the_command_fills_what_the_flags_leave_open() -> None:
    request, remarks = onto(Request(model=None, gpu="H100"), COMMAND, lambda _name: False)
    assert request == Request(
        model="a/b",
        gpu="H100",
        engine="vllm==0.11.0",
        tp=4,
        context="auto",
        kv_dtype="fp8",
        options={"max_num_seqs": 8, "enforce_eager": True},
    )
    assert remarks == ()


def test_flags_beside_the_command_win_and_it_is_said() -> None:
    asked = Request(
        model="c/d", gpu="H100", engine="vllm==0.20.0", tp=2, context=1024,
        options={"max_num_seqs": 9, "block_size": 32},
    )  # fmt: skip
    request, remarks = onto(asked, COMMAND, lambda name: name in ("engine", "tp", "context"))
    assert (request.model, request.engine, request.tp, request.context, request.kv_dtype) == (
        *("c/d", "vllm==0.20.0", 2, 1024, "fp8"),
    )
    assert request.options == {"max_num_seqs": 9, "enforce_eager": True, "block_size": 32}
    assert remarks == (
        "--tp 2 wins over the command's --tensor-parallel-size 4.",
        "--context 1024 wins over the command's --max-model-len 'auto'.",
        "The model named beside the command is planned, not a/b.",
        "-o max_num_seqs 9 wins over the command's --max-num-seqs 8.",
    )


def test_another_engine_has_other_commands() -> None:
    with pytest.raises(UsageError, match="reads commands of vLLM, not of 'sglang'"):
        onto(Request(model=None, gpu="L4", engine="sglang"), COMMAND, lambda _name: True)


def planned(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any, str]:
    code = run(["size", "--gpu", "H100", "--offline", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_command_is_planned_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    line = "vllm serve Qwen/Qwen3-8B --max-model-len 8192 --gpu-memory-utilization 0.8 --foo 1"
    code, out, err = planned(capsys, "--from-command", line, "--format", "json")
    plan = json.loads(out)
    assert code == 0
    assert plan["workload"]["context"] == 8192
    assert plan["engine"]["options"]["gpu_memory_utilization"] == 0.8
    assert "gpu_memory_utilization" not in plan["engine"]["assumed"]
    said = "--foo is no flag of vLLM's that kvplan knows."
    assert err == f"kvplan: {said}\n"
    assert {"code": "command_line", "message": said, "hint": None} in plan["reasons"]


def test_quiet_says_it_in_the_plan_alone(capsys: pytest.CaptureFixture[str]) -> None:
    line = "vllm serve Qwen/Qwen3-8B --foo 1"
    _, out, err = planned(capsys, "--quiet", "--from-command", line, "--format", "json")
    assert err == ""
    assert "--foo" in out


def test_weights_are_quantized_while_loading_only_if_they_are_plain(
    capsys: pytest.CaptureFixture[str],
) -> None:
    weights = {}
    for line in (
        "vllm serve Qwen/Qwen3-8B",
        "vllm serve Qwen/Qwen3-8B -q fp8",
        "vllm serve Qwen/Qwen3-8B-FP8",
        "vllm serve Qwen/Qwen3-8B-FP8 -q fp8",
    ):
        _, out, _ = planned(capsys, "--from-command", line, "--format", "json")
        ledger = json.loads(out)["ledger"]
        weights[line[11:]] = sum(
            part["bytes"] for part in ledger if part["name"].startswith("weights.")
        )
    assert weights["Qwen/Qwen3-8B -q fp8"] < 0.7 * weights["Qwen/Qwen3-8B"]
    assert weights["Qwen/Qwen3-8B-FP8 -q fp8"] == weights["Qwen/Qwen3-8B-FP8"]


def test_somebody_has_to_name_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ((), ("--from-command", "vllm serve --port 80")):
        code, out, err = planned(capsys, *words)
        assert (code, out) == (2, "")
        assert "MODEL is missing." in err
