"""Files that somebody made to hurt: each ends in a sentence, quickly and in little memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scenario_files import HEAD

SECONDS, BYTES = 2, 200 * 2**20

LAUGHS = "\n".join(
    ["a: &a [x, x, x, x, x, x, x, x, x]"]
    + [
        f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}]"
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    ]
)
HUNDRED = list(range(1, 101))
A_SCENARIO = "scenarios:\n  a:\n    model: x/y\n    gpu: L4\n"

CASES: dict[str, tuple[bytes, str]] = {
    "billion laughs": (f"{HEAD}{LAUGHS}\n".encode(), "Anchors (&) and aliases (*)"),
    "merge key": (f"{HEAD}scenarios:\n  a: &b {{tp: 1}}\n  c: {{<<: *b}}\n".encode(), "Anchors"),
    "100 MB": (b"#" * 100 * 10**6, "kvplan reads at most"),
    "1 MB of keys": (
        HEAD.encode() + b"".join(b"k%d: 1\n" % each for each in range(80_000)),
        "more than 20,000 values",
    ),
    "tabs": (f"{HEAD}scenarios:\n\ta:\n\t\ttp: 1\n".encode(), "Indent with spaces, not tabs"),
    "duplicate keys": (f"{HEAD}{A_SCENARIO}    gpu: L40S\n".encode(), "already on line"),
    "python object": (
        f"{HEAD}scenarios: !!python/object/apply:os.system ['touch here']\n".encode(),
        "The tag",
    ),
    "deep nesting": ((HEAD + "scenarios: " + "[" * 5000).encode(), "nesting"),
    "deep mappings": (
        (HEAD + "scenarios: " + "{a: " * 300 + "}" * 300).encode(),
        "deeper than 50 levels",
    ),
    "not UTF-8": (f"{HEAD}scenarios:\n  caf\xe9: {{}}\n".encode("latin-1"), "not UTF-8"),
    "UTF-16": (HEAD.encode("utf-16"), "not UTF-8"),
    "NUL": (f"{HEAD}a: \0\n".encode(), "may not stand in YAML"),
    "Norway": (f"{HEAD}{A_SCENARIO}    dtype: no\n    tp: no\n".encode(), "valid integer, not"),
    "yes": (f"{HEAD}{A_SCENARIO}    tp: yes\n".encode(), 'valid integer, not "yes"'),
    "octal": (f"{HEAD}{A_SCENARIO}    tp: 010\n".encode(), 'valid integer, not "010"'),
    "hexadecimal": (f"{HEAD}{A_SCENARIO}    tp: 0x10\n".encode(), 'valid integer, not "0x10"'),
    "1e3": (f"{HEAD}{A_SCENARIO}    concurrency: 1e3\n".encode(), "valid integer, not 1000.0"),
    "1e3 tokens": (
        f"{HEAD}{A_SCENARIO}    context: 1e3\n".encode(),
        "`scenarios.a.context` should be",
    ),
    "Norway in a name": (f"{HEAD}scenarios:\n  no:\n    gpu: L4\n".encode(), "'no' lacks model"),
    "object in a list": (
        f"{HEAD}{A_SCENARIO}    expect: [!!python/name:os.system '']\n".encode(),
        "The tag",
    ),
    "deep lists": (
        (HEAD + "scenarios:\n" + "".join(f"{' ' * n}-\n" for n in range(300))).encode(),
        "deeper than 50 levels",
    ),
    "a file that extends itself": (
        f"{HEAD}extends: hostile.yaml\n".encode(),
        "extends this file in turn",
    ),
    "a line without end": (
        f"{HEAD}{A_SCENARIO}    dtype: {'x' * 900_000}\n".encode(),
        "at most 4,096 characters",
    ),
    "patterns": (
        f"{HEAD}{A_SCENARIO}    expect: ['{'a.' * 90}a >= {'1,' * 90}x']\n".encode(),
        "is nothing that a plan states",
    ),
    "infinity": (f"{HEAD}{A_SCENARIO}    tp: .inf\n".encode(), "not a number to plan with"),
    "long number": (f"{HEAD}{A_SCENARIO}    tp: {'9' * 5000}\n".encode(), "number is too long"),
    "two documents": (f"{HEAD}{A_SCENARIO}---\n{HEAD}".encode(), "second document"),
    "empty": (b"", "empty"),
    "a list": (b"- schema\n", "does not hold keys"),
    "a matrix without end": (
        f"{HEAD}{A_SCENARIO}    matrix: {{tp: {HUNDRED}, pp: {HUNDRED}}}\n".encode(),
        "10,000 combinations",
    ),
    "a folder above": (f"{HEAD}extends: ../../../../etc/passwd\n".encode(), "outside of the"),
    "an escape in a name": (f'{HEAD}scenarios: {{"\\e[2J": {{}}}}\n'.encode(), "\\x1b[2J"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_file_ends_in_a_sentence(name: str, tmp_path: Path) -> None:
    data, sentence = CASES[name]
    path = tmp_path / "hostile.yaml"
    path.write_bytes(data)
    code = (
        "import resource, sys\n"
        "from kvplan.cli.main import run\n"
        "code = run(['check', 'hostile.yaml', '--offline'])\n"
        "use = resource.getrusage(resource.RUSAGE_SELF)\n"
        # The peak of this process alone; getrusage's includes what it was forked from.
        "peak = open('/proc/self/status').read().partition('VmHWM:')[2].split()[0]\n"
        "sys.stderr.write(f'\\n{int(peak) * 1024} {use.ru_utime + use.ru_stime}')\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert sentence in done.stdout
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stdout
    peak, seconds = done.stderr.splitlines()[-1].split()
    assert int(peak) < BYTES
    # Of processor time, so that a busy machine does not fail it.
    assert float(seconds) < SECONDS
