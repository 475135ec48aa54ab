"""Time and memory of a piece of code, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

_SCRIPT = """
import json, time
from kvplan.errors import KvplanError
{setup}
begin, raised = time.process_time(), None
try:
    {run}
except KvplanError as error:
    raised = str(error)
seconds = time.process_time() - begin
with open("/proc/self/status") as status:
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
print(json.dumps([seconds, int(peak) / 1024, raised]))
"""


@dataclass
class Measured:
    """Seconds of processor time, peak megabytes of the process, and the error if one was raised."""

    seconds: float
    megabytes: float
    raised: str | None


def measured(*, setup: str, run: str) -> Measured:
    """Runs one statement after a setup that does not count, except for its memory."""
    script = _SCRIPT.format(setup=setup, run=run)
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    return Measured(*json.loads(output))
