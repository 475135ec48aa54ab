"""What wraps a line is taken off, and tells whose it was."""

from __future__ import annotations

import json

import pytest

from kvplan.sources.logs.lines import MIXED, Line, unwrap

SAID = "INFO 12-01 10:00:00 [gpu_worker.py:298] Available KV cache memory: 6.51 GiB"


def lines(text: str, *, whole: bool = True) -> list[Line]:
    return list(unwrap(text.encode(), 7, whole=whole))


@pytest.mark.parametrize(
    ("before", "stream"),
    [
        ("", ""),
        ("2026-12-01T10:00:00.123456789Z ", ""),
        ("2026-12-01T10:00:00.123456789+01:00 stderr F ", ""),
        ("[pod/qwen-0/vllm] ", "pod/qwen-0/vllm"),
        ("[pod/qwen-0/vllm] 2026-12-01T10:00:00Z ", "pod/qwen-0/vllm"),
        ("vllm-1   | ", "vllm-1"),
        ("Dec  1 10:00:00 node-3 vllm[42]: ", ""),
        ("Dec 01 10:00:00 node-3 ollama: ", ""),
    ],
)
def test_prefixes_are_taken_off(before: str, stream: str) -> None:
    assert lines(before + SAID) == [Line(SAID, 7, stream=stream)]


@pytest.mark.parametrize(
    ("before", "process"),
    [
        ("(EngineCore_DP0 pid=12) ", "EngineCore_DP0 pid=12"),
        ("\x1b[0;36m(Worker_TP1 pid=3)\x1b[0;0m ", "Worker_TP1 pid=3"),
        ("#033[1;36m(VllmWorker rank=1 pid=3)#033[0;0m ", "VllmWorker rank=1 pid=3"),
        ("(RayWorkerWrapper pid=3, ip=10.0.0.7) ", "RayWorkerWrapper pid=3, ip=10.0.0.7"),
        ("(pid=3) ", "pid=3"),
        ("(EngineCore pid=1) (RayWorkerWrapper pid=2) ", "RayWorkerWrapper pid=2"),
        ("(Worker_TP0 pid=1) (Worker_TP1 pid=2) ", MIXED),
        ("(Worker_TP0 pid=1) (Worker_TP0 pid=1) ", "Worker_TP0 pid=1"),
        ("[2025-10-01 12:00:00 DP1 TP3] ", "DP1 TP3"),
        ("[2025-10-01 12:00:00] ", ""),
        ("[11/20/2025-04:21:50] [TRT-LLM] [RANK 1] [I] ", "RANK 1"),
        ("[11/20/2025-04:21:50] [TRT-LLM] [MPI_Rank 0] [I] ", "MPI_Rank 0"),
    ],
)
def test_the_process_is_read(before: str, process: str) -> None:
    (line,) = lines(before + SAID)
    assert line.process == process
    assert line.text.endswith(SAID)


def test_colours_are_taken_off() -> None:
    (line,) = lines("\x1b[32mINFO\x1b[0m \x1b[90m12-01\x1b[0m said")
    assert line.text == "INFO 12-01 said"


@pytest.mark.parametrize(
    "record",
    [
        {"log": SAID + "\n", "stream": "stderr", "time": "x"},
        {"message": SAID},
        {"msg": SAID, "level": "info"},
        {"jsonPayload": {"message": SAID}},
        {"textPayload": SAID},
        {"log": json.dumps({"message": SAID})},
        {"log": json.dumps({"log": json.dumps({"message": SAID})})},
    ],
)
def test_json_is_opened(record: dict[str, object]) -> None:
    assert lines(json.dumps(record)) == [Line(SAID, 7)]


def test_json_says_whose_it_is() -> None:
    record = {"message": SAID, "processName": "Worker_TP1", "process": 5, "pod": "p"}
    assert lines(json.dumps(record)) == [Line(SAID, 7, stream="p", process="Worker_TP1 pid=5")]
    record = {"log": SAID, "kubernetes": {"pod_name": "qwen-0", "labels": {}}}
    assert lines(json.dumps(record)) == [Line(SAID, 7, stream="qwen-0")]


def test_a_message_of_several_lines_is_several() -> None:
    assert [line.text for line in lines(json.dumps({"message": "a\nb\r\nc"}))] == ["a", "b", "c"]


def test_a_part_of_a_long_line_has_no_end() -> None:
    part = json.dumps({"log": "half of", "stream": "stderr"})
    assert [line.whole for line in lines(part)] == [False]
    assert [line.whole for line in lines("2026-12-01T10:00:00Z stderr P half of")] == [False]
    assert [line.whole for line in lines("2026-12-01T10:00:00Z stderr F half of")] == [True]


def test_json_that_is_whole_needs_no_end_of_line() -> None:
    assert [line.whole for line in lines(json.dumps({"message": SAID}), whole=False)] == [True]


@pytest.mark.parametrize(
    "text", ['{"message": 5}', "[1]", '{"a": {}}', "{'message': 'x'}", '{"message": null}']
)
def test_what_holds_no_text_is_left_alone(text: str) -> None:
    assert lines(text) == [Line(text, 7)]


def test_json_that_is_cut_off_is_nobodys() -> None:
    assert lines('{"message": "Available KV', whole=False) == []


def test_a_progress_bar_is_many_lines() -> None:
    made = lines("  0%|  |\r 50%|= |\r(Worker_TP0 pid=1) done", whole=False)
    assert [(line.text, line.whole) for line in made] == [
        ("  0%|  |", True),
        (" 50%|= |", True),
        ("(Worker_TP0 pid=1) done", False),
    ]
    assert made[-1].process == "Worker_TP0 pid=1"


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert next(unwrap(b"a\xff\xfeb", 1)).text == "a\ufffd\ufffdb"


def test_half_a_character_is_replaced() -> None:
    assert lines('{"message": "a\\ud800b"}')[0].text == "a?b"


def test_a_level_is_no_service() -> None:
    assert lines("WARNING  | said") == [Line("WARNING  | said", 7)]
