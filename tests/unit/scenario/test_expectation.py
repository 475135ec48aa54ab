"""The language of `expect:`: what is read, what is refused, and with which words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import KvplanError, UnknownNameError, UsageError
from kvplan.scenario import figures, kinds
from kvplan.scenario.expectation import parse
from kvplan.units import GIB

NAMES = sorted({*figures.fields(), *figures.SHORT, *figures.COMPUTED})


@pytest.mark.parametrize(
    ("text", "name", "operator", "value"),
    [
        ("requests >= 50", "requests", ">=", 50),
        ("requests>=1,000", "requests", ">=", 1000),
        ("headroom >= 10%", "headroom", ">=", 0.1),
        ("headroom >= 0.1", "headroom", ">=", 0.1),
        ("kv.tokens_low >= 400k", "kv.tokens_low", ">=", 409_600),
        ("verdict == fits", "verdict", "==", "fits"),
        ("verdict != refused", "verdict", "!=", "refused"),
        ("kv.bytes_per_request <= 1.5GiB", "kv.bytes_per_request", "<=", 3 * GIB // 2),
        ("ledger.weights < 80GB", "ledger.weights", "<", 80_000_000_000),
        ("cost_per_request <= 0.002 USD", "cost_per_request", "<=", 0.002),
        ("engine.options.max_num_seqs == 64", "engine.options.max_num_seqs", "==", 64),
        ("engine.options.enforce_eager == false", "engine.options.enforce_eager", "==", False),
        ("engine.version == 0.33.0", "engine.version", "==", "0.33.0"),
        ("capacity.max_concurrency > 2.5", "capacity.max_concurrency", ">", 2.5),
    ],
)
def test_comparisons_are_read(text: str, name: str, operator: str, value: object) -> None:
    read = parse(text)
    assert (read.name, read.operator) == (name, operator)
    assert read.limit is not None
    assert read.limit.value == value
    assert type(read.limit.value) is type(value)


def test_the_right_side_may_be_a_name_of_the_same_kind() -> None:
    assert parse("requests >= concurrency").other == "concurrency"
    with pytest.raises(UsageError, match="a number of tokens, but a count is compared with it"):
        parse("requests >= tokens")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("requests", "is not a comparison", "requests >= 50"),
        ("requests >= 5GiB", "requests is a count, and '5GiB' is none", "50 or 1,000"),
        ("requests >= 50%", "is a count", "50"),
        ("requests >= 1k", "is a count", "1,000"),
        ("headroom >= 10", "headroom is a share, and '10' is none", "10%"),
        ("kv.tokens_low >= 10%", "is a number of tokens", "400k"),
        ("kv.tokens_low >= 4GiB", "is a number of tokens", "400k"),
        ("kv.bytes_per_request <= 10 parsecs", "is an amount of memory", "40.5GiB"),
        ("cost_per_request <= 3%", "is money", "0.002 USD"),
        ("verdict == fit", "verdict is never 'fit'", "fits"),
        ("verdict >= fits", "a word, which is neither more nor less", "verdict == fits"),
        ("requests => 50", "no operator =>", ">="),
        ("requests = 50", "no operator =", "=="),
        ("overload_risk <= ten%", "is a share", "10%"),
    ],
)
def test_wrong_units_and_types_are_named(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        parse("headrom >= 10%")
    assert "headroom" in (caught.value.hint or "")


def _literal(kind: kinds.Kind) -> st.SearchStrategy[str]:
    whole = st.integers(0, 10**12)
    strategies: dict[kinds.Kind, st.SearchStrategy[str]] = {
        "count": whole.map(str) | whole.map("{:,}".format),
        "tokens": st.integers(1, 2**40).map(str) | st.integers(1, 2**20).map("{}k".format),
        "bytes": st.integers(1, 10**6).map("{}MiB".format) | whole.map(str),
        "share": st.integers(-100, 100).map("{}%".format),
        "number": st.decimals(0, 10**6, places=3).map("{:f}".format),
        "money": st.decimals(0, 10**6, places=4).map("{:f} EUR".format),
        "text": st.from_regex(r"[A-Za-z0-9._/-]{1,40}", fullmatch=True),
        "any": st.sampled_from(("64", "true", "fp8", "0.9")),
    }
    return strategies[kind]


@given(data=st.data(), name=st.sampled_from(NAMES), operator=st.sampled_from(("==", "!=")))
def test_whatever_is_written_in_its_own_unit_is_read(
    data: st.DataObject, name: str, operator: str
) -> None:
    kind = figures.kind_of(name)
    words = figures.words_of(name)
    text = data.draw(st.sampled_from(words) if words else _literal(kind))
    spaces = data.draw(st.sampled_from(("", " ", "  ")))
    read = parse(f"{name} {operator}{spaces}{text}")
    assert (read.name, read.operator, read.kind) == (name, operator, kind)
    assert read.limit is not None
    assert read.limit == kinds.read(text, kind)


@given(st.text(max_size=80))
def test_anything_else_ends_in_a_sentence(text: str) -> None:
    said = "fine."
    hint: str | None = "none needed"
    try:
        parse(text)
    except KvplanError as error:
        said, hint = error.message, error.hint
    assert said.endswith(".")
    assert hint


@given(st.sampled_from(NAMES), st.text(alphabet="0123456789.,%kMGiBUSDa- ", max_size=20))
def test_a_value_is_of_the_kind_of_its_name_or_refused(name: str, text: str) -> None:
    try:
        read = parse(f"{name} == {text}")
    except KvplanError:
        return
    if read.limit is None:
        assert figures.kind_of(read.other or "") == read.kind
    else:
        sorts = (int, float, str, bool)
        assert isinstance(read.limit.value, sorts)
        assert isinstance(read.limit.value, str) == (
            read.kind == "text" or (read.kind == "any" and isinstance(read.limit.value, str))
        )


@given(st.integers(1, 2**40), st.integers(1, 2**40))
def test_more_expected_is_never_easier(low: int, high: int) -> None:
    low, high = sorted((low, high))
    first, second = (kinds.read(str(each), "tokens").value for each in (low, high))
    assert first <= second  # type: ignore[operator] # both are counts
