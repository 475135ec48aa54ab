"""A trace of any size is held one line at a time: 300 MB come through a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

LINES, PADDING = 30_000, 10_000
MEBI = 2**20
SCRIPT = """
import resource, sys
from kvplan.sources.traces import open_trace

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

with open_trace(sys.argv[1]) as trace:
    first = next(trace.requests)
    before = peak()
    count = 1 + sum(1 for _ in trace.requests)
print(count, (peak() - before) * 1024, trace.tally.last_s)
"""


def _csv(path: Path) -> None:
    with path.open("wb") as pipe:
        pipe.write(b"arrival,prompt_tokens,output_tokens,note\n")
        pipe.writelines(b"%d,1000,50,%s\n" % (number, b"x" * PADDING) for number in range(LINES))


def _jsonl(path: Path) -> None:
    with path.open("wb") as pipe:
        pipe.writelines(
            b'{"timestamp": %d, "input_length": 1000, "output_length": 50, "hash_ids": [1, 2],'
            b' "note": "%s"}\n' % (1000 * number, b"x" * PADDING)
            for number in range(LINES)
        )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("write", [_csv, _jsonl])
def test_three_hundred_megabytes_take_no_memory(write: object, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    os.mkfifo(path)
    assert callable(write)
    writer = Thread(target=write, args=(path,), daemon=True)
    writer.start()
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    writer.join(10)
    count, grown, last = done.stdout.split()
    assert int(count) == LINES
    assert float(last) == LINES - 1
    assert LINES * PADDING == 300_000_000
    assert int(grown) < 16 * MEBI
