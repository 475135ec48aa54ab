"""Logs that are cut at one end: every figure that is given is the whole log's."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvplan.sources.logs.reader import starts_in

FOLDER = Path(__file__).parents[3] / "data" / "logs"
# Those whose bytes are text: what is compressed or UTF-16 can't be read from its middle.
DATA = {p.name: p.read_bytes() for p in sorted(FOLDER.glob("*.log")) if "utf16" not in p.name}
# What names the record, its place in the file, and other keys; no figures of the start.
BESIDE = {"id", "source", "derived", "of_other_ranks", "contradictory", "rank"}
# Ollama runs llama.cpp's server and prints its lines. Without Ollama's own lines above them they
# are a log of llama.cpp, of the release that they name; Ollama's release is not in it.
OTHER_ENGINE = {("ollama", "llama.cpp"): {"engine", "engine_version"}}
# What `other_failure` means includes that the reason is not known: the reason's line is cut off.
UNKNOWN_REASON = "other_failure"


def read(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(record.json_line()) for record in starts_in(io.BytesIO(data), "log")]


WHOLE = {name: read(data) for name, data in DATA.items()}


def wrong(whole: list[dict[str, Any]], cut: list[dict[str, Any]]) -> Iterator[str]:
    """Figures of a cut log that no start of the whole log has.

    Lines of a log without its head have other numbers, so that a start can't be told by its
    line where there are several: each figure has to be one of theirs.
    """
    for record in cut:
        for key in sorted(record.keys() - BESIDE):
            truths = [each.get(key) for each in whole if not other_engine(each, record, key)]
            if record[key] in (None, UNKNOWN_REASON):
                continue
            if truths and record[key] not in truths:
                yield f"{key}: {record[key]}, not {truths}"


def other_engine(whole: dict[str, Any], cut: dict[str, Any], key: str) -> bool:
    return key in OTHER_ENGINE.get((whole["engine"], cut["engine"]), ())


def wrong_of_tail(name: str, place: int) -> list[str]:
    """What is wrong once the log ends at a byte: a start that has begun is where it was."""
    found: list[str] = []
    for record in read(DATA[name][:place]):
        same = [each for each in WHOLE[name] if each["id"] == record["id"]]
        found += [f"no such start: {record['id']}"] if not same else wrong(same, [record])
    return found


def wrong_of_head(name: str, place: int) -> list[str]:
    """What is wrong if the log begins at a byte."""
    return list(wrong(WHOLE[name], read(DATA[name][place:])))


@pytest.mark.parametrize("name", DATA)
def test_cut_at_the_ends_of_lines(name: str) -> None:
    ends = [match.end() for match in re.finditer(rb"\n", DATA[name])]
    for place in (end + beside for end in ends for beside in (-1, 0, 1)):
        assert wrong_of_tail(name, place) == [], place
        assert wrong_of_head(name, place) == [], place


@pytest.mark.parametrize("name", DATA)
def test_cut_at_both_ends(name: str) -> None:
    """Every run of whole lines, of which the whole log's are only one."""
    places = [0, *(match.end() for match in re.finditer(rb"\n", DATA[name]))]
    for first, begin in enumerate(places):
        for end in places[first + 1 :]:
            assert list(wrong(WHOLE[name], read(DATA[name][begin:end]))) == [], (begin, end)


@settings(max_examples=200)
@given(name=st.sampled_from(sorted(DATA)), ends=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_cut_anywhere_at_both_ends(name: str, ends: tuple[float, float]) -> None:
    begin, end = (int(share * len(DATA[name])) for share in sorted(ends))
    assert list(wrong(WHOLE[name], read(DATA[name][begin:end]))) == []


@settings(max_examples=200)
@given(name=st.sampled_from(sorted(DATA)), share=st.floats(0, 1))
def test_cut_anywhere(name: str, share: float) -> None:
    place = int(share * len(DATA[name]))
    assert wrong_of_tail(name, place) == []
    assert wrong_of_head(name, place) == []


def only(name: str, *, after: int = 0, before: int | None = None) -> dict[str, Any]:
    (record,) = read(DATA[name][after:before])
    return record


def test_the_pool_that_is_measured_with_is_not_the_cache() -> None:
    name = "tensorrt-llm-1.1-pytorch.log"
    cut = only(name, before=905)
    assert (cut["kv_tokens"], cut["available_kv_gib"], cut["max_model_len"]) == (None, None, None)
    whole = WHOLE[name][0]
    figures = (whole["kv_tokens"], whole["available_kv_gib"], whole["max_model_len"])
    assert figures == (454_720, 55.51, 131_072)


def test_one_of_two_caches_is_not_the_cache() -> None:
    name = "llamacpp-b6123-window.log"
    assert only(name, before=985)["available_kv_gib"] is None
    assert only(name, after=921)["available_kv_gib"] is None
    assert WHOLE[name][0]["available_kv_gib"] == 10.609375


def test_a_trial_of_llamacpp_is_not_the_start() -> None:
    name = "llamacpp-fit-hybrid.log"
    trial = DATA[name].index(b"common_params_fit_impl")
    assert only(name, before=trial)["kv_tokens"] is None
    assert WHOLE[name][0]["kv_tokens"] == 200_192


def test_graphs_are_summed_once_all_are_captured() -> None:
    name = "sglang-0.5.10-dp2.log"
    second = DATA[name].index(b"Capture piecewise")
    assert only(name, before=second)["cudagraph_gib"] is None
    assert WHOLE[name][0]["cudagraph_gib"] == 0.81


def test_one_of_two_cards_is_not_the_card() -> None:
    name = "ollama-two-cards.log"
    second = DATA[name].index(b"GPU-7c0b3c1a")
    line = DATA[name].rindex(b"\n", 0, second) + 1
    assert only(name, after=line)["gpu"] is None


def test_a_number_that_a_container_runtime_split_is_not_read() -> None:
    name = "wrapped-cri-split.log"
    begin = DATA[name].index(b"(EngineCore_DP0 pid=12) INFO 12-01 10:00:20")
    record = only(name, after=begin)
    assert (record["tp"], record["max_model_len"]) == (None, 40_960)


def test_a_whole_start_without_an_end_keeps_what_later_lines_confirm() -> None:
    name = "llamacpp-b6123-window.log"
    end = DATA[name].index(b"main: server is listening")
    assert only(name, before=end)["available_kv_gib"] == 10.609375


def test_when_memory_ran_out_is_not_told_without_the_head() -> None:
    name = "vllm-0.25.0-capture-oom.log"
    line = DATA[name].rindex(b"\n", 0, DATA[name].index(b"CUDA out of memory")) + 1
    lines = b"GPU KV cache size: 15,872 tokens\n" + DATA[name][line:]
    assert read(lines)[0]["outcome"] is None
    assert WHOLE[name][0]["outcome"] == "out_of_memory_in_warm_up"
