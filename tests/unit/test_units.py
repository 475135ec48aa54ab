"""Sizes and counts as people write them, and as they are printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import UsageError
from kvplan.units import (
    GIB,
    KIB,
    MAX_BYTES,
    MAX_TOKENS,
    MIB,
    TIB,
    format_bytes,
    format_count,
    parse_bytes,
    parse_tokens,
)

HOSTILE = [
    "",
    " ",
    "-1",
    "+1",
    "−1",
    "1e9",
    "1e9GiB",
    "NaN",
    "nan",
    "inf",
    "Infinity",
    "٣٢k",
    "\N{FULLWIDTH DIGIT THREE}2k",
    "32\N{LATIN SMALL LETTER KRA}",
    "32\N{KELVIN SIGN}",
    "0x10",
    "0b1",
    "0o7",
    "1GiB GiB",
    "GiB",
    "1 2",
    "1..5",
    ".5",
    "5.",
    "1.5.0",
    "1,5",
    "1,50,000",
    "1,,000",
    ",1",
    "1,",
    "_1",
    "1_",
    "1__000",
    "1_0,000",
    "1,000_000",
    "32 k\x00",
    "32k\n32k",
    "32k;rm -rf",
    "1/2",
    "1 flop",
    "1 GiBit",
    "9" * 21,
    "1" + " " * 70 + "k",
    "1" + " " * 63 + "zzz",
    "1" * 10**6,
    "," * 10**6,
    " " * 10**6,
    "k" * 10**6,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:12]))
@pytest.mark.parametrize("parse", [parse_bytes, parse_tokens])
def test_what_is_no_size_is_a_usage_error_with_a_hint(
    parse: Callable[[str], int], text: str
) -> None:
    with pytest.raises(UsageError) as raised:
        parse(text)
    assert raised.value.hint
    assert len(str(raised.value)) < 200


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse, most in ((parse_bytes, MAX_BYTES), (parse_tokens, MAX_TOKENS)):
        try:
            count = parse(text)
        except UsageError:
            continue
        assert 0 <= count <= most
        assert re.search(r"[0-9]", text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0", 0),
        ("1", 1),
        ("1b", 1),
        ("1024 B", 1024),
        ("1KiB", 1024),
        ("1kb", 1000),
        ("1MiB", 1_048_576),
        ("1MB", 1_000_000),
        ("80GiB", 85_899_345_920),
        ("80GB", 80_000_000_000),
        ("40.5GiB", 43_486_543_872),
        ("2TiB", 2_199_023_255_552),
        ("2TB", 2_000_000_000_000),
        ("80gib", 85_899_345_920),
        (" 80 GiB ", 85_899_345_920),
        ("1.9", 1),
        ("0.1GiB", 107_374_182),
        ("1,000,000", 1_000_000),
        ("85_017_493_504", 85_017_493_504),
    ],
)
def test_bytes_by_hand(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1", 1),
        ("32k", 32_768),
        ("32K", 32_768),
        ("128 k", 131_072),
        ("1M", 1_048_576),
        ("1m", 1_048_576),
        ("0.5k", 512),
        ("1.5k", 1_536),
        ("131,072", 131_072),
        ("131_072", 131_072),
    ],
)
def test_tokens_by_hand(text: str, count: int) -> None:
    assert parse_tokens(text) == count


def test_a_decimal_gigabyte_is_not_a_binary_one() -> None:
    assert parse_bytes("1GiB") - parse_bytes("1GB") == 73_741_824


@pytest.mark.parametrize("text", ["0", "0k", "1.5", "0.3k", "80GB", "32GiB", "1kb"])
def test_tokens_are_whole_at_least_one_and_not_bytes(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_tokens(text)
    assert raised.value.hint == "Write 32k or 32768."
    assert re.match(
        r"'.*' is not a whole|A context has|'\w+' in '.*' is not a unit of tokens",
        str(raised.value),
    )


@pytest.mark.parametrize("text", ["1k", "1m", "1g", "80G", "1t", "1Gb it", "1PiB"])
def test_a_unit_that_could_mean_two_things_is_not_memory(text: str) -> None:
    with pytest.raises(UsageError):
        parse_bytes(text)


def test_an_unknown_unit_is_named_with_the_ones_there_are() -> None:
    with pytest.raises(UsageError, match=r"'G' in '80G' is not a unit of memory") as raised:
        parse_bytes("80G")
    assert raised.value.hint == "Use GiB (2^30 bytes) or GB (10^9 bytes)."
    with pytest.raises(UsageError, match=r"'GB' in '80GB' is not a unit of tokens"):
        parse_tokens("80GB")


def test_a_long_text_is_not_repeated_whole() -> None:
    with pytest.raises(UsageError) as raised:
        parse_bytes("7" * 65)
    assert str(raised.value) == f"'{'7' * 20}…' is not a memory size."
    assert parse_bytes(" " * 63 + "7") == 7
    with pytest.raises(UsageError):
        parse_bytes(" " * 64 + "7")
    with pytest.raises(UsageError, match=r"'7{64}' is not"):
        parse_bytes("7" * 64)


def test_what_can_not_be_read_is_answered_with_an_example() -> None:
    with pytest.raises(UsageError) as memory:
        parse_bytes("lots")
    assert str(memory.value) == "'lots' is not a memory size."
    assert memory.value.hint == "Write it like 40.5GiB or 80GB."
    with pytest.raises(UsageError) as tokens:
        parse_tokens("lots")
    assert str(tokens.value) == "'lots' is not a number of tokens."
    assert tokens.value.hint == "Write it like 32k or 131072."


def test_no_context_is_empty() -> None:
    with pytest.raises(UsageError, match=r"^A context has at least one token\.$"):
        parse_tokens("0")


def test_limits_are_inclusive() -> None:
    assert parse_bytes(str(2**60)) == 2**60
    assert parse_tokens(str(2**40)) == 2**40
    with pytest.raises(UsageError) as raised:
        parse_bytes(str(2**60 + 1))
    assert str(raised.value) == ("'1152921504606846977' is more than any memory kvplan plans for.")
    assert raised.value.hint == "At most 1,152,921,504,606,846,976."
    with pytest.raises(UsageError, match="more than any context"):
        parse_tokens(str(2**40 + 1))


@given(st.integers(0, MAX_BYTES))
def test_whole_bytes_survive_the_way_through_text(count: int) -> None:
    assert parse_bytes(str(count)) == count
    assert parse_bytes(f"{count} B") == count
    assert parse_bytes(f"{count:,}") == count
    assert parse_bytes(f"{count:_}") == count


@given(st.integers(1, MAX_TOKENS))
def test_whole_tokens_survive_the_way_through_text(count: int) -> None:
    assert parse_tokens(str(count)) == count
    assert parse_tokens(format_count(count)) == count


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**12 - 1),
    st.sampled_from([("KiB", KIB), ("MB", 10**6), ("GiB", GIB), ("TB", 10**12), ("TiB", TIB)]),
)
def test_fractions_of_a_unit_are_exact_to_the_byte_below(
    whole: int, twelfths: int, unit: tuple[str, int]
) -> None:
    name, factor = unit
    exact = (whole + Fraction(twelfths, 10**12)) * factor
    if exact <= MAX_BYTES:
        assert parse_bytes(f"{whole}.{twelfths:012d}{name}") == exact.__floor__()


@given(st.integers(1, 1023), st.sampled_from([KIB, MIB]))
def test_what_is_printed_whole_is_read_back_exactly(count: int, unit: int) -> None:
    assert parse_bytes(format_bytes(count * unit)) == count * unit


@given(st.integers(0, 2**20 * 100 - 1))
def test_gibibytes_in_hundredths_are_read_back_within_half_a_hundredth(hundredths: int) -> None:
    count = GIB + hundredths * GIB // 100
    assert abs(parse_bytes(format_bytes(count)) - count) <= GIB // 200


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1,023 B"),
        (1023.4, "1,023 B"),
        (1023.5, "1.0 KiB"),
        (1024, "1 KiB"),
        (1025, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (MIB - 513, "1,023.5 KiB"),
        (MIB - 512, "1.0 MiB"),
        (MIB - 1, "1.0 MiB"),
        (MIB, "1 MiB"),
        (MIB + MIB // 2, "1.5 MiB"),
        (500 * MIB, "500 MiB"),
        (GIB - MIB // 2 - 1, "1,023.5 MiB"),
        (GIB - MIB // 2, "1.00 GiB"),
        (1023.9995 * MIB, "1.00 GiB"),
        (GIB, "1.00 GiB"),
        (80 * 10**9, "74.51 GiB"),
        (85_017_493_504, "79.18 GiB"),
        (2000 * GIB, "2,000.00 GiB"),
        (-1, "-1 B"),
        (-MIB, "-1 MiB"),
        (-3 * GIB, "-3.00 GiB"),
    ],
)
def test_bytes_for_people(count: float, text: str) -> None:
    assert format_bytes(count) == text


@given(st.integers(-(2**60), 2**60) | st.floats(-1e18, 1e18))
def test_no_unit_is_printed_1024_times(count: int) -> None:
    text = format_bytes(count)
    number, unit = text.rsplit(" ", 1)
    if unit != "GiB":
        assert abs(float(number.replace(",", ""))) < 1024


@given(st.integers(-(2**60), 2**60))
def test_the_unit_is_the_one_that_was_divided_by(count: int) -> None:
    number, unit = format_bytes(count).rsplit(" ", 1)
    factor = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB}[unit]
    half_digit = {"B": 0, "KiB": 0.05, "MiB": 0.05, "GiB": 0.005}[unit]
    printed = Fraction(number.replace(",", ""))
    assert abs(printed - Fraction(count, factor)) <= Fraction(half_digit) + Fraction(1, 10**6)


def test_counts_have_their_thousands_separated() -> None:
    assert format_count(331_776) == "331,776"
    assert format_count(12.4) == "12"
