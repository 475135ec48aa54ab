"""Command lines of vLLM: real ones, odd ones, broken ones."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from vllm_command_lines import LINES, Line

from kvplan.engines.vllm.command_read import Command, read_arguments, read_text
from kvplan.errors import UsageError

_USUAL = {field.name: getattr(Command(), field.name) for field in fields(Command)}


def no_file(name: str) -> dict[str, Any]:
    raise AssertionError(name)


def said(command: Command) -> dict[str, Any]:
    pairs = {name: getattr(command, name) for name in _USUAL}
    return {name: value for name, value in pairs.items() if value != _USUAL[name]}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.text[:60])
def test_a_line_says_what_it_says(line: Line) -> None:
    assert said(read_text(line.text, no_file)) == line.expected


def test_there_are_enough_real_lines() -> None:
    assert sum(line.source is not None for line in LINES) >= 15
    assert len(LINES) >= 30


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Nothing in that text starts vLLM"),
        ("ls -l", "Nothing in that text starts vLLM"),
        ("vllm --version", "Nothing in that text starts vLLM"),
        ("vllm bench serve --model a/b", "asks a server"),
        ("vllm chat --url x", "asks a server"),
        ("docker run ubuntu bash", "looks like an image of vLLM"),
        ("vllm serve a/b --max-model-len", "--max-model-len has no value"),
        ("vllm serve a/b --max-model-len --port 80", "--max-model-len has no value"),
        ("vllm serve a/b --max-model-len lots", "--max-model-len is a whole number"),
        ("vllm serve a/b --max-model-len 0", "--max-model-len is a number from 1"),
        ("vllm serve a/b --max-model-len 1.5K", "--max-model-len is a whole number"),
        ("vllm serve a/b --max-model-len 2.5", "--max-model-len is a whole number"),
        ("vllm serve a/b -tp two", "--tensor-parallel-size is a whole number"),
        ("vllm serve a/b -tp -2", "--tensor-parallel-size is a whole number"),
        ("vllm serve a/b --gpu-memory-utilization all", "is a share of the card"),
        ("vllm serve a/b --gpu-memory-utilization 2", "is a share of the card"),
        ("vllm serve a/b --speculative-config {method:mtp}", "is not JSON"),
        ("vllm serve a/b --speculative-config '{\"methd\": 1}'", "has no key 'methd'"),
        ("vllm serve a/b --compilation-config '[1]'", "--compilation-config is a mapping"),
        ("vllm serve a/b --speculative-config '{", "opens ' on line 1 and never closes it"),
        ('vllm serve "a/b', 'opens " on line 1'),
        ("vllm serve $(cat model", r"opens \$\( on line 1"),
        ("vllm serve a/b `x", "opens ` on line 1"),
        ("vllm serve a/b " + "x" * 100_000, "is too long"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        read_text(text, no_file)
    assert raised.value.hint


@pytest.mark.parametrize(
    ("text", "variable"),
    [
        ("vllm serve $MODEL", "$MODEL"),
        ("vllm serve a/b -tp ${TP}", "${TP}"),
        ('vllm serve "a/$NAME"', "$NAME"),
        ("vllm serve a/b -tp $(nvidia-smi -L | wc -l)", "$(nvidia-smi -L | wc -l)"),
        ("vllm serve a/b -tp=`nproc`", "`nproc`"),
    ],
)
def test_a_shell_is_needed_for_a_variable(text: str, variable: str) -> None:
    with pytest.raises(UsageError, match="only a shell can fill in") as raised:
        read_text(text, no_file)
    assert variable in raised.value.message


@pytest.mark.parametrize(
    "text",
    [
        "vllm serve 'a/$b'",
        "vllm serve a/\\$b",
        "vllm serve 'a/$b' --api-key $KEY --port ${PORT:-80} --host `hostname`",
    ],
)
def test_quoted_dollars_and_values_that_do_not_matter_are_left_alone(text: str) -> None:
    assert read_text(text, no_file).model == "a/$b"


def test_secrets_are_never_said() -> None:
    text = (
        "HF_TOKEN=hf_secret vllm serve a/b --api-key hunter2 hunter3 --hf-token hf_secret"
        " --unheard-of hunter4 stray_hunter5 --portt=hunter6"
    )
    shown = repr(read_text(text, no_file))
    assert "hunter" not in shown
    assert "hf_secret" not in shown
    assert "1 of its words belong to no flag" in shown


def test_a_file_of_flags_gives_way_to_the_line() -> None:
    asked: list[str] = []

    def file(name: str) -> dict[str, Any]:
        asked.append(name)
        return {
            "model": "file/model",
            "tensor-parallel-size": 2,
            "max_model_len": "16k",
            "enforce-eager": True,
            "enable-prefix-caching": False,
            "kv-cache-dtype-skip-layers": ["0", 1],
            "speculative-config": {"method": "mtp", "num_speculative_tokens": 1},
            "allowed-origins": [],
        }

    command = read_text("vllm serve --config flags.yaml -tp 4", file)
    assert asked == ["flags.yaml"]
    assert said(command) == {
        "model": "file/model",
        "tp": 4,
        "context": 16000,
        "options": {
            "enforce_eager": True,
            "enable_prefix_caching": False,
            "kv_cache_dtype_skip_layers": ["0", "1"],
            "speculative_config": {"method": "mtp", "num_speculative_tokens": 1},
        },
    }


@pytest.mark.parametrize(
    ("words", "image", "model", "version"),
    [
        (["--model", "a/b"], "vllm/vllm-openai:v0.10.2", "a/b", "0.10.2"),
        (["a/b", "--port", "8000"], None, "a/b", None),
        (["serve", "a/b"], "x@sha256:12", "a/b", None),
        (["/bin/sh", "-c", "vllm serve a/b"], "localhost:5000/vllm:1.2.3", "a/b", "1.2.3"),
        (["python3", "-m", "vllm.entrypoints.openai.api_server", "--model=a/b"], "x", "a/b", None),
    ],
)
def test_arguments_of_a_container(
    words: list[str], image: str | None, model: str, version: str | None
) -> None:
    command = read_arguments(words, no_file, image=image)
    assert (command.model, command.version) == (model, version)


def test_kubernetes_fills_in_variables_too() -> None:
    with pytest.raises(UsageError, match=r"'\$\(MODEL\)', which only"):
        read_arguments(["--model", "$(MODEL)"], no_file, image=None)


_TEXTS = [line.text for line in LINES]


def refused(text: str) -> UsageError | None:
    try:
        read_text(text, lambda _name: {})
    except UsageError as error:
        return error
    return None


@given(st.sampled_from(_TEXTS), st.integers(0, 2000), st.integers(0, 50))
def test_a_line_cut_anywhere_is_read_or_refused(text: str, start: int, length: int) -> None:
    error = refused(text[:start] + text[start + length :])
    assert error is None or error.message.endswith(".")


_PIECES = st.sampled_from(
    [
        *("vllm", "serve", "--model", "-tp", "=", "'", '"', "\\", "$", "{", "}", "(", ")", "`"),
        *("--config", "docker run", "vllm/vllm-openai:v0.11.0", "bash -c", "#", ";", "--", "-O"),
        *("--speculative-config", "--no-", "-1", "nan", "1e999", "k", "\0", "é", "--x.y.z", "["),
        *("]", ",", ".", "+", "\n", " ", ">", "2>&1", "<<EOF"),
    ]
)


@given(st.lists(_PIECES | st.text(max_size=5), max_size=20))
@example(["vllm", " ", "serve", " ", "-O"])
@example(["vllm serve ", "--speculative-config.+ ", "1"])
def test_any_text_is_read_or_refused(pieces: list[str]) -> None:
    for text in ("".join(pieces), "vllm serve a/b " + " ".join(pieces)):
        error = refused(text)
        assert error is None or error.message.endswith(".")
