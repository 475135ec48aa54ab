"""How many questions a second are answered once model and GPU are loaded, on one core.

    python benchmarks/evaluate.py [--seconds 2] [MODEL …]

- figures: capacity for one more context length, the configuration being prepared. What a search
  over lengths or a simulation does. Goal: above 5,000 a second.
- prepare + figures: a new configuration each time. What a search over GPUs and parallelism does.
- plan: everything, without advice.
- plan with advice: everything; `advice.py` has the other engines. Goal: under 20 ms.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable

import kvplan
from kvplan import api
from kvplan.plan import Parallelism
from kvplan.sources.gpus import find_gpu

MODELS = ("meta-llama/Llama-3.1-70B-Instruct", "Qwen/Qwen3-32B")
TP = 8


def rate(answer: Callable[[int], object], seconds: float) -> float:
    """Answers a second; ``answer`` is given another context length each time."""
    lengths = itertools.cycle(range(1_000, 131_072))
    answer(32_000)
    count = 0
    start = time.process_time()
    while (elapsed := time.process_time() - start) < seconds:
        answer(next(lengths))
        count += 1
    return count / elapsed


def questions(model_id: str) -> dict[str, Callable[[int], object]]:
    """The four kinds of question about one model."""
    model = api.read_spec(model_id, offline=True)
    gpu = find_gpu("H100-SXM-80GB")
    parallelism = Parallelism(tp=TP)
    prepared = api.prepare(model, gpu, parallelism=parallelism)

    def plan(context: int, *, advice: bool) -> kvplan.Plan:
        return kvplan.size(
            model, gpu, tp=TP, context=context, concurrency=100_000, advice=advice, offline=True
        )

    return {
        "figures": prepared.figures,
        "prepare + figures": lambda context: api.prepare(
            model, gpu, parallelism=parallelism, context=context
        ).figures(context),
        "plan": lambda context: plan(context, advice=False),
        "plan with advice": lambda context: plan(context, advice=True),
    }


def main() -> None:
    """Prints a row a model and question."""
    parser = argparse.ArgumentParser(description="Evaluations a second.")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    arguments = parser.parse_args()
    seconds: float = arguments.seconds
    print(f"{'model':36} {'question':20} {'a second':>10} {'ms':>9}")
    for model_id in arguments.models:
        for name, answer in questions(model_id).items():
            answers = rate(answer, seconds)
            print(f"{model_id:36} {name:20} {answers:10,.0f} {1000 / answers:9.3f}")


if __name__ == "__main__":
    main()
