"""Words of the command line: what they mean, and one sentence with a hint for the others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.cli.arguments import (
    parse_context,
    parse_count,
    parse_kv_budget,
    parse_options,
    parse_value,
)
from kvplan.errors import UsageError
from kvplan.units import GIB, MIB


@pytest.mark.parametrize(("text", "count"), [("1", 1), ("+4", 4), (" 8 ", 8), ("4096", 4096)])
def test_counts(text: str, count: int) -> None:
    assert parse_count("--tp", text) == count


@pytest.mark.parametrize("text", ["0", "-1", "abc", "1.5", "", "1e3", "٤", "9" * 5000, "--dp"])
def test_what_is_no_count_names_its_flag_and_says_what_to_write(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_count("--tp", text)
    assert caught.value.location == "--tp"
    assert caught.value.hint
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize(
    ("text", "tokens"), [(None, None), ("auto", "auto"), ("AUTO", "auto"), ("32k", 32768)]
)
def test_contexts(text: str | None, tokens: int | str | None) -> None:
    assert parse_context(text) == tokens


@pytest.mark.parametrize("text", ["abc", "0", "-5", "99999999999999", "32q", "1.0001k", ""])
def test_what_is_no_context(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_context(text)
    assert caught.value.location == "--context"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("texts", "budget"),
    [
        ((), None),
        (("40.5GiB",), 40 * GIB + 512 * MIB),
        (("40GiB", "41GiB"), (40 * GIB, 41 * GIB)),
        (("40GiB,41GiB", "42GiB"), (40 * GIB, 41 * GIB, 42 * GIB)),
        (("43,486,543,872",), 43_486_543_872),
    ],
)
def test_kv_budgets(texts: tuple[str, ...], budget: int | tuple[int, ...] | None) -> None:
    assert parse_kv_budget(texts) == budget


@pytest.mark.parametrize("text", ["0", "-1GiB", "much", "40GiB,", "40 parsecs"])
def test_what_is_no_kv_budget(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_kv_budget((text,))
    assert caught.value.location == "--kv-budget"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("64", 64),
        ("-1", -1),
        ("0.95", 0.95),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("null", None),
        ("fp8", "fp8"),
        ("1.2.3", "1.2.3"),
        ("nan", "nan"),
        ("", ""),
        ("a=b", "a=b"),
        ('"64"', "64"),
        ("[1, 2]", [1, 2]),
        ('{"method": "ngram", "num_speculative_tokens": 3}',
         {"method": "ngram", "num_speculative_tokens": 3}),
    ],
)  # fmt: skip
def test_values_of_options_are_typed(text: str, value: Any) -> None:
    parsed = parse_value("name", text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    "text", ["{", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 9000, '"unended', "1e999", "x" * 20_000]
)
def test_broken_values_are_one_sentence(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_value("name", text)
    assert len(str(caught.value)) < 200


def test_options_by_name() -> None:
    given_options = ["gpu_memory_utilization=0.9", "enforce-eager=true"]
    assert parse_options(given_options) == {"gpu_memory_utilization": 0.9, "enforce_eager": True}


@pytest.mark.parametrize("text", ["novalue", "=1", "9a=1", "a b=1", "a" * 100 + "=1"])
def test_what_is_no_option(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_options([text])
    assert caught.value.location == "-o"


def test_an_option_given_twice_is_an_error() -> None:
    with pytest.raises(UsageError, match="max_num_seqs is given twice"):
        parse_options(["max_num_seqs=1", "max-num-seqs=2"])


@given(st.text())
def test_nothing_but_a_usage_error_comes_out(text: str) -> None:
    for parse in (
        lambda: parse_count("--tp", text),
        lambda: parse_context(text),
        lambda: parse_kv_budget((text,)),
        lambda: parse_options((text,)),
        lambda: parse_value("name", text),
    ):
        try:
            parse()
        except UsageError as error:
            assert error.message  # noqa: PT017 - either outcome is fine, any other is not
