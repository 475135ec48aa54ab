"""`--emit docker` and `--emit helm`: what a shell and YAML make of them, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml
from small_models import SMALL

from kvplan.cli.main import run
from kvplan.engines.docker import HOME

MODEL = "Qwen/Qwen3-8B"
HOSTILE = """it's $(touch pwned) `touch pwned` "q" ; touch pwned"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def local_model(name: str) -> Path:
    path = Path(name)
    path.mkdir()
    (path / "config.json").write_text(json.dumps(SMALL["GQA"]), encoding="utf-8")
    return path


def emitted(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """What is printed for these arguments."""
    assert run(["size", *words, "--gpu", "H100", "--offline"]) == code, capsys.readouterr().err
    return capsys.readouterr().out


def as_run(text: str, folder: Path) -> list[list[str]]:
    """The arguments that ``docker`` gets when a shell runs the text."""
    tools = folder / "tools"
    tools.mkdir()
    docker = tools / "docker"
    docker.write_text('#!/bin/sh\nprintf "%s\\0" "$@" ; printf "\\n\\0"\n', encoding="utf-8")
    docker.chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-eu", "-c", text],
        cwd=folder,
        env={"PATH": path, "HOME": "/home", "PWD": str(folder)},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return [part.split("\0")[:-1] for part in done.stdout.split("\n\0")[:-1]]


EVERYWHERE = ["--host", "0.0.0.0"]  # noqa: S104 - inside a container
CACHE = ".cache/huggingface"
HUB = ["--ipc=host", "-v", f"/home/{CACHE}:{HOME}/{CACHE}", "-e", "HF_TOKEN"]


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("vllm==0.20", ["--rm", "--gpus", "1", *HUB, "-p", "8000:8000",
                        "vllm/vllm-openai:v0.20.0", "--model", MODEL, "--max-model-len", "8192"]),
        ("sglang==0.5.18", ["--rm", "--gpus", "1", *HUB, "-p", "30000:30000",
                            "lmsysorg/sglang:v0.5.18", "python3", "-m", "sglang.launch_server",
                            "--model-path", MODEL, "--context-length", "8192",
                            *EVERYWHERE]),
        ("tensorrt-llm==1.2.1", ["--rm", "--gpus", "1", *HUB, "--ulimit", "memlock=-1", "--ulimit",
                                 "stack=67108864", "-p", "8000:8000",
                                 "nvcr.io/nvidia/tensorrt-llm/release:1.2.1", "trtllm-serve",
                                 MODEL, "--max_seq_len", "8192", *EVERYWHERE]),
        ("llama.cpp==b10488", ["--rm", "--gpus", "1", "-p", "8080:8080", "--mount",
                               "type=bind,source={here},target=/models,readonly",
                               "ghcr.io/ggml-org/llama.cpp:server-cuda-b10488", "-m",
                               "/models/Qwen3-8B.gguf", "-c", "8192", "-np", "1", "-ngl", "all"]),
    ],
)  # fmt: skip
def test_each_engine_has_its_image(
    engine: str, expected: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = emitted(capsys, MODEL, "--engine", engine, "--context", "8k", "--emit", "docker")
    (words,) = as_run(text, folder)
    assert words == ["run", *(word.format(here=folder) for word in expected)]


def test_what_a_server_reads_from_a_file_is_mounted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = emitted(
        capsys, MODEL, "--engine", "tensorrt-llm", "--kv-dtype", "fp8", "--context", "8k",
        "--emit", "docker",
    )  # fmt: skip
    (words,) = as_run(text, folder)
    assert f"type=bind,source={folder}/trtllm.yaml,target=/trtllm.yaml,readonly" in words
    assert words[words.index("--extra_llm_api_options") + 1] == "/trtllm.yaml"
    written = yaml.safe_load((folder / "trtllm.yaml").read_text(encoding="utf-8"))
    assert written == {"kv_cache_config": {"dtype": "fp8"}}


def test_ollama_makes_its_model_inside(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = emitted(
        capsys, MODEL, "--engine", "ollama", "--context", "8k", "--kv-dtype", "q8_0",
        "--weights", "gguf:Q4_K_M", "--emit", "docker",
    )  # fmt: skip
    server, copy, create, start = as_run(text, folder)
    assert "OLLAMA_KV_CACHE_TYPE=q8_0" in server
    assert server[-1] == "ollama/ollama:0.33.0"
    assert copy == ["cp", "Modelfile", f"ollama:{HOME}/Modelfile"]
    name = "qwen3-8b-q4_k_m"
    assert create == ["exec", "ollama", "ollama", "create", name, "-f", f"{HOME}/Modelfile"]
    assert start == ["exec", "-it", "ollama", "ollama", "run", name]
    lines = (folder / "Modelfile").read_text(encoding="utf-8").splitlines()
    assert lines == ["FROM /models/Qwen3-8B-Q4_K_M.gguf", "PARAMETER num_ctx 8192"]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "llama.cpp"])
