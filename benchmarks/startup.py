"""How long a command takes from nothing: wall time and modules loaded, over several runs.

    python benchmarks/startup.py [--runs 11]

Wall time depends on the machine and on what else it does; trust the minimum. The number of modules
depends on nothing, and the tests hold it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

MODEL, GPU = "meta-llama/Llama-3.1-70B-Instruct", "H100-SXM-80GB"
SIZE = ["size", MODEL, "--gpu", GPU, "--tp", "4", "--context", "32k", "--concurrency", "50"]
COMMANDS: dict[str, list[str]] = {
    "(python alone)": [],
    "--help": ["--help"],
    "size --help": ["size", "--help"],
    "size --offline (text)": [*SIZE, "--offline"],
    "size --offline (json)": [*SIZE, "--offline", "--format", "json"],
}

_BARE = "import sys; print(len(sys.modules), file=sys.stderr)"
_COMMAND = (
    "import sys; from kvplan.cli.main import run; code = run(sys.argv[1:]); "
    "print(len(sys.modules), file=sys.stderr); sys.exit(code)"
)


def run_once(arguments: list[str]) -> tuple[float, int]:
    """Milliseconds and modules loaded of one run in a process of its own."""
    code = _COMMAND if arguments else _BARE
    start = time.perf_counter()
    done = subprocess.run(  # noqa: S603 - our own interpreter, fixed arguments
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    elapsed = 1000 * (time.perf_counter() - start)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    return elapsed, int(done.stderr.split()[-1])


def main() -> None:
    """Prints a row a command."""
    parser = argparse.ArgumentParser(description="Start-up time of the command line.")
    parser.add_argument("--runs", type=int, default=11)
    runs: int = parser.parse_args().runs
    print(f"{'command':24} {'min ms':>8} {'median ms':>10} {'modules':>8}")
    for name, arguments in COMMANDS.items():
        run_once(arguments)  # fills the byte-code and file caches
        results = [run_once(arguments) for _ in range(runs)]
        times = [elapsed for elapsed, _ in results]
        print(f"{name:24} {min(times):8.0f} {statistics.median(times):10.0f} {results[-1][1]:8}")


if __name__ == "__main__":
    main()
