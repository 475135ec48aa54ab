"""Command lines that start vLLM: as people wrote them in public, and as they could be written.

``source`` is where a line was found; of a long one only what starts the engine was kept, and home
folders are called something else. Lines without a source are made up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Line:
    """A line and what `kvplan.engines.vllm.command_read` makes of it: fields that are not None."""

    text: str
    expected: dict[str, Any] = field(default_factory=dict)
    source: str | None = None


_ISSUES = "https://github.com/vllm-project/vllm/issues"

_UNKNOWN = (
    "--gpu-memory-utilisation is no flag of vLLM's that kvplan knows."
    " Did you mean --gpu-memory-utilization?"
)

LINES: tuple[Line, ...] = (
    Line(
        "CUDA_VISIBLE_DEVICES=0,1 VLLM_USE_V1=1 VLLM_WORKER_MULTIPROC_METHOD=spawn vllm serve"
        " /models/Qwen/Qwen2.5-VL-3B-Instruct --gpu-memory-utilization 0.9"
        " --swap-space 16 --max-model-len 4096 --tensor-parallel-size 2 --port 8091"
        " --disable-custom-all-reduce",
        {
            "model": "/models/Qwen/Qwen2.5-VL-3B-Instruct",
            "tp": 2,
            "context": 4096,
            "options": {"use_v1": True, "gpu_memory_utilization": 0.9},
        },
        f"{_ISSUES}/15469",
    ),
    Line(
        "(qwen25vl) lzh@instance-aw1rhmsz-5:~/Code/qwen2_5vl$ vllm serve"
        " /models/Qwen/Qwen2___5-VL-72B-Instruct --dtype auto --host 127.0.0.1"
        " --port 6006 --tensor-parallel-size 4",
        {
            "model": "/models/Qwen/Qwen2___5-VL-72B-Instruct",
            "tp": 4,
            "dtype": "auto",
        },
        f"{_ISSUES}/13124",
    ),
    Line(
        "vllm==0.9.2\n\nexport  CUDA_VISIBLE_DEVICES=1,2\n\n"
        "vllm serve /mnt/general/models/Qwen3-30B-A3B-Instruct-2507-FP8  \\\n"
        "--served-model-name Qwen3-30B-A3B-Instruct-2507-FP8 \\\n--tensor-parallel-size 2 \\\n"
        "--pipeline-parallel-size 1 \\\n--gpu-memory-utilization  0.9 \\\n--port 8011 \\\n"
        "--trust-remote-code \\\n--max-model-len 64000 \\\n--enforce_eager true ",
        {
            "model": "/mnt/general/models/Qwen3-30B-A3B-Instruct-2507-FP8",
            "version": "0.9.2",
            "tp": 2,
            "pp": 1,
            "context": 64000,
            "options": {"gpu_memory_utilization": 0.9, "enforce_eager": True},
        },
        f"{_ISSUES}/22303",
    ),
    Line(
        "#!/usr/bin/env bash\npython -m vllm.entrypoints.openai.api_server --model"
        " internlm/internlm2_5-7b-chat --served-model-name internlm2_5-7b-chat"
        " --trust-remote-code --port 8082 --tensor-parallel-size 2\n",
        {"model": "internlm/internlm2_5-7b-chat", "tp": 2},
        f"{_ISSUES}/3525",
    ),
    Line(
        "python -m vllm.entrypoints.openai.api_server --model mistralai/Mixtral-8x7B-Instruct-v0.1"
        " --trust-remote-code --device cuda --tensor-parallel-size 4 --gpu-memory-utilization 0.95"
        " --swap-space 1 --dtype auto --api-key $OPENAI_API_KEY",
        {
            "model": "mistralai/Mixtral-8x7B-Instruct-v0.1",
            "tp": 4,
            "dtype": "auto",
            "options": {"gpu_memory_utilization": 0.95},
        },
        f"{_ISSUES}/3525",
    ),
    Line(
        "docker run --gpus 1\\\n    -e HF_TOKEN=$HF_TOKEN -p 8000:8000 \\\n"
        "    ghcr.io/mistralai/mistral-src/vllm:latest \\\n    --host 0.0.0.0 \\\n"
        "    --model mistralai/Mistral-7B-Instruct-v0.2\n",
        {"model": "mistralai/Mistral-7B-Instruct-v0.2"},
        "https://github.com/imoneoi/openchat/issues/153",
    ),
    Line(
        "DOCKER_BUILDKIT=1 docker build . --target vllm-openai --tag vllm/vllm-openai"
        " --build-arg MAX_JOBS=8\ndocker stop vllm_d\ndocker rm vllm_d\n"
        "docker run -d --restart unless-stopped \\\n    --runtime nvidia --gpus all \\\n"
        "    --name vllm_d \\\n    -v /data/models:/workspace/models \\\n"
        "    -p 5010:8000 \\\n    --shm-size 10.24g \\\n    --ipc=host \\\n"
        "    -e CUDA_VISIBLE_DEVICES=0,1 \\\n    -e NCCL_P2P_DISABLE=1 \\\n"
        "    vllm/vllm-openai:latest \\\n    --gpu-memory-utilization 0.7 --trust-remote-code \\\n"
        "    --max-model-len 8192 --model /workspace/models/Qwen1.5-7B-Chat \\\n"
        "    --served-model-name Qwen1.5-7B-Chat \\\n    --tensor-parallel-size 2 --enforce-eager\n"
        "docker logs -f vllm_d\n",
        {
            "model": "/workspace/models/Qwen1.5-7B-Chat",
            "tp": 2,
            "context": 8192,
            "options": {"gpu_memory_utilization": 0.7, "enforce_eager": True},
        },
        f"{_ISSUES}/3710",
    ),
    Line(
        "vllm serve unsloth/Qwen3.6-27B-NVFP4   --host 0.0.0.0   --port 8000"
        "   --served-model-name qwen3.6   --tensor-parallel-size 1   --gpu-memory-utilization 0.7"
        "   --max-model-len 1048576   --max-num-seqs 1   --max-num-batched-tokens 32768"
        "   --enable-prefix-caching   --enable-chunked-prefill   --async-scheduling"
        "   --trust-remote-code   --load-format fastsafetensors   --reasoning-parser qwen3"
        "   --tool-call-parser qwen3_xml   --enable-auto-tool-choice   --kv-cache-dtype nvfp4"
        """   --compilation-config '{"cudagraph_mode":"PIECEWISE"}'"""
        "   --attention-backend FLASHINFER   --enable-flashinfer-autotune"
        """   --speculative-config '{"method":"mtp","num_speculative_tokens":2}'"""
        """   --hf-overrides '{"text_config":{"rope_parameters":{"mrope_interleaved": true}}}'""",
        {
            "model": "unsloth/Qwen3.6-27B-NVFP4",
            "tp": 1,
            "context": 1048576,
            "kv_dtype": "nvfp4",
            "options": {
                "gpu_memory_utilization": 0.7,
                "max_num_seqs": 1,
                "max_num_batched_tokens": 32768,
                "enable_prefix_caching": True,
                "enable_chunked_prefill": True,
                "async_scheduling": True,
                "cudagraph_mode": "PIECEWISE",
                "attention_backend": "FLASHINFER",
                "speculative_config": {"method": "mtp", "num_speculative_tokens": 2},
            },
            "remarks": (
                "--hf-overrides is not planned: the model's configuration is planned as it is.",
            ),
        },
        f"{_ISSUES}/49011",
    ),
    Line(
        "vllm serve meta-llama/Llama-3.1-8B-Instruct \\\n    --trust-remote-code \\\n"
        "    --swap-space 16 \\\n    --disable-log-requests \\\n    --tensor-parallel-size 1 \\\n"
        "    --distributed-executor-backend mp \\\n    --dtype float16 \\\n"
        "    --quantization fp8 \\\n    --kv-cache-dtype fp8 \\\n"
        "    --no-enable-chunked-prefill \\\n    --max-num-seqs 300 \\\n"
        "    --max-num-batched-tokens 131072 \\\n"
        "    --gpu-memory-utilization 0.8 \\\n    --enforce-eager \\\n"
        """    --speculative_config '{"method": "eagle3", "model":"""
        """ "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "num_speculative_tokens": 2,"""
        """ "draft_tensor_parallel_size": 1}' \\\n    --port 8001""",
        {
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "tp": 1,
            "dtype": "float16",
            "quantization": "fp8",
            "kv_dtype": "fp8",
            "options": {
                "enable_chunked_prefill": False,
                "max_num_seqs": 300,
                "max_num_batched_tokens": 131072,
                "gpu_memory_utilization": 0.8,
                "enforce_eager": True,
                "speculative_config": {
                    "method": "eagle3",
                    "model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
                    "num_speculative_tokens": 2,
                    "draft_tensor_parallel_size": 1,
                },
            },
        },
        "https://github.com/vllm-project/vllm/pull/24505 (without the key dtype)",
    ),
    Line(
        "vllm serve RedHatAI/GLM-5.2-NVFP4-FP8 --tensor-parallel-size 4 --spec-model"
        " GLM-5.2-speculator.dspark --spec-method dspark --spec-tokens 7 --kv-cache-dtype fp8"
        " --speculative_config.kv_cache_dtype bfloat16",
        {
            "model": "RedHatAI/GLM-5.2-NVFP4-FP8",
            "tp": 4,
            "kv_dtype": "fp8",
            "options": {
                "speculative_config": {
                    "model": "GLM-5.2-speculator.dspark",
                    "method": "dspark",
                    "num_speculative_tokens": 7,
                    "kv_cache_dtype": "bfloat16",
                }
            },
        },
        "https://github.com/vllm-project/vllm/pull/48787",
    ),
    Line(
        "# vLLM serve with dynamic FP8 KV-cache\nvllm serve meta-llama/Llama-3.1-8B-Instruct \\\n"
        "   --kv-cache-dtype fp8 \\\n   --calculate-kv-scales \\\n   --gpu-memory-utilization 0.90",
        {
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "kv_dtype": "fp8",
            "options": {"gpu_memory_utilization": 0.9},
        },
        "https://github.com/ROCm/legacy-rocm-build/pull/5554",
    ),
    Line(
        "vllm serve Qwen/Qwen3-8B \\\n  -tp 1 \\\n  --speculative-config '{\n"
        '    "model": "RedHatAI/Qwen3-8B-speculator.eagle3",\n'
        '    "num_speculative_tokens": 3,\n    "method": "eagle3"\n  }\'\n',
        {
            "model": "Qwen/Qwen3-8B",
            "tp": 1,
            "options": {
                "speculative_config": {
                    "model": "RedHatAI/Qwen3-8B-speculator.eagle3",
                    "num_speculative_tokens": 3,
                    "method": "eagle3",
                }
            },
        },
        "https://docs.vllm.ai/projects/speculators/en/stable/user_guide/tutorials/serve_vllm/",
    ),
    Line(
        "vllm serve deepseek-ai/DeepSeek-R1-0528 \\\n  --trust-remote-code \\\n"
        "  --tensor-parallel-size 8 \\\n  --enable-expert-parallel",
        {
            "model": "deepseek-ai/DeepSeek-R1-0528",
            "tp": 8,
            "options": {"enable_expert_parallel": True},
        },
        "https://docs.vllm.ai/projects/recipes/en/latest/DeepSeek/DeepSeek-V3.html",
    ),
    Line(
        "vllm serve deepseek-ai/DeepSeek-R1-0528 \\\n  --trust-remote-code \\\n"
        "  --data-parallel-size 8 \\\n  --enable-expert-parallel",
        {
            "model": "deepseek-ai/DeepSeek-R1-0528",
            "dp": 8,
            "options": {"enable_expert_parallel": True},
        },
        "https://docs.vllm.ai/projects/recipes/en/latest/DeepSeek/DeepSeek-V3.html",
    ),
    Line(
        "vllm serve Qwen/Qwen3.6-35B-A3B \\\n  --tensor-parallel-size 8 \\\n"
        "  --max-model-len 262144 \\\n  --reasoning-parser qwen3 \\\n"
        """  --speculative-config '{"method": "mtp", "num_speculative_tokens": 2}'""",
        {
            "model": "Qwen/Qwen3.6-35B-A3B",
            "tp": 8,
            "context": 262144,
            "options": {"speculative_config": {"method": "mtp", "num_speculative_tokens": 2}},
        },
        "https://docs.vllm.ai/projects/recipes/en/latest/Qwen/Qwen3.5.html",
    ),
    Line(
        "docker run --gpus all \\\n  -p 8000:8000 \\\n  --ipc=host \\\n"
        "  -v ~/.cache/huggingface:/cache/huggingface \\\n"
        "  vllm/vllm-openai Qwen/Qwen3.5-397B-A17B \\\n    --tensor-parallel-size 8",
        {"model": "Qwen/Qwen3.5-397B-A17B", "tp": 8},
        "https://docs.vllm.ai/projects/recipes/en/latest/Qwen/Qwen3.5.html",
    ),
    Line(
        "# Run vLLM with Llama 3.1 8B Instruct\ndocker run -d \\\n--name vllm-server \\\n"
        """--gpus '"device=0"' \\\n-v hf-cache:/cache/huggingface \\\n-p 8000:8000 \\\n"""
        "-e HF_TOKEN=${HF_TOKEN} \\\nvllm/vllm-openai:latest \\\n"
        "--model meta-llama/Llama-3.1-8B-Instruct \\\n--max-model-len 4096 \\\n"
        "--gpu-memory-utilization 0.90 \\\n--dtype auto\n# Verify it\n",
        {
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "context": 4096,
            "dtype": "auto",
            "options": {"gpu_memory_utilization": 0.9},
        },
        "https://llmbook.apartsin.com/part-13-llmops-lifecycle/"
        "module-65-containers-kubernetes/section-65.4.html",
    ),
    Line(
        "--model Qwen/Qwen2.5-3B-Instruct-GPTQ-Int4\n--gpu-memory-utilization 0.78\n".replace(
            "\n", " "
        )
        + "--max-model-len 8192 --max-num-seqs 256 --enforce-eager --dtype half"
        " --api-key vllm-secret-key",
        {
            "model": "Qwen/Qwen2.5-3B-Instruct-GPTQ-Int4",
            "context": 8192,
            "dtype": "half",
            "options": {
                "gpu_memory_utilization": 0.78,
                "max_num_seqs": 256,
                "enforce_eager": True,
            },
        },
        "https://cd-linux.club/?p=179",
    ),
    # Made up from here on: one feature each.
    Line(
        "docker run vllm/vllm-openai:v0.11.0-x86_64 --model a/b",
        {"model": "a/b", "version": "0.11.0"},
    ),
    Line(
        "docker run -v ~/vllm:/cache/vllm --entrypoint bash nvcr.io/nvidia/vllm:25.09-py3"
        " -c 'vllm serve a/b -tp=2'",
        {"model": "a/b", "tp": 2},
    ),
    Line(
        "pip install vllm==0.8.5.post1 && vllm serve a/b",
        {"model": "a/b", "version": "0.8.5.post1"},
    ),
    Line(
        "nohup vllm serve a/b --max-model-len=32k > log 2>&1 &", {"model": "a/b", "context": 32000}
    ),
    Line("sudo -E vllm serve a/b --max-model-len 32K", {"model": "a/b", "context": 32768}),
    Line(
        "uv run --with vllm vllm serve a/b --max-model-len -1", {"model": "a/b", "context": "auto"}
    ),
    Line(
        "vllm serve a/b --max_model_len auto -pp 2 -dcp 4",
        {"model": "a/b", "context": "auto", "pp": 2, "dcp": 4},
    ),
    Line(
        "vllm serve --trust-remote-code a/b --max-num-batched-tokens 25.6k",
        {"model": "a/b", "options": {"max_num_batched_tokens": 25600}},
    ),
    Line(
        "vllm serve a/b --revision v2 --kv-cache-memory-bytes 20G",
        {"model": "a/b@v2", "options": {"kv_cache_memory_bytes": 20 * 2**30}},
    ),
    Line(
        "vllm serve a/b --no-enable-prefix-caching --no_async_scheduling",
        {"model": "a/b", "options": {"enable_prefix_caching": False, "async_scheduling": False}},
    ),
    Line(
        "vllm serve a/b --enable-chunked-prefill=False --enable-prefix-caching",
        {
            "model": "a/b",
            "options": {"enable_chunked_prefill": False, "enable_prefix_caching": True},
        },
    ),
    Line(
        "vllm serve a/b --kv-cache-dtype-skip-layers 0 31 sliding_window --kv-cache-dtype fp8",
        {
            "model": "a/b",
            "kv_dtype": "fp8",
            "options": {"kv_cache_dtype_skip_layers": ["0", "31", "sliding_window"]},
        },
    ),
    Line(
        "vllm serve a/b -O3 -cc.cudagraph_mode=FULL --cudagraph-capture-sizes 1 2 4 -ep",
        {
            "model": "a/b",
            "options": {
                "cudagraph_mode": "FULL",
                "cudagraph_capture_sizes": [1, 2, 4],
                "enable_expert_parallel": True,
            },
        },
    ),
    Line(
        "vllm serve a/b --speculative-model '[ngram]' --num-speculative-tokens 5"
        " --ngram-prompt-lookup-max 4",
        {
            "model": "a/b",
            "options": {
                "speculative_config": {
                    "method": "ngram",
                    "num_speculative_tokens": 5,
                    "prompt_lookup_max": 4,
                }
            },
        },
    ),
    Line(
        "vllm serve a/b --speculative-config.method mtp"
        " --speculative-config.num_speculative_tokens 3",
        {
            "model": "a/b",
            "options": {"speculative_config": {"method": "mtp", "num_speculative_tokens": 3}},
        },
    ),
    Line(
        "vllm serve a/b --tensor-parallel 4",
        {
            "model": "a/b",
            "tp": 4,
            "remarks": ("--tensor-parallel is taken for --tensor-parallel-size.",),
        },
    ),
    Line(
        "vllm serve a/b --gpu-memory-utilisation 0.8 --max-model-len 1024",
        {
            "model": "a/b",
            "context": 1024,
            "remarks": (_UNKNOWN,),
        },
    ),
    Line(
        "vllm bench throughput --model a/b --input-len 1024 --output-len 128 -tp 2",
        {"model": "a/b", "tp": 2, "entry": "llm", "options": {"usage_context": "llm"}},
    ),
    Line(
        "python benchmarks/benchmark_latency.py --model a/b --batch-size 8 --num-iters 3",
        {"model": "a/b", "entry": "llm", "options": {"usage_context": "llm"}},
    ),
    Line(
        "vllm run-batch -i in.jsonl -o out.jsonl --model a/b",
        {"model": "a/b", "entry": "other", "options": {"usage_context": "other"}},
    ),
    Line("python3 -m vllm.entrypoints.cli.main serve a/b", {"model": "a/b"}),
    Line("serve a/b --port 80", {"model": "a/b"}),
    Line("a/b --port 80", {"model": "a/b"}),
    Line(
        "vllm serve a/b --limit-mm-per-prompt '{\"image\": 2}' --task embed",
        {
            "model": "a/b",
            "options": {"limit_mm_per_prompt": {"image": 2}},
            "remarks": ("--task is not planned: pooling models are planned as text generators.",),
        },
    ),
    Line(
        "vllm serve a/b --limit-mm-per-prompt image=2,video=1",
        {"model": "a/b", "options": {"limit_mm_per_prompt": "image=2,video=1"}},
    ),
    Line(
        "vllm serve a/b --enable-lora --max-loras 4",
        {"model": "a/b", "options": {"enable_lora": True, "max_loras": 4}},
    ),
    Line("vllm serve a/b -q awq", {"model": "a/b", "quantization": "awq"}),
    Line(
        "export VLLM_USE_V1=0; VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve a/b",
        {"model": "a/b", "options": {"use_v1": False, "attention_backend": "FLASHINFER"}},
    ),
    Line(
        "docker run -e VLLM_USE_V1=0 vllm/vllm-openai:v0.9.1 --model a/b",
        {"model": "a/b", "version": "0.9.1", "options": {"use_v1": False}},
    ),
    Line("vllm serve a/b -tp 2 -tp 4", {"model": "a/b", "tp": 4}),
    Line("vllm serve 'a/b' \"--dtype\" bfloat\\16", {"model": "a/b", "dtype": "bfloat16"}),
)