def test_hostile_names_stay_names(
    engine: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder's name is one argument: nothing in it is run."""
    name = HOSTILE.replace('"', "") if engine != "vllm" else HOSTILE.replace('"', "'")
    path = local_model(name)
    text = emitted(
        capsys, f"./{path}/config.json", "--engine", engine, "--context", "256", "--emit", "docker"
    )
    (words,) = as_run(text, folder)
    assert not (folder / "pwned").exists()
    if engine == "llama.cpp":
        assert f"/models/{name}.gguf" in words
        return
    whole = str(folder / name)
    assert whole in words
    assert f"type=bind,source={whole},target={whole},readonly" in words


@pytest.mark.usefixtures("folder")
def test_a_name_that_docker_cannot_mount_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    path = local_model("a,source=etc")
    assert emitted(capsys, f"./{path}", "--context", "256", "--emit", "docker", code=2) == ""


def test_local_drafts_are_mounted_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, draft = local_model("big"), local_model("small")
    config = json.dumps(
        {"model": f"./{draft}", "method": "draft_model", "num_speculative_tokens": 2}
    )
    text = emitted(
        capsys, f"./{model}", "--context", "256", "--emit", "docker",
        "-o", f"speculative_config={config}",
    )  # fmt: skip
    (words,) = as_run(text, folder)
    given = json.loads(words[words.index("--speculative-config") + 1])
    assert given["model"] == str(folder / "small")
    for mounted in (folder / "big", folder / "small"):
        assert f"type=bind,source={mounted},target={mounted},readonly" in words


def spec_of(text: str) -> dict[str, object]:
    (spec,) = yaml.safe_load(text)["servingEngineSpec"]["modelSpec"]
    return dict(spec)


def test_the_values_say_what_was_planned(capsys: pytest.CaptureFixture[str]) -> None:
    text = emitted(
        capsys, MODEL, "--tp", "2", "--dp", "2", "--context", "8k", "--emit", "helm",
        "-o", "max_num_seqs=64", "-o", "gpu_memory_utilization=0.8", "-o", "block_size=32",
        "-o", "enable_prefix_caching=false",
    )  # fmt: skip
    assert text.startswith("# Values of the chart vllm-stack 0.1.12 ")
    assert spec_of(text) == {
        "name": "qwen3-8b",
        "repository": "vllm/vllm-openai",
        "tag": "v0.33.0",
        "modelURL": MODEL,
        "replicaCount": 2,
        "requestCPU": 6,
        "requestMemory": "16Gi",
        "requestGPU": 2,
        "vllmConfig": {
            "enablePrefixCaching": False,
            "tensorParallelSize": 2,
            "maxModelLen": 8192,
            "gpuMemoryUtilization": 0.8,
            "maxNumSeqs": 64,
            "extraArgs": ["--block-size", "32"],
        },
    }


def test_replicas_that_share_experts_are_one_pod(capsys: pytest.CaptureFixture[str]) -> None:
    spec = spec_of(
        emitted(capsys, "Qwen/Qwen3-30B-A3B", "--dp", "4", "--context", "8k", "--emit", "helm")
    )
    assert (spec["replicaCount"], spec["requestGPU"]) == (1, 4)
    assert spec["vllmConfig"] == {
        "enablePrefixCaching": True,
        "tensorParallelSize": 1,  # so that the chart mounts shared memory
        "maxModelLen": 8192,
        "extraArgs": ["--data-parallel-size", "4"],
    }


def test_great_numbers_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    """Helm writes 1048576 as 1.048576e+06, which vLLM does not read."""
    spec = spec_of(emitted(capsys, MODEL, "--context", "1024k", "--emit", "helm", code=1))
    assert spec["vllmConfig"] == {
        "enablePrefixCaching": True,
        "extraArgs": ["--max-model-len", "1048576"],
    }
    assert spec["env"] == [{"name": "VLLM_ALLOW_LONG_MAX_MODEL_LEN", "value": "1"}]


def test_values_are_text_whatever_is_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    word = "a {{ .Values.x }} \"q\" 'r' \\ # é\u2028\U0001f600\x7f\x00: no"
    option = json.dumps({"image": 1, "kind": 2})
    spec = spec_of(
        emitted(capsys, MODEL, "--context", "8k", "--emit", "helm",
                "-o", f"attention_backend={word}", "-o", f"limit_mm_per_prompt={option}")
    )  # fmt: skip
    config = spec["vllmConfig"]
    assert isinstance(config, dict)
    assert config["extraArgs"] == [
        *("--attention-backend", word),
        *("--limit-mm-per-prompt", '{"image": 1, "kind": 2}'),
    ]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([MODEL, "--engine", "sglang", "--emit", "helm"], "no Helm chart for sglang"),
        ([MODEL, "--tp", "8", "--pp", "2", "--emit", "helm"], "A pod runs on one machine"),
        ([MODEL, "--dp", "16", "--emit", "docker"], "A container runs on one machine"),
        ([MODEL, "--gpu", "MI300X", "--emit", "docker"], "MI300X-192GB is none"),
        ([MODEL, "--gpu", "MI300X", "--emit", "helm"], "MI300X-192GB is none"),
        ([MODEL, "--engine", "transformers", "--emit", "docker"], "No server starts transformers"),
        ([MODEL, "--weights", "awq", "--emit", "docker"], "does not make awq weights"),
        ([MODEL, "--engine", "llama.cpp", "--kv-budget", "3GiB", "--emit", "docker"],
         "no flag for the bytes of its cache"),
        ([MODEL, "--engine", "ollama", "--dp", "2", "--emit", "ollama"], "starts one replica"),
        (["./here", "--emit", "helm"], "does not see the files of this machine"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_said_is_refused(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    local_model("here")
    gpu = [] if "--gpu" in words else ["--gpu", "H100"]
    context = "256" if words[0] == "./here" else "8k"
    assert run(["size", *words, *gpu, "--context", context, "--offline"]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert why in error
    assert "hint: " in error


def test_more_gpus_a_machine_may_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    text = emitted(capsys, MODEL, "--dp", "16", "--context", "8k", "--gpus-per-node", "16",
                   "--emit", "docker")  # fmt: skip
    assert "--gpus 16" in text


def test_there_is_no_line_where_no_length_fits(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["size", MODEL, "--gpu", "custom:8GiB", "--context", "auto", "--emit", "vllm",
                "--offline"]) == 1  # fmt: skip
    out, error = capsys.readouterr()
    assert out == ""
    assert "Does not fit" in error
