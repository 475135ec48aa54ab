"""A JSON object from bytes that nobody vouches for."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured import measured

from kvplan.errors import InputError
from kvplan.sources.json_reader import MAX_DEPTH, MAX_INTEGER, MAX_VALUES, parse_json_object

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('ab[]{}"\\,'), inner),
    max_leaves=20,
)


def parse(text: str | bytes, **options: Any) -> dict[str, Any]:
    data = text.encode() if isinstance(text, str) else text
    return parse_json_object(data, "config.json", **options)


def refusal(data: bytes) -> InputError | None:
    """The one kind of error that reading may raise."""
    try:
        parse(data)
    except InputError as error:
        return error
    return None


def nested(levels: int) -> str:
    """A root object with ``levels`` - 1 more levels, lists and objects in turn."""
    opening = "".join("[" if level % 2 else '{"a":' for level in range(levels))
    closing = "".join("]" if level % 2 else "}" for level in reversed(range(levels)))
    return f"{opening}1{closing}"


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), trees, max_size=5))
def test_reads_what_json_writes(value: dict[str, Any]) -> None:
    assert parse(json.dumps(value)) == value
    assert parse(json.dumps(value, ensure_ascii=False, indent=1)) == value


@given(st.binary() | st.text('{}[]",:0123456789eE+-.nulNaIfity \\u\n').map(str.encode))
def test_anything_else_is_one_error(data: bytes) -> None:
    error = refusal(data)
    if error is not None:
        assert "\n" not in error.message
        assert error.message.endswith(".")
        assert error.location is not None


@given(st.binary(max_size=30), st.integers(0, 60))
def test_a_damaged_file_is_one_error(patch: bytes, place: int) -> None:
    data = b'{"a": [1, 2.5, "x\\u00e9", {"b": null, "c": true}], "d": "\xc3\xa9"}'
    refusal(data[:place] + patch + data[place + len(patch) :])


@pytest.mark.parametrize(
    ("text", "said", "location"),
    [
        ("", "not JSON", "config.json:1:1"),
        ("{", "not JSON", "config.json:1:2"),
        ('{"a" 1}', "not JSON", "config.json:1:6"),
        ('{\n "a": tru\n}', "not JSON", "config.json:2:7"),
        ("<html>", "not JSON", "config.json:1:1"),
        ("[1]", "a list", "config.json"),
        ('"x"', "a string", "config.json"),
        ("null", "null", "config.json"),
        ("3", "a single value", "config.json"),
        (b'{"a": "\xff"}', "0xff", "config.json"),
        (b"\x80\x03}q\x00", "not UTF-8", "config.json"),
        ('{"a": 1, "a": 1}', "'a' appears twice", "config.json"),
        ('{"x": {"b": 1, "c": 2, "b": 3}}', "'b' appears twice", "config.json"),
        ('{"a": NaN}', "'a' is not a finite", "config.json"),
        ('{"hidden_size": Infinity}', "'hidden_size' is not a finite", "config.json"),
        ('{"a": [[{"b": -Infinity}]]}', "'b' is not a finite", "config.json"),
        ('{"time_step_limit": [0.0, NaN]}', "not a finite", "config.json"),
        ('{"a": 1e999}', "1e999", "config.json"),
        ('{"a": 9223372036854775809}', "64 bits", "config.json"),
        ('{"a": -9223372036854775809}', "64 bits", "config.json"),
        ('{"a": 1' + "0" * 5000 + "}", "64 bits", "config.json"),
        (r'{"a": "\ud800"}', "not valid Unicode", "config.json"),
        (r'{"\udc00": 1}', "not valid Unicode", "config.json"),
    ],
)
def test_refused(text: str | bytes, said: str, location: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text)
    assert said in caught.value.message
    assert caught.value.location == location
    assert len(str(caught.value)) < 200


def test_accepted() -> None:
    """Values at the limits, and the one infinite number that real configurations have."""
    assert parse(f'{{"a": {MAX_INTEGER}, "b": {-MAX_INTEGER}}}') == {
        "a": MAX_INTEGER,
        "b": -MAX_INTEGER,
    }
    assert parse('{"time_step_limit": [0.0, Infinity]}') == {"time_step_limit": [0.0, math.inf]}
    assert parse('{"a": "NaN, Infinity"}') == {"a": "NaN, Infinity"}
    assert parse(r'{"a": "\ud83d\ude00"}') == {"a": "😀"}
    assert parse(json.dumps({"a": "[" * 1000})) == {"a": "[" * 1000}
    assert parse(json.dumps({"a": '"[\\' * 1000})) == {"a": '"[\\' * 1000}


@pytest.mark.parametrize("levels", [1, 2, MAX_DEPTH - 1, MAX_DEPTH])
def test_depth_accepted(levels: int) -> None:
    assert parse(nested(levels))
    if levels > 2:
        assert parse('{"b":[[],[]],"a":' + nested(levels - 1) + "}")


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 2 * MAX_DEPTH, 1000, 100_000])
def test_depth_refused(levels: int) -> None:
    for text in (
        nested(levels),
        nested(levels).partition("1")[0],
        '{"b":[[],[]],"a":' + nested(levels),
    ):
        with pytest.raises(InputError, match=f"more than {MAX_DEPTH} levels"):
            parse(text)


def test_wide_is_not_deep() -> None:
    assert len(parse('{"a":[' + "[[]]," * 10_000 + "1]}")["a"]) == 10_001


def test_limits() -> None:
    with pytest.raises(InputError, match="10 bytes; kvplan reads at most 9"):
        parse('{"a": 100}', limit=9)
    assert parse('{"a": 100}', limit=10)
    with pytest.raises(InputError, match="400,000 values"):
        parse('{"a":[' + "1," * MAX_VALUES + "1]}")


@pytest.mark.parametrize(
    "make",
    [
        "b'{\"a\":[' + b'{\"a\":1},' * 199_990 + b'1]}'",
        "b'{' + b','.join(b'\"%d\":1.5' % i for i in range(399_990)) + b'}'",
        "b'{\"a\":' * 390_000",
        "b'{\"a\":\"' + b'[' * 8_000_000",
        "b'{\"a\":' + b'\"[\",' * 1_400_000",
        'b\'{"a":\' + b\'"a""\' * 1_900_000',
        "('{\"a\":\"😀' + 'x' * 8_000_000 + '\"}').encode()",
        "b'{\"a\":1' + b'0' * 8_000_000 + b'}'",
        "b'{\"a\":\"' + rb'\\ud800' * 1_300_000 + b'\"}'",
        "b'{\"a\":' + b' ' * 8_000_000",
        "b' ' * 50_000_000",
    ],
)
def test_hostile_files_take_little(make: str) -> None:
    """Any 8 MiB are read or refused in about a second and under 200 MB."""
    result = measured(
        setup=f"from kvplan.sources.json_reader import parse_json_object\ndata = {make}",
        run="parse_json_object(data, 'config.json')",
    )
    assert result.seconds < 2
    assert result.megabytes < 200


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        nested(MAX_DEPTH + 1),
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": 1e999}',
        f'{{"a": {2**70}}}',
        '{"a": [' + "1," * MAX_VALUES + "1]}",
        '{"a": "\\ud800"}',
        "{",
    ],
    ids=range(9),
)
def test_every_refusal_says_what_to_do(text: str) -> None:
    error = refusal(text.encode())
    assert error is not None
    assert error.hint
