"""How long a sweep of a million points takes on one core, and how much memory.

    python benchmarks/sweep.py [--contexts 250] [--concurrencies 2000] [--format csv] [MODEL]

Context × concurrency × cache format, each point a verdict with its figures. Goal: a million points
in 10 s and 1 GB. Each measurement is a process of its own: the sweep alone, and the command with
a file in every format.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
FORMATS = ("csv", "jsonl", "parquet", "svg")

# Runs in the measured process; the peak is the kernel's own figure, in kB on Linux.
CODE = """
import json, resource, sys, time
words = json.loads(sys.argv[1])
start, busy = time.perf_counter(), time.process_time()
if words[0] == "library":
    import kvplan
    vary = dict(word.split("=", 1) for word in words[3:])
    found = kvplan.sweep(words[1], words[2], vary=vary, offline=True)
    assert len(found.points) == found.grid.size
else:
    from kvplan.cli.main import run
    assert run(words) == 0
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
print(json.dumps([seconds, time.process_time() - busy, peak]))
"""


def measured(words: list[str]) -> tuple[float, float, float]:
    """Seconds by the clock and of the processor, and megabytes, of one run on one core."""
    command = [sys.executable, "-c", CODE, json.dumps(words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    seconds, busy, megabytes = json.loads(done.stdout.splitlines()[-1])
    return seconds, busy, megabytes


def main() -> None:
    """Prints a row for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default=MODEL)
    parser.add_argument("--gpu", default="H100")
    parser.add_argument("--contexts", type=int, default=250)
    parser.add_argument("--concurrencies", type=int, default=2000)
    parser.add_argument("--format", choices=FORMATS, action="append")
    asked = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    vary = [
        f"context=512..{512 * asked.contexts}+512",
        f"concurrency=1..{asked.concurrencies}",
        "kv_dtype=auto,fp8",
    ]
    points = 2 * asked.contexts * asked.concurrencies
    print(f"{asked.model} on {asked.gpu}: {points:,} points, Python {sys.version.split()[0]}")
    rows = {"kvplan.sweep": measured(["library", asked.model, asked.gpu, *vary])}
    with tempfile.TemporaryDirectory() as folder:
        for ending in asked.format or FORMATS:
            path = Path(folder) / f"sweep.{ending}"
            flags = [word for each in vary for word in ("--vary", each)]
            words = ["sweep", asked.model, "--gpu", asked.gpu, "--offline", "-q", *flags]
            rows[f"kvplan sweep, {ending}"] = measured([*words, "--output", str(path)])
            path.unlink()
    print(f"{'':24}{'clock':>10}{'processor':>12}{'peak':>12}")
    for name, (seconds, busy, megabytes) in rows.items():
        print(f"{name:24}{seconds:8.2f} s{busy:10.2f} s{megabytes:9,.0f} MB")


if __name__ == "__main__":
    main()
