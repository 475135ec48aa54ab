"""How long advice takes on top of a plan that falls short, engine by engine.

    python benchmarks/advice.py [--engine NAME …]

Twenty plans an engine: five models on four GPUs, each asked for more than it holds. The first time
of a plan in this process, and once more; those that an engine refuses are left out. Goal: under
50 ms of processor time each.
"""

from __future__ import annotations

import argparse
import statistics
import time

import kvplan
from kvplan import api
from kvplan.errors import KvplanError
from kvplan.models.spec import ModelSpec

ENGINES = ("vllm", "sglang", "tensorrt-llm", "transformers", "llama.cpp", "ollama")
MODELS = (
    "Qwen/Qwen3-8B",
    "meta-llama/Llama-3.1-70B-Instruct",
    "openai/gpt-oss-20b",
    "google/gemma-3-27b-it",
    "deepseek-ai/DeepSeek-V3",
)
# A GPU, tokens of a request, and how many at once.
LOADS = (
    ("RTX 4090", 32_768, 20),
    ("H100-SXM-80GB", 100_000, 300),
    ("A100-SXM-80GB", 8_000, 2_000),
    ("B300-SXM-288GB", 4_096, 5_000),
)


def seconds(model: ModelSpec, load: tuple[str, int, int], engine: str, *, advice: bool) -> float:
    """Processor time of one plan.

    Raises:
        KvplanError: the engine refuses it.
    """
    gpu, context, concurrency = load
    start = time.process_time()
    kvplan.size(
        model,
        gpu,
        engine=engine,
        context=context,
        concurrency=concurrency,
        advice=advice,
        offline=True,
    )
    return time.process_time() - start


def of_engine(engine: str) -> list[tuple[float, float]]:
    """Milliseconds of advice for each plan: the first time, and again."""
    found: list[tuple[float, float]] = []
    for model_id in MODELS:
        model = api.read_spec(model_id, offline=True)
        for load in LOADS:
            try:
                first, again = (seconds(model, load, engine, advice=True) for _ in range(2))
                plain = min(seconds(model, load, engine, advice=False) for _ in range(2))
            except KvplanError:
                continue
            found.append((1000 * (first - plain), 1000 * (again - plain)))
    return found


def main() -> None:
    """Prints a row an engine."""
    parser = argparse.ArgumentParser(description="Time of advice.")
    parser.add_argument("--engine", action="append")
    engines: list[str] = parser.parse_args().engine or list(ENGINES)
    print(f"{'engine':14} {'plans':>5} {'first: median':>14} {'most ms':>8} {'again: median':>14} "
          f"{'most ms':>8}")  # fmt: skip
    for engine in engines:
        first, again = zip(*of_engine(engine), strict=True)
        print(
            f"{engine:14} {len(first):5} {statistics.median(first):14.1f} {max(first):8.1f} "
            f"{statistics.median(again):14.1f} {max(again):8.1f}"
        )


if __name__ == "__main__":
    main()
