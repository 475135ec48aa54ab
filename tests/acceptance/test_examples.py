"""The scripts in examples/ run as a user runs them, and their numbers can be worked out by hand."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
GIB = 2**30

# Llama 3.1 70B: 80 layers, 8 KV heads of 128, 70,553,706,496 parameters, of which the norms
# (161 vectors of 8,192) are on every rank.
LAYERS, KV_HEADS, HEAD, HIDDEN, FEED_FORWARD = 80, 8, 128, 8192, 28_672
PARAMETERS, NORMS = 70_553_706_496, 161 * 8192
# What torch sees of an H100, and the share that vLLM 0.33 takes of it.
CARD, SHARE = round(79.19 * GIB), 0.92


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A script in an empty folder, with no network to turn to and warnings as errors."""
    closed = dict.fromkeys(("HF_ENDPOINT", "HTTPS_PROXY", "HTTP_PROXY"), "http://127.0.0.1:9")
    return subprocess.run(
        [sys.executable, str(EXAMPLES / script)],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONWARNINGS": "error", **closed},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def pool_bytes(ranks: int) -> int:
    """What the budget leaves on one of ``ranks`` GPUs."""
    weights = 2 * ((PARAMETERS - NORMS) // ranks + NORMS)
    attention, gate_and_up = HIDDEN // ranks, 2 * FEED_FORWARD // ranks
    # The widest moment of a layer, and what it takes of 8,192 tokens in two bytes.
    alive = max(attention + 3 * HIDDEN + gate_and_up, attention + 4 * HIDDEN)
    peak = math.ceil(8192 * alive * 2 * 1.1 + 0.03 * GIB)
    # Compiling, memory beside torch, 102 CUDA graphs.
    runtime = sum(math.ceil(gib * GIB) for gib in (0.3, 2.1, 102 * 0.003))
    rotary = 131_072 * HEAD * 2  # cosines and sines of every position
    return math.ceil(CARD * SHARE) - weights - rotary - peak - runtime


def blocks(ranks: int, element: int) -> int:
    """Blocks of 16 tokens on one rank, less the one that holds nobody."""
    return pool_bytes(ranks) // (16 * token_bytes(ranks, element)) - 1


def token_bytes(ranks: int, element: int) -> int:
    """Layers × (K + V) × KV heads of the rank × elements of a head × bytes of an element."""
    return LAYERS * 2 * (KV_HEADS // ranks) * HEAD * element


def shared(ranks: int, element: int) -> int:
    """Requests of 2,048 blocks, the first 768 of which (12k tokens) are the same for all."""
    return (blocks(ranks, element) - 768) // (2048 - 768)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    done = run("lunch_hour.py", tmp_path_factory.mktemp("empty"))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_a_request_of_32k_tokens_is_two_and_a_half_gib() -> None:
    assert token_bytes(4, 2) == 80 * 2 * 2 * 128 * 2 == 81_920
    assert token_bytes(4, 2) * 32_768 == 2.5 * GIB


def test_the_story_is_told_step_by_step(story: list[str]) -> None:
    told = [re.sub(r" {2,}", "  ", line).split("  ") for line in story]
    assert [(step, answer.split()[0]) for step, answer, *_ in told] == [
        ("Morning: 1k tokens a request", "holds"),
        ("Lunch: 32k, reserved in one piece", "FAILS"),
        ("+ paging (what vLLM does)", "FAILS"),
        ("+ FP8 KV cache", "FAILS"),
        ("+ the 12k prefix shared", "FAILS"),
        ("FP8 KV cache on 8 GPUs", "holds"),
        ("+ the 12k prefix shared", "holds"),
    ]


def test_the_story_has_the_numbers_that_arithmetic_gives(story: list[str]) -> None:
    held = []
    for line in story:
        found = re.search(r"(\d+) of 50 users", line)
        assert found is not None, line
        held.append(int(found[1]))
    assert held == [
        blocks(4, 2) // 64,  # 1,024 tokens
        pool_bytes(4) // (131_072 * token_bytes(4, 2)),  # the whole 128k context each
        blocks(4, 2) // 2048,  # 32,768 tokens
        blocks(4, 1) // 2048,
        shared(4, 1),
        blocks(8, 1) // 2048,
        shared(8, 1),
    ]
    assert held == [467, 3, 14, 29, 46, 84, 135]
    assert "a request holds 2.50 GiB a GPU" in story[2]


@pytest.mark.parametrize("script", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_every_example_runs_offline(script: str, tmp_path: Path) -> None:
    done = run(script, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
