"""How long a simulation and the hit-rate curve take, and how much memory, on one core.

    python benchmarks/simulate.py [--trace mooncake_conversation.jsonl]

- trace: 5,000 requests, about 60 million tokens, with a host tier. Those of a trace in Mooncake's
  format, or drawn ones of like lengths. Goal: under 20 s and 1 GB.
- curve: exact LRU hit rates of 10^7 block references for all capacities. Goal: under 15 s, 1 GB.
- analysis: requests held at a chosen risk, the trace being read; and the whole answer for a rate
  with a daily profile. Goal: under 0.2 s each.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice

from kvplan import api
from kvplan.engines.base import Setup
from kvplan.planning.traffic.answer import Question, answer_traffic
from kvplan.planning.traffic.replica import measure
from kvplan.planning.traffic.traffic import Demand, Service, Traffic
from kvplan.simulator import TierMemory, deploy, simulate
from kvplan.sources.gpus import find_gpu
from kvplan.sources.traces import open_trace
from kvplan.workloads.arrivals import Arrivals, daily_profile
from kvplan.workloads.generate import generate
from kvplan.workloads.requests import Request
from kvplan.workloads.wording import parse_lengths

MODEL, GPU, REQUESTS, REFERENCES = "meta-llama/Llama-3.1-8B-Instruct", "H100", 5000, 10**7
# A day by its hours: weights of any scale.
HOURS = (1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 2, 1, 1)
PARTS = ("trace", "curve", "analysis")


def requests(path: str | None) -> Iterator[Request]:
    """5,000 of them, about 60 million tokens."""
    if path is None:
        text = "lognormal:median=7k,sigma=1.1/lognormal:median=300,sigma=0.7"
        lengths = parse_lengths(text, limit=131_072).lengths
        yield from generate(lengths, Arrivals(1.5), seed=1, requests=REQUESTS)
        return
    with open_trace(path) as trace:
        yield from islice(trace.requests, REQUESTS)


def run_trace(path: str | None) -> str:
    """The simulation."""
    tiers = (TierMemory("host", 200 * 2**30, 50e9),)
    found = simulate(deploy(MODEL, GPU, offline=True), requests(path), tiers=tiers)
    return f"{found.requests.finished:,} requests, {found.prefixes.prompt_tokens:,} prompt tokens"


def run_curve(_: str | None) -> str:
    """Stack distances of blocks drawn so that most come again."""
    import numpy as np  # noqa: PLC0415  numpy is an extra

    from kvplan.planning.simulate.distances import COLD, stack_distances  # noqa: PLC0415

    random = np.random.default_rng(1)
    drawn = (random.random(REFERENCES) ** 3 * 3e6).astype(np.int64)
    found = stack_distances(drawn)
    return f"{REFERENCES:,} references, {float((found != COLD).mean()):.1%} seen before"


def run_analysis(path: str | None) -> str:
    """Requests held, and all that is said of a day, without reading the trace."""
    setup = Setup(model=api.read_spec(MODEL, offline=True), gpu=find_gpu(GPU))
    prepared = api.prepare(setup.model, setup.gpu)
    pairs = tuple((one.prompt_tokens, one.output_tokens, 1.0) for one in requests(path))
    start = time.process_time()
    held = measure(prepared, 131_072, Traffic(pairs), Service()).replica().constant(0.001)
    alone = time.process_time() - start
    demand = Demand(rate_per_s=2.0, profile=daily_profile(tuple(map(float, HOURS))))
    asked = Question(Traffic(pairs), "benchmark", 0.001, Service(30.0), demand)
    start = time.process_time()
    answer_traffic(prepared, setup, 131_072, asked)
    whole = time.process_time() - start
    return f"{int(held.requests)} held, analysis alone {alone:.3f} s, with a day {whole:.3f} s"


def main() -> None:
    """Each part in a process of its own, so that its memory is its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace")
    parser.add_argument("--part", choices=PARTS)
    given = parser.parse_args()
    if given.part is None:
        for part in PARTS:
            trace = ["--trace", given.trace] if given.trace else []
            command = [sys.executable, __file__, "--part", part, *trace]
            subprocess.run(command, check=True)  # noqa: S603  this script
        return
    start, cpu = time.perf_counter(), time.process_time()
    run = {"trace": run_trace, "curve": run_curve, "analysis": run_analysis}[given.part]
    said = run(given.trace)
    took, used = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{given.part:<9} {took:6.1f} s ({used:.1f} s of processor)  {peak:6.0f} MiB  {said}")


if __name__ == "__main__":
    main()
