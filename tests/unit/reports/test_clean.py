"""Text from outside can neither steer a terminal nor become a formula, markup or a link."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.reports.clean import ascii_text, clean, inert_cell, markdown_code, markdown_text

UNSAFE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


@given(st.text())
def test_clean_leaves_no_character_that_a_terminal_may_obey(text: str) -> None:
    assert not UNSAFE & {unicodedata.category(character) for character in clean(text)}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", "a\\x1b[2Jb"),
        ("a\x9b2Jb", "a\\x9b2Jb"),
        ("a\u202eb", "a\\u202eb"),
        ("a\ud800b", "a\\ud800b"),
        ("one\ntwo\ttabs", "one two tabs"),
        ("H100 × 4 – 東京", "H100 × 4 – 東京"),
    ],
)
def test_clean_spells_out_what_it_removes(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(st.text())
def test_ascii_text_keeps_every_column(text: str) -> None:
    plain = ascii_text(text)
    assert plain.isascii()
    assert len(plain) == len(text)


@given(st.text())
def test_no_cell_is_taken_for_a_formula(text: str) -> None:
    assert not inert_cell(text).lstrip().startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "  =1", "\t=1"])
def test_a_cell_that_starts_like_a_formula_gets_an_apostrophe(text: str) -> None:
    assert inert_cell(text).startswith("'")


@given(st.text())
def test_markdown_prose_has_no_live_markup(text: str) -> None:
    escaped = markdown_text(text)
    without_breaks = escaped.replace("@<!-- -->", "@")
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]<>|#~]", without_breaks)
    assert not re.search(r"(?<!\w)@\w", escaped)


@given(st.text(alphabet="`|ab ", min_size=1))
def test_a_code_span_ends_only_where_it_should(text: str) -> None:
    span = markdown_code(text)
    fence = re.match(r"`+", span)
    assert fence is not None
    inside = span[len(fence[0]) : -len(fence[0])]
    assert all(len(run) < len(fence[0]) for run in re.findall(r"`+", inside))
    assert not re.search(r"(?<!\\)\|", inside)
