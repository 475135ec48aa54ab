"""How long `kvplan check --locked` takes for many scenarios, and how much memory.

Each scenario is one of a few models with lengths, GPUs and options of its own, so that hardly any
plan is the same as another; every tenth has real traffic. Run it as
``python benchmarks/scenarios.py [--scenarios N]``; one core is what one process takes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

_MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen3-8B",
    "openai/gpt-oss-20b",
    "Qwen/Qwen3-30B-A3B",
)
_GPUS = ("H100-SXM-80GB", "L40S-48GB", "A100-SXM-80GB")
_TRAFFIC = '{lengths: "p50=1k,p95=8k/300", rate: 1/s, decode_rate: 30}'
_RUN = """\
import resource, sys
from kvplan.cli.main import run
code = run(sys.argv[1:])
use = resource.getrusage(resource.RUSAGE_SELF)
peak = open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]
sys.stderr.write(f"{use.ru_utime + use.ru_stime} {peak}")
"""


def scenario_file(count: int) -> str:
    """The text of a file with so many scenarios."""
    lines = ["schema: kvplan.scenario/1", "defaults: {engine: vllm==0.33.0}", "scenarios:"]
    for number in range(count):
        keys = {
            "model": _MODELS[number % len(_MODELS)],
            "gpu": _GPUS[number // 7 % len(_GPUS)],
            "context": 4096 * (1 + number % 8),
            "options": f"{{max_num_seqs: {16 + number}}}",
            "concurrency": 1 + number % 4,
        }
        if number % 10 == 9:
            del keys["concurrency"]
            keys["workload"] = _TRAFFIC
        inner = ", ".join(f"{key}: {value}" for key, value in keys.items())
        lines.append(f"  s{number}: {{{inner}}}")
    return "\n".join(lines) + "\n"


def measured(folder: Path, *words: str) -> tuple[str, float, int]:
    """The last line of a command, the seconds of processor time and the peak KiB it took."""
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", _RUN, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    seconds, peak = done.stderr.split()[-2:]
    last = done.stdout.splitlines()[-1] if done.stdout else ""
    return last, float(seconds), int(peak)


def main() -> None:
    """Locks the scenarios, checks them by the lock, and prints what both took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenarios", type=int, default=200)
    count = parser.parse_args().scenarios
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kvplan.yaml").write_text(scenario_file(count), encoding="utf-8")
        for title, words in (
            ("lock", ("lock", "kvplan.yaml", "--offline")),
            ("check --locked", ("check", "kvplan.yaml", "--locked")),
        ):
            last, seconds, peak = measured(folder, *words)
            print(f"{title:<15} {seconds:6.2f} s  {peak / 1024:6.0f} MiB  {last}")


if __name__ == "__main__":
    main()
