"""A model on standard input: a configuration, a spec, or one sentence that says what is wrong."""

from __future__ import annotations

import io
import sys

import pytest

from kvplan.errors import KvplanError, UsageError
from kvplan.sources.json_reader import CONFIG_LIMIT
from kvplan.sources.models import read_model

SPEC = b"schema: kvplan.model/1\nid: org/name\nconfig: {model_type: llama}\nsource: here\n"


def _send(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_configuration(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    _send(monkeypatch, b' \n{"model_type": "llama"}')
    facts = read_model(name)
    assert (facts.source, facts.config) == ("standard input", {"model_type": "llama"})


def test_a_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    _send(monkeypatch, SPEC)
    facts = read_model("-")
    assert (facts.id, facts.config) == ("org/name", {"model_type": "llama"})
    assert facts.source == "standard input, from here"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "Nothing came"),
        (b" \n", "Nothing came"),
        (b"[1]", "a list"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"hello", "standard input"),
        (b"{" + b" " * CONFIG_LIMIT, "at most"),
        (b"schema: kvplan.gpu/1\nid: X", "a GPU spec"),
    ],
)
def test_anything_else_is_one_error(
    monkeypatch: pytest.MonkeyPatch, data: bytes, said: str
) -> None:
    _send(monkeypatch, data)
    with pytest.raises(KvplanError) as caught:
        read_model("-")
    assert said in str(caught.value)
    assert caught.value.exit_code == 2
    assert caught.value.hint


def test_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UsageError, match="closed"):
        read_model("-")
