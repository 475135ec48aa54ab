"""How long a search for hardware takes, and how much memory.

    python benchmarks/fit.py [--model MODEL] [--gpus NAMES] [--engine NAMES] [--rounds 3]

Goal: a space of 10^5 candidates in 20 s. A candidate is one GPU, engine, format of the weights,
cache type, layout and parallel sizes, replicas included.
"""

from __future__ import annotations

import argparse
import resource
import time

from kvplan.fitting import fit

MODELS = (
    "meta-llama/Llama-3.1-70B-Instruct",
    "Qwen/Qwen3-30B-A3B",
    "openai/gpt-oss-20b",
    "deepseek-ai/DeepSeek-V3",
)
ENGINES = "vllm,sglang,tensorrt-llm"
GPUS = "A10*,A30*,A40*,H*,L4*,B*,RTX-PRO*"


def main() -> None:
    """Prints a row a model."""
    parser = argparse.ArgumentParser(description="Time of a search.")
    parser.add_argument("--model", action="append")
    parser.add_argument("--gpus", default=GPUS)
    parser.add_argument("--engine", default=ENGINES)
    parser.add_argument("--rounds", type=int, default=1)
    given = parser.parse_args()
    models: list[str] = given.model or list(MODELS)
    print(
        f"{'model':36} {'candidates':>10} {'prepared':>9} {'plans':>6} {'losers':>7} {'CPU s':>6}"
    )
    for model in models:
        times = []
        for _ in range(given.rounds):
            start = time.process_time()
            found = fit(
                model,
                context=32_768,
                concurrency=50,
                gpus=given.gpus,
                engines=given.engine,
                max_gpus=64,
                offline=True,
            )
            times.append(time.process_time() - start)
        search = found.searched
        print(
            f"{model:36} {search.candidates:10,} {search.prepared:9,} {len(found.plans):6,} "
            f"{len(found.losers):7,} {min(times):6.1f}"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak resident memory: {peak:,.0f} MiB")


if __name__ == "__main__":
    main()
