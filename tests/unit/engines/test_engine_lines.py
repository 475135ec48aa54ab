"""The lines that start SGLang, TensorRT-LLM and Ollama as planned."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from kvplan import api
from kvplan.engines.launch import Asked
from kvplan.engines.ollama import command_emit as ollama
from kvplan.engines.sglang import command_emit as sglang
from kvplan.engines.tensorrt_llm import command_emit as tensorrt_llm
from kvplan.errors import UsageError

MODEL = "Qwen/Qwen3-8B"
EMITS = {"sglang": sglang.emit, "tensorrt-llm": tensorrt_llm.emit, "ollama": ollama.emit}


def emitted(engine: str, /, model: str = MODEL, **changes: Any) -> str:
    wish: dict[str, Any] = {
        "context": 8192,
        "weights": "auto",
        "kv_dtype": "auto",
        "dtype": "auto",
    } | changes
    spread = {name: wish.pop(name) for name in ("tp", "pp", "dp", "context") if name in wish}
    options = wish.pop("options", {})
    budget = wish.pop("kv_budget", None)
    plan = api.size(
        model, "H100", engine=engine, offline=True, advice=False, engine_options=options,
        kv_budget=budget, **spread, **wish,
    )  # fmt: skip
    asked = Asked(
        model=model, kv_budget=None if budget is None else (budget,), options=options, **wish
    )
    return EMITS[plan.engine.name](plan, asked)


NO_GRAPHS = "--cuda-graph-backend-decode disabled --cuda-graph-backend-prefill disabled"
SGLANG = f"python -m sglang.launch_server --model-path {MODEL}"


@pytest.mark.parametrize(
    ("engine", "changes", "line"),
    [
        ("sglang", {}, "--context-length 8192"),
        ("sglang", {"tp": 2, "pp": 2, "dp": 2},
         "--tp-size 2 --pp-size 2 --dp-size 2 --context-length 8192"),
        ("sglang", {"kv_dtype": "fp8", "weights": "fp8", "dtype": "float16"},
         "--context-length 8192 --quantization fp8 --kv-cache-dtype fp8_e4m3 --dtype float16"),
        ("sglang", {"options": {"mem-fraction-static": 0.9, "disable_radix_cache": True,
                                "disable_overlap_schedule": False, "page_size": 16}},
         "--context-length 8192 --mem-fraction-static 0.9 --disable-radix-cache --page-size 16"),
        ("sglang", {"options": {"cuda_graph_max_bs": 64}},
         "--context-length 8192 --cuda-graph-max-bs-decode 64"),
        ("sglang==0.5.12", {"options": {"cuda_graph_max_bs": 64}},
         "--context-length 8192 --cuda-graph-max-bs 64"),
        ("sglang", {"options": {"disable_cuda_graph": True}},
         f"--context-length 8192 {NO_GRAPHS}"),
        ("sglang==0.5.12", {"options": {"disable_cuda_graph": True}},
         "--context-length 8192 --disable-cuda-graph"),
        ("sglang", {"tp": 4, "dp": 2, "options": {"dp_size": 2, "enable_dp_attention": True}},
         "--tp-size 4 --dp-size 2 --attn-dp-size 2 --context-length 8192"),
        ("sglang==0.5.21", {"tp": 4, "options": {"dp_size": 2, "enable_dp_attention": True}},
         "--tp-size 4 --dp-size 2 --enable-dp-attention --context-length 8192"),
        # Qwen3-8B keeps 147,456 bytes a token.
        ("sglang", {"kv_budget": 147_456 * 40_000},
         "--context-length 8192 --max-total-tokens 40000"),
        ("sglang==0.5.15", {"options": {"mamba_radix_cache_strategy": "no_buffer"}},
         "--context-length 8192 --mamba-scheduler-strategy no_buffer"),
    ],
)  # fmt: skip
def test_the_line_for_sglang(engine: str, changes: dict[str, Any], line: str) -> None:
    """Names that changed are those of the release."""
    assert emitted(engine, **changes) == f"{SGLANG} {line}"


def test_sglang_is_given_leave_for_a_longer_context() -> None:
    words = shlex.split(emitted("sglang", context=100_000))
    assert words[0] == "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"


SHARED = {"free_gpu_memory_fraction": 0.8}
TRTLLM = f"trtllm-serve {MODEL}"
BATCH = "--max_batch_size 64 --max_num_tokens 4096 --kv_cache_free_gpu_memory_fraction 0.8"
FROM_FILE = "--max_seq_len 8192 --extra_llm_api_options trtllm.yaml"


@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({}, [f"{TRTLLM} --max_seq_len 8192"]),
        (
            {"tp": 2, "pp": 2, "options": {"max_num_tokens": 4096, "max_batch_size": 64, **SHARED}},
            [f"{TRTLLM} --tp_size 2 --pp_size 2 --max_seq_len 8192 {BATCH}"],
        ),
        (
            {
                "kv_dtype": "fp8",
                "options": {
                    "host_cache_size": "1GiB",
                    "max_attention_window": "512,8192",
                    **SHARED,
                },
            },
            [
                "cat > trtllm.yaml <<'EOF'",
                "kv_cache_config:",
                "  dtype: fp8",
                "  max_attention_window: [512, 8192]",
                "  host_cache_size: 1073741824",
                "  free_gpu_memory_fraction: 0.8",
                "EOF",
                f"{TRTLLM} {FROM_FILE}",
            ],
        ),
        (
            {
                "tp": 2,
                "dtype": "float16",
                "kv_budget": 2**30,
                "options": {"enable_attention_dp": True, "enable_block_reuse": False},
            },
            [
                "cat > trtllm.yaml <<'EOF'",
                "kv_cache_config:",
                "  max_gpu_total_bytes: 1073741824",
                "  enable_block_reuse: false",
                "dtype: float16",
                "enable_attention_dp: true",
                "EOF",
                f"{TRTLLM} --tp_size 2 {FROM_FILE}",
            ],
        ),
    ],
)
def test_the_lines_for_tensorrt_llm(changes: dict[str, Any], lines: list[str]) -> None:
    """What has no flag stands in a file, the fraction with it: the file's part wins whole."""
    assert emitted("tensorrt-llm", **changes).splitlines() == lines


