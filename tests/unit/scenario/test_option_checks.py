"""Options of an engine in a file: every mistake at its place, before anything is planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvplan.errors import InputError
from kvplan.scenario.option_checks import option_problems
from tests.scenario_files import loaded, one, questions, write


def test_every_wrong_option_is_named() -> None:
    options = {"max_num_seq": 4, "block_size": 16, "enforce_eager": "no", "gpu_mem": 0.9}
    found = dict(option_problems("vllm==0.33.0", options))
    assert list(found) == ["max_num_seq", "enforce_eager", "gpu_mem"]
    assert "Did you mean max_num_seqs" in found["max_num_seq"]


@pytest.mark.parametrize(
    ("engine", "options"),
    [
        ("vllm", {"max-num-seqs": 4, "gpu_memory_utilization": 0.9}),
        ("transformers==5.24.0", {"max_cache_len": 4096, "cache": "StaticCache"}),
        ("llama.cpp", {"parallel": 4, "n_ctx": 8192}),
        ("ollama", {"num_ctx": 8192}),
        ("sglang==0.5.5", {"mem_fraction_static": 0.8}),
        ("tensorrt-llm", {"max_batch_size": 8}),
        ("vllm", {"enable_lora": True}),  # not sized: the plan says it
    ],
)
def test_what_an_engine_has_is_no_problem(engine: str, options: dict[str, object]) -> None:
    assert not list(option_problems(engine, options))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("enforce_eager", "no", "Write enforce_eager: true."),
        ("gpu_memory_utilization", "90%", "Write gpu_memory_utilization: 0.92."),
        ("tensor_parallel_size", 2, "Write tp: beside `options`."),
        ("kv_cache_dtype", "fp8", "Write kv_dtype: beside `options`."),
        ("model", "x", "Write model: beside `options`."),
    ],
)
def test_a_file_has_keys_and_no_flags(name: str, value: object, said: str) -> None:
    ((found, sentence),) = option_problems("vllm", {name: value})
    assert found == name
    assert sentence.endswith(said)
    assert " -o " not in sentence


def test_a_wrong_option_is_found_in_the_layer_that_states_it(tmp_path: Path) -> None:
    text = (
        "defaults: {model: m/m, gpu: L4, options: {max_num_seq: 4}}\n"
        "scenarios:\n  a:\n    options:\n      enforce_eager: maybe\n"
    )
    with pytest.raises(InputError, match="2 problems") as caught:
        questions(write(tmp_path, text))
    lines = caught.value.message.split("\n")
    assert ":2:" in lines[1].replace(str(tmp_path), "")
    assert ":6:7: enforce_eager" in lines[2].replace(str(tmp_path), "")


def test_options_are_said_beside_other_problems_of_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, one("modle: x\noptions: {max_num_seq: 4}\ntp: 2x"))
    with pytest.raises(InputError, match="3 problems") as caught:
        loaded(path)
    for part in ("`modle`", "'max_num_seq'", "tp"):
        assert part in caught.value.message


@pytest.mark.parametrize("part", ["options: [1]", "engine: 5\noptions: {x: 1}", "options: {}"])
def test_what_is_no_mapping_is_left_to_the_schema(tmp_path: Path, part: str) -> None:
    with pytest.raises(InputError):
        loaded(write(tmp_path, one(f"modle: x\n{part}")))
