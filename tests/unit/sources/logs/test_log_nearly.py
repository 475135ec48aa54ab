"""Sentences with one damaged byte: that something was said is known, and nothing else."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from kvplan.sources.logs.lines import Line, one_off
from kvplan.sources.logs.llamacpp import LLAMACPP
from kvplan.sources.logs.nearly import matters, nearly_said
from kvplan.sources.logs.reader import starts_in
from kvplan.sources.logs.vllm import VLLM
from kvplan.sources.logs.wording import wording

FOLDER = Path(__file__).parents[3] / "data" / "logs"
KV = "llama_kv_cache:      CUDA0 KV buffer size =  6647.00 MiB"


def facts_of(text: str) -> set[str]:
    found = nearly_said(Line(text, 1), LLAMACPP.wordings)
    return {name for each in found for name in each.facts} - {"component", "device"}


@pytest.mark.parametrize(
    "damaged",
    [
        KV.replace("buffer", "bXffer"),
        KV.replace("KV", "K\x00"),
        KV.replace("6647", "66?7"),
        KV.replace("MiB", "MxB"),
        KV.replace("size =", "size  x"),
        KV.replace(": ", "; "),
    ],
)
def test_any_one_character_may_be_another(damaged: str) -> None:
    assert "kv_buffer_gib" in facts_of(damaged)


@pytest.mark.parametrize(
    "other",
    [
        "llama_context:  CUDA_Host  output buffer size =     2.32 MiB",
        "llama_kv_cache: layer 31: n_embd_k_gqa = 2048, n_embd_v_gqa = 2048",
        KV.replace("buffer", "bXXfer"),
        "MiB",
        "",
    ],
)
def test_other_lines_are_not_near(other: str) -> None:
    assert "kv_buffer_gib" not in facts_of(other)


def test_a_sentence_of_few_words_is_not_told_by_them() -> None:
    short = wording("n: {n}", {"n": VLLM.facts["final_blocks"]})
    assert matters(short)
    assert list(nearly_said(Line("m: 5", 1), (short,))) == []


def test_a_sentence_without_figures_is_not_missed() -> None:
    assert not matters(wording("Application startup complete", {}))


def test_one_off_is_as_long_as_the_words() -> None:
    pattern = re.compile(one_off("a.b"))
    assert all(pattern.fullmatch(text) for text in ("a.b", "x.b", "axb", "a.x"))
    assert not any(pattern.fullmatch(text) for text in ("xxb", "a.", "a.bb", ""))


def read(name: str, old: bytes, new: bytes) -> dict[str, object]:
    data = (FOLDER / name).read_bytes()
    assert old in data
    (record,) = starts_in(io.BytesIO(data.replace(old, new, 1)), name)
    return record.model_dump()


def test_a_sum_without_one_of_its_parts_is_not_given() -> None:
    name = "llamacpp-b6123-window.log"
    assert (
        read(name, b"KV buffer size =   624.00", b"KV buffer size =   6x4.00")["available_kv_gib"]
        is None
    )
    assert read(name, b"x", b"x")["available_kv_gib"] == 10.609375


def test_a_cache_without_one_of_its_halves_is_not_given() -> None:
    record = read("llamacpp-fit-hybrid.log", b"RS buffer size", b"RS buffor size")
    assert (record["available_kv_gib"], record["weights_gib"]) == (None, 13.70335)


def test_the_least_of_ranks_is_not_given_without_one_of_them() -> None:
    name = "vllm-0.11.2-pp2.log"
    whole = read(name, b"x", b"x")
    assert whole["available_kv_gib"] == 36.97
    damaged = read(name, b"Available KV cache memory: 36.97", b"Available KV cache mem0ry: 36.97")
    assert (damaged["available_kv_gib"], damaged["weights_gib"]) == (None, None)
    assert damaged["kv_tokens"] == whole["kv_tokens"]


def test_a_draft_model_is_kept_apart_though_its_line_is_damaged() -> None:
    name = "llamacpp-draft.log"
    record = read(name, b"loading draft model", b"loading draft mode\xfa")
    assert (record["available_kv_gib"], record["weights_gib"]) == (2.0, 17.578125)


def test_brackets_that_do_not_pair_end_the_settings() -> None:
    name = "vllm-0.11.2-tp4.log"
    record = read(name, b"'cudagraph_capture_sizes': [1", b"'cudagraph_capture_sizes': x1")
    assert record["tp"] in (None, 4)


def test_a_device_that_is_none_spoils_the_sum() -> None:
    record = read("llamacpp-metal.log", b"Metal_Mapped", b"MetaX_Mapped")
    assert (record["weights_gib"], record["gpu_count"]) == (None, 1)


def test_a_card_that_is_not_read_is_not_left_out() -> None:
    record = read("ollama-two-cards.log", b' name="NVIDIA', b' nam\xfe="NVIDIA')
    assert (record["gpu"], record["gpu_total_gib"]) == (None, None)
