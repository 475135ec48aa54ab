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


def run(script: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A script in an empty folder, with no network to turn to and warnings as errors."""
    closed = dict.fromkeys(("HF_ENDPOINT", "HTTPS_PROXY", "HTTP_PROXY"), "http://127.0.0.1:9")
    return subprocess.run(
        [sys.executable, str(EXAMPLES / script), *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONWARNINGS": "error", **closed},
        capture_output=True,
        encoding="utf-8",
        timeout=180,
        check=False,
    )


def pool_bytes(ranks: int) -> int:
    """What the budget leaves on one of ``ranks`` GPUs."""
    weights = 2 * ((PARAMETERS - NORMS) // ranks + NORMS)
    attention, gate_and_up = HIDDEN // ranks, 2 * FEED_FORWARD // ranks
    # The widest moment of a layer, and what it takes of 8,192 tokens in two bytes.
    alive = max(attention + 3 * HIDDEN + gate_and_up, attention + 4 * HIDDEN)
    # Or sampling: 1,024 requests × 128,256 entries in 14 bytes, and 4 a token and unit of width.
    sampling = 1024 * 128_256 * 14 + 8192 * HIDDEN * 4
    peak = math.ceil(max(8192 * alive * 2, sampling) + 0.03 * GIB)
    # Compiling, memory beside torch, 102 CUDA graphs.
    runtime = sum(math.ceil(gib * GIB) for gib in (0.2, 2.1, 102 * 0.006))
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
    assert held == [448, 3, 14, 28, 44, 82, 131]
    assert "a request holds 2.50 GiB a GPU" in story[2]


@pytest.mark.parametrize(
    "script", sorted(path.name for path in EXAMPLES.glob("*.py") if "costs" not in path.name)
)
def test_every_example_runs_offline(script: str, tmp_path: Path) -> None:
    done = run(script, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == []


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    folder = tmp_path_factory.mktemp("costs")
    done = run("lunch_hour_costs.py", folder, "--pictures", "pictures")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines(), folder / "pictures"


def test_the_day_fits_on_average_and_not_at_noon(costs: tuple[list[str], Path]) -> None:
    lines, _ = costs
    bars = lines[0].split("  ")[1]
    assert len(bars) == 24
    assert bars.index("█") == 12
    mean, peak = (float(re.findall(r"([\d.]+)%", lines[row])[0]) for row in (1, 2))
    assert mean < 0.1
    assert peak > 5
    assert re.search(r" (9|1[01]) to 1[3-6] h$", lines[3])


def test_three_remedies_keep_the_promise_at_their_price(costs: tuple[list[str], Path]) -> None:
    lines, _ = costs
    rows = {
        line[:22].strip(): (float(line[26:31]), *map(float, re.findall(r"([\d.]+)[ ]?[s%]", line)))
        for line in lines[6:10]
    }
    assert list(rows) == ["as it is", "FP8 cache", "96 GiB of host memory", "a second replica"]
    prices, late, good = zip(*(row[:3] for row in rows.values()), strict=True)
    # Differences of the instances' prices, times 24.
    assert prices == (0.0, 0.0, round((3.00424 - 1.861) * 24, 2), round(1.861 * 24, 2))
    assert late[0] > 30
    assert good[0] < 80
    assert max(late[1:]) < 3
    assert min(good[1:]) > 95


def test_the_story_has_pictures(costs: tuple[list[str], Path]) -> None:
    _, folder = costs
    names = sorted(path.name for path in folder.iterdir())
    assert names == [
        "day.svg",
        "noon-96-gib-of-host-memory.svg",
        "noon-a-second-replica.svg",
        "noon-as-it-is.svg",
        "noon-fp8-cache.svg",
    ]
    for path in folder.iterdir():
        assert path.read_text(encoding="utf-8").startswith("<svg ")
