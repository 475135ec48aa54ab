"""`kvplan size` of a GGUF file: its engine, its report, the command that starts it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Command
from gguf_files import LLAMA, LLAMA_TENSORS, header


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "model.gguf").write_bytes(header(LLAMA, LLAMA_TENSORS))
    return "model.gguf"


ASKED = ("--gpu", "RTX 4090", "-o", "n_ctx=4096", "-o", "parallel=4", "-o", "cache_type_k=q8_0")


def test_a_gguf_file_is_planned_for_llama_cpp(kvplan: Command, model: str) -> None:
    done = kvplan("size", model, *ASKED, "--format", "json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["engine"]["name"] == "llama.cpp"
    # Two layers with two KV heads of 64.
    assert plan["kv"]["allocated_bytes"] == 2 * 4096 * (128 * 34 // 32 + 128 * 2)
    assert [device["name"] for device in plan["devices"]] == ["GPU0", "CPU"]


def test_the_command_line_that_starts_it(kvplan: Command, model: str) -> None:
    done = kvplan("size", model, *ASKED, "--emit", "llama.cpp")
    assert done.stdout == "llama-server -m model.gguf -c 4096 -np 4 -ngl all -ctk q8_0\n"
    assert done.stderr.startswith("llama.cpp 0.5.0: Fits:")


def test_another_engine_may_be_named(kvplan: Command, model: str) -> None:
    done = kvplan("size", model, "--gpu", "L4", "--engine", "ollama", "--format", "json")
    assert json.loads(done.stdout)["engine"]["name"] == "ollama"
    wrong = kvplan("size", model, "--gpu", "L4", "--engine", "vllm", "--emit", "llama.cpp")
    assert wrong.returncode == 2
    assert "--emit llama.cpp writes no command of vllm" in wrong.stderr


def test_devices_stand_in_the_report(kvplan: Command) -> None:
    words = ("--engine", "llama.cpp", "--offline", "--context", "8k", "--weights", "gguf:Q4_K_M")
    done = kvplan("size", "Qwen/Qwen3-8B", "--gpu", "L4 + T4 + cpu:32GiB", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Fits: L4-24GB + T4-16GB + cpu:32GiB hold ")
    assert "GPU1 T4-16GB" in done.stdout
    assert "CPU cpu:32GiB" in done.stdout
    narrow = kvplan(
        "size", "Qwen/Qwen3-8B", "--gpu", "L4 + T4", *words, variables={"COLUMNS": "60"}
    )
    assert all(len(line) <= 60 for line in narrow.stdout.splitlines())
