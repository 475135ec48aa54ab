"""Files of traces: formats, columns, errors with their lines, and the public samples."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import InputError, KvplanError, UsageError
from kvplan.sources.trace_columns import choose, parse_columns
from kvplan.sources.traces import OpenTrace, open_trace
from kvplan.workloads.requests import Request

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,4808,10\n"
MOONCAKE = '{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}\n'


def read(path: Path, **columns: str) -> tuple[OpenTrace, list[Request]]:
    """The trace and its requests."""
    with open_trace(str(path), columns=columns) as trace:
        return trace, list(trace.requests)


def test_csv_json_lines_and_gzip_are_told_apart_by_content(tmp_path: Path) -> None:
    for index, text in enumerate((AZURE, MOONCAKE)):
        plain, packed = tmp_path / f"{index}.txt", tmp_path / f"{index}.bin"
        plain.write_text(text)
        packed.write_bytes(gzip.compress(text.encode()))
        assert read(plain)[1] == read(packed)[1]
        assert len(read(plain)[1]) == 1


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_and_marks_of_spreadsheets(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "t.csv"
    text = AZURE.replace(",", delimiter).replace("\n", "\r\n") + "\r\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert read(path)[1] == [Request(0.0, 4808, 10)]


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("at,a,b\n1500,7,3\n2500,8,4\n")
    wanted = parse_columns("arrival=at:ms, prompt=a,output=b")
    assert read(path, **wanted)[1] == [Request(0.0, 7, 3), Request(1.0, 8, 4)]


def test_mooncake_has_milliseconds_and_others_seconds() -> None:
    assert (
        choose(["timestamp", "input_length", "output_length", "hash_ids"], {}, "t").unit_s == 1e-3
    )
    assert choose(["Timestamp", "Request tokens", "Response tokens"], {}, "t").unit_s is None
    assert choose(["arrival_us", "prompt_tokens", "output_tokens"], {}, "t").unit_s == 1e-6


@pytest.mark.parametrize(
    ("text", "location", "sentence"),
    [
        ("", "t.csv", "empty"),
        ("\n \n", "t.csv", "empty"),
        ("a,b\n1,2\n", "t.csv:1", "No column is called like the prompt"),
        ("prompt_tokens,isl,output_tokens\n1,2,3\n", "t.csv:1", "can each be the prompt"),
        ("prompt_tokens,output_tokens\n1,2\n3\n", "t.csv:3", "only 1 columns"),
        ("prompt_tokens,output_tokens\n1,2\n\n3,-4\n", "t.csv:4", "negative"),
        ('prompt_tokens,output_tokens\n1,"2\n', "t.csv:2", "not CSV"),
        ('{"prompt_tokens": 1, "output_tokens": 1}\n[1]\n', "t.csv:2", "not a JSON object"),
        ('{"prompt_tokens": 1, "output_tokens": 1}\n{"prompt_tokens": 1}\n', "t.csv:2", "missing"),
        ('{"prompt_tokens": NaN, "output_tokens": 1}\n', "t.csv:1", "no whole number"),
        ("[{}]\n", "t.csv:1", "not a JSON object"),
        ("prompt_tokens,output_tokens\n", "t.csv", "no request."),
        ("prompt_tokens,output_tokens\n5,0\n0,5\n", "t.csv", "all 2 rows lack tokens"),
    ],
)
def test_a_broken_trace_is_one_sentence_with_its_line(
    tmp_path: Path, text: str, location: str, sentence: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence) as caught:
        read(path)
    assert caught.value.location == str(tmp_path / location)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"prompt_tokens,output_tokens\n\xff,1\n")
    with pytest.raises(InputError, match="UTF-8"):
        read(path)


@pytest.mark.parametrize("text", ["", "prompt", "prompt=", "colour=x", "=x"])
def test_what_names_no_column(text: str) -> None:
    with pytest.raises(UsageError):
        parse_columns(text)


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(AZURE)
    with pytest.raises(UsageError, match="no column 'ContextToken'") as caught:
        read(path, prompt="ContextToken")
    assert "ContextTokens" in str(caught.value.hint)


@given(st.binary(max_size=300))
def test_any_file_gives_requests_or_one_of_our_errors(
    tmp_path_factory: object, data: bytes
) -> None:
    assert isinstance(tmp_path_factory, pytest.TempPathFactory)
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(data)
    with contextlib.suppress(KvplanError):
        assert all(one.output_tokens for one in read(path)[1])


SAMPLES = {
    "azure2023_code.head5000.csv": (5000, 0),
    "azure2023_conv.head5000.csv": (5000, 0),
    "burstgpt_1.head42.csv": (38, 4),
    "mooncake_conversation.head5000.jsonl": (5000, 0),
    "mooncake_synthetic.head5000.jsonl": (3993, 0),
    "vidur_arxiv_summarization_stats_llama2_tokenizer_filtered_v2.head5000.csv": (5000, 0),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_public_samples_are_read_as_they_are(shared: Path, name: str) -> None:
    trace, found = read(shared / "traces" / name)
    assert (trace.tally.requests, trace.tally.failed) == SAMPLES[name]
    assert len(found) == trace.tally.requests


def test_the_whole_synthetic_trace_has_its_publishers_figures(shared: Path) -> None:
    name = "mooncake_synthetic.head5000.jsonl"
    trace, found = read(shared / "traces" / name)
    stats = json.loads((shared / "traces" / "stats.json").read_text())
    (stated,) = (one for one in stats if one.get("file") == name)
    assert sum(one.prompt_tokens for one in found) / len(found) == pytest.approx(
        stated["input"]["mean"], abs=0.05
    )
    assert trace.tally.last_s == pytest.approx(stated["arrival"]["duration_s"])