def test_the_lines_for_ollama() -> None:
    text = emitted(
        "ollama",
        options={"num_parallel": 2, "kv_cache_type": "q8_0", "flash_attention": True,
                 "num_batch": 256},
    )  # fmt: skip
    assert text.splitlines() == [
        "OLLAMA_NUM_PARALLEL=2 OLLAMA_KV_CACHE_TYPE=q8_0 OLLAMA_FLASH_ATTENTION=1 ollama serve &",
        "cat > Modelfile <<'EOF'",
        "FROM ./Qwen3-8B.gguf",
        "PARAMETER num_ctx 8192",
        "PARAMETER num_batch 256",
        "EOF",
        "ollama create qwen3-8b -f Modelfile",
        "ollama run qwen3-8b",
    ]


def test_names_in_ollama_have_no_blanks() -> None:
    plan = api.size(MODEL, "H100", engine="ollama", offline=True, advice=False)
    lines = ollama.emit(plan, Asked(model="files/My model Q4.gguf")).splitlines()
    assert lines[2] == "FROM ./files/My model Q4.gguf"
    assert lines[-1] == "ollama run my-model-q4"


@pytest.mark.parametrize(
    ("engine", "changes", "why"),
    [
        ("sglang", {"weights": "int8"}, "SGLang does not make int8 weights"),
        ("sglang==0.5.12", {"tp": 2, "dp": 2,
                            "options": {"dp_size": 2, "enable_dp_attention": True}},
         "has one --dp-size"),
        ("sglang", {"model": "Qwen/Qwen3.5-27B", "kv_budget": 2**34}, "no flag for the bytes"),
        ("tensorrt-llm==0.19", {}, "since 1.0, not for 0.19"),
        ("tensorrt-llm", {"weights": "fp8"}, "does not make fp8 weights"),
        ("tensorrt-llm", {"dp": 2}, "starts one replica"),
    ],
)  # fmt: skip
def test_what_has_no_flag_is_refused(engine: str, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        emitted(engine, **changes)
    assert caught.value.location == "--emit"


@pytest.mark.parametrize("engine", list(EMITS))
def test_a_model_on_standard_input_has_no_name(engine: str) -> None:
    plan = api.size(MODEL, "H100", engine=engine, offline=True, advice=False)
    with pytest.raises(UsageError, match="standard input"):
        EMITS[engine](plan, Asked(model="-"))
