"""How long vLLM's capacity takes once the layers' pages are in memory, on one core.

    python benchmarks/capacity.py [--seconds 2] [--cases FOLDER]

- pages → figures: groups, blocks, tokens, concurrency, the longest request and the requests at
  once, for another number of bytes each time. Goal: 0.2 ms where all layers are alike, 0.5 ms for
  a hybrid.
- cases: every recorded start in FOLDER (vllm_cases.jsonl.gz with the configurations beside it,
  vllm_hist_cases.jsonl.gz), compared as the tests do. Goal: all in 30 s.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from kvplan import api
from kvplan.engines.base import Setup
from kvplan.engines.vllm import groups, packed
from kvplan.engines.vllm.frame import frame_of
from kvplan.engines.vllm.grouping import layer_context
from kvplan.engines.vllm.layers import layer_pages
from kvplan.engines.vllm.pool import Pool, whole_requests
from kvplan.sources.gpus import find_gpu
from kvplan.units import GIB

MODELS = {
    "meta-llama/Llama-3.1-70B-Instruct": "uniform",
    "deepseek-ai/DeepSeek-V3.2": "one type",
    "google/gemma-3-27b-it": "hybrid",
    "openai/gpt-oss-20b": "hybrid",
    "Qwen/Qwen3-Next-80B-A3B-Instruct": "hybrid",
    "deepseek-ai/DeepSeek-V4-Flash": "packed",
}
CONTEXT = 32_768


def capacity(model_id: str) -> Callable[[int], object]:
    """What is to be timed for one model: bytes → everything that vLLM's capacity has."""
    model = api.read_spec(model_id, offline=True)
    frame = frame_of(Setup(model=model, gpu=find_gpu("H100-SXM-80GB"), context=CONTEXT))
    pages = layer_pages(model.layers, layer_context(frame))
    stages = groups.pipeline_stages(len(model.layers), 1)
    in_flight, seqs = frame.settings.in_flight_tokens, frame.settings.max_num_seqs

    def figures(available: int) -> object:
        found = (
            packed.packed_groups(pages, stages)
            if MODELS[model_id] == "packed"
            else groups.group(pages, stages, frame.rules)
        )
        pool = Pool(found, frame.rules, in_flight, 1, None)
        blocks = pool.blocks((available,))
        return (
            blocks,
            pool.tokens(blocks, CONTEXT),
            pool.concurrency(blocks, CONTEXT),
            pool.longest(pool.usable_blocks((available,)), CONTEXT),
            whole_requests(pool, blocks, CONTEXT, max_num_seqs=seqs),
        )

    return figures


def milliseconds(figures: Callable[[int], object], seconds: float) -> float:
    """Processor time of one answer; every one is asked with another number of bytes."""
    amounts = itertools.cycle(range(GIB // 2, 40 * GIB, GIB // 7))
    figures(GIB)
    count = 0
    start = time.process_time()
    while (elapsed := time.process_time() - start) < seconds:
        figures(next(amounts))
        count += 1
    return 1000 * elapsed / count


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Recorded starts, one a line."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def compare_cases(folder: Path) -> tuple[int, int]:
    """(cases, those that differ)."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from vllm_cases import case_of, difference, gpu_of, has_config, model_of  # noqa: PLC0415
    from vllm_specs import planned_by_hand, planned_by_release  # noqa: PLC0415

    @cache
    def configs(name: str) -> dict[str, Any]:
        config: dict[str, Any] = json.loads((folder / name / "config.json").read_text())
        return config

    def is_equal(row: dict[str, Any]) -> bool:
        if not has_config(row):
            got, expected = planned_by_hand(row)
            return got == expected
        model = model_of(row["model"], configs(row["input"]["model"]))
        gpu = gpu_of(row["gpu"]["name"], tuple(row["gpu"]["cc"]), row["gpu"]["total_memory"])
        return difference(case_of(row), model, gpu, configs) is None

    found = [is_equal(row) for row in rows_of(folder / "vllm_cases.jsonl.gz")]
    found += [
        planned_by_release(row) == row["out"]
        for row in rows_of(folder / "vllm_hist_cases.jsonl.gz")
    ]
    return len(found), found.count(False)


def main() -> None:
    """Prints a row a model, and one for all cases."""
    parser = argparse.ArgumentParser(description="Time of vLLM's capacity from pages.")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--cases", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    seconds: float = arguments.seconds
    print(f"{'model':36} {'kind':10} {'ms':>9}")
    for model_id, kind in MODELS.items():
        print(f"{model_id:36} {kind:10} {milliseconds(capacity(model_id), seconds):9.3f}")
    if arguments.cases is not None:
        start = time.process_time()
        cases, wrong = compare_cases(arguments.cases)
        taken = time.process_time() - start
        print(f"{cases:,} cases, {wrong} of which differ: {taken:.1f} s")


if __name__ == "__main__":
    main()
