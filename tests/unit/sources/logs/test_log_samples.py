"""Logs in every format that is read, against the records that they tell of."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from kvplan.measurement import Measurement
from kvplan.sources.logs.reader import read_log, starts_in
from kvplan.sources.text_lines import opened

FOLDER = Path(__file__).parents[3] / "data" / "logs"
EXPECTED: dict[str, list[dict[str, Any]]] = json.loads(
    (FOLDER / "expected.json").read_text(encoding="utf-8")
)
# One log, wrapped in every way that logs are carried.
WRAPPED = [name for name in EXPECTED if name.startswith("wrapped-")]
SECRETS = ("sk-", "hf_", "secret", "AKIA", "token=")


def records(name: str) -> list[Measurement]:
    with opened(str(FOLDER / name)) as stream:
        return list(starts_in(stream, name))


def known(record: Measurement) -> dict[str, Any]:
    return {key: value for key, value in record.model_dump().items() if value is not None}


def test_there_is_an_expectation_for_every_sample() -> None:
    files = {path.name for path in FOLDER.iterdir()} - {"expected.json"}
    assert files == EXPECTED.keys()
    assert len(files) >= 60


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_gives_its_records(name: str) -> None:
    assert [known(record) for record in records(name)] == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_no_secret_of_a_log_is_repeated(name: str) -> None:
    text = "".join(record.json_line() for record in records(name))
    assert not [secret for secret in SECRETS if secret in text]


def test_the_samples_hold_secrets() -> None:
    text = "".join(
        path.read_text(encoding="utf-8")
        for path in FOLDER.glob("*.log")
        if "utf16" not in path.name
    )
    assert all(secret in text for secret in SECRETS)


@pytest.mark.parametrize("name", [name for name in WRAPPED if "split" not in name])
def test_wrapping_changes_nothing(name: str) -> None:
    plain = known(records("vllm-crash-loop.log")[-1])
    first = known(records(name)[0])
    for own in ("id", "source"):
        del plain[own], first[own]
    assert first == plain


def test_the_figures_of_one_log_by_hand() -> None:
    (record,) = records("vllm-0.10.2-usage.log")
    assert record.engine_version == "0.10.2"
    assert (record.weights_gib, record.activation_peak_gib) == (14.9889, 1.26)
    assert (record.non_torch_gib, record.cudagraph_gib) == (0.25, 0.55)
    assert (record.available_kv_gib, record.kv_tokens) == (54.77, 448624)
    assert (record.num_gpu_blocks, record.max_concurrency) == (28039, 13.69)
    assert (record.gpu_total_gib, record.gpu_memory_utilization) == (79.19, 0.9)
    assert (record.tp, record.dp, record.quantization) == (1, None, None)
    assert record.outcome == "started"


def test_the_fullest_rank_is_told_and_the_spread() -> None:
    (record,) = records("vllm-0.11.2-pp2.log")
    extra = record.model_extra or {}
    assert (record.available_kv_gib, record.weights_gib) == (36.97, 30.699)
    assert extra["rank"] == "Worker_PP1 pid=31"
    assert extra["available_kv_gib_per_rank"] == [38.6, 36.97]


def test_a_sum_that_the_log_prints_is_taken_apart() -> None:
    (record,) = records("vllm-0.33.0-json.log")
    # 15.53 printed together; 1.77 printed with the estimate of 0.31 in it.
    assert (record.non_torch_gib, record.activation_peak_gib) == (0.26, 1.46)
    assert (record.model_extra or {})["derived"] == ["non_torch_gib", "activation_peak_gib"]


def test_a_number_cut_at_the_end_of_the_file_is_not_read() -> None:
    assert records("vllm-truncated.log")[0].available_kv_gib is None
    assert records("vllm-truncated-no-newline.log")[0].available_kv_gib == 53.31


def test_two_different_cards_are_not_one() -> None:
    (record,) = records("ollama-two-cards.log")
    assert (record.gpu, record.gpu_total_gib, record.gpu_count) == (None, None, 2)
    assert (record.model_extra or {})["contradictory"] == ["compute_name", "compute_total_gib"]


def test_starts_come_in_the_order_they_begin(tmp_path: Path) -> None:
    text = (FOLDER / "vllm-0.6.0-api.log").read_text(encoding="utf-8")
    other = (FOLDER / "sglang-0.5.5-hybrid.log").read_text(encoding="utf-8")
    path = tmp_path / "both.log"
    path.write_text(text + other + text, encoding="utf-8")
    assert [record.engine for record in read_log(str(path))] == ["vllm", "sglang", "vllm"]


def test_ranks_of_two_engines_in_one_log_are_no_ranks_of_one() -> None:
    """Lines of two starts, one by one: nobody says whose rank is whose."""
    text = (FOLDER / "vllm-0.11.2-tp4.log").read_text(encoding="utf-8")
    other = text.replace("pid=", "pid=9").replace("memory: 36.08", "memory: 46.08")
    assert "46.08" in other
    mixed = "".join(
        f"{one}\n{two}\n" for one, two in zip(text.splitlines(), other.splitlines(), strict=True)
    )
    alone = list(starts_in(io.BytesIO(text.encode()), "alone"))
    assert alone[-1].available_kv_gib is not None
    for record in starts_in(io.BytesIO(mixed.encode()), "mixed"):
        assert record.available_kv_gib is None
        extra = record.model_extra or {}
        assert not [key for key in extra if key.endswith("_per_rank") or key == "rank"]
        assert "cudagraph_gib" not in extra.get("of_other_ranks", [])
