"""The strict YAML reader: what it accepts, what it refuses, and that hostile files end quickly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kvplan.errors import InputError
from kvplan.sources.yaml_reader import parse_yaml, read_yaml


def read(text: str) -> dict[str, Any]:
    return parse_yaml(text, "a.yaml").data


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("True", "True"),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-3", -3),
        ("+4", 4),
        ("1152921504606846976", 2**60),
        ("012", "012"),
        ("0x1F", "0x1F"),
        ("0o17", "0o17"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-01-02", "2026-01-02"),
        ("1e3", 1000.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("-2.5E-1", -0.25),
        ("9.0", 9.0),
        ('"9.0"', "9.0"),
        ("'true'", "true"),
        ("|\n  12", "12"),
        ("[1, a, [b]]", [1, "a", ["b"]]),
        ("{b: 1}", {"b": 1}),
        ("infinity", "infinity"),
        ("-x", "-x"),
        ("<<", "<<"),
        ("é", "é"),
    ],
)
def test_values_are_typed_as_they_look(text: str, value: Any) -> None:
    found = read(f"a: {text}")["a"]
    assert found == value
    assert type(found) is type(value)


def test_keys_are_text_whatever_they_look_like() -> None:
    assert read("8: a\ntrue: b\nnull: c\n") == {"8": "a", "true": "b", "null": "c"}


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert read("\ufeffa: 1") == {"a": 1}


def test_every_key_and_item_has_a_place() -> None:
    document = parse_yaml("a: 1\nb:\n  - c: 2\n    d: [x, y]\n", "a.yaml")
    assert document.places == {
        (): (1, 1),
        ("a",): (1, 1),
        ("b",): (2, 1),
        ("b", 0): (3, 5),
        ("b", 0, "c"): (3, 5),
        ("b", 0, "d"): (4, 5),
        ("b", 0, "d", 0): (4, 9),
        ("b", 0, "d", 1): (4, 12),
    }
    assert document.location(("b", 0, "d", 1)) == "a.yaml:4:12"
    assert document.location(("b", 0, "e", "f")) == "a.yaml:3:5"
    assert document.location(("z",)) == "a.yaml:1:1"


REFUSED = [
    ("a: 1\nb: 2\na: 3\n", "3:1", "already on line 1"),
    ("a: {b: 1, b: 2}", "1:11", "already on line 1"),
    ("a: &x 1", "1:4", "Anchors"),
    ("a: &x 1\nb: *x", "1:4", "Anchors"),
    ("a: *x", "1:4", "Anchors"),
    ("*x : 1", "1:1", "Anchors"),
    ("a: !!python/object:os.system ls", "1:4", "tag"),
    ("a: !!str 1", "1:4", "tag"),
    ("a: ! 1", "1:4", "tag"),
    ("!!map {a: 1}", "1:1", "tag"),
    ("a: .nan", "1:4", "not a number"),
    ("a: -.INF", "1:4", "not a number"),
    ("a: 1e999", "1:4", "too large"),
    ("a: " + "9" * 31, "1:4", "too long"),
    ("a: 1\n---\nb: 1", "2:1", "second document"),
    ("", "", "empty"),
    ("# nothing\n", "", "empty"),
    ("- a", "1:1", "does not hold keys"),
    ("a", "1:1", "does not hold keys"),
    ("---\n", "2:1", "does not hold keys"),
    ("? [a]\n: 1", "1:3", "A key is a word"),
    (": 1", "1:1", "key"),
    ("a:\n\tb: 1", "2:1", "not valid YAML"),
    ("a: b: c", "1:5", "not valid YAML"),
    ("a: [1", "2:1", "not valid YAML"),
    ('a: "x', "1:6", "not valid YAML"),
    ("a: 1\n b: 2", "2:3", "not valid YAML"),
    ("a: \x00", "1:4", "may not stand"),
    ("a: 1\nb: \x07", "2:4", "may not stand"),
    ("a: \ud800", "1:4", "half a character"),
    ("\n".join(" " * depth + "a:" for depth in range(60)), "52:52", "deeper than 50"),
    ("a: [" + "1," * 30_000 + "]", "1:", "more than 20,000 values"),
    ("a: " + "x" * 2**20, "", "larger than 1 MiB"),
    ("a: " + "é" * 600_000, "", "larger than 1 MiB"),
]


@pytest.mark.parametrize(("text", "place", "message"), REFUSED)
def test_refused_with_its_place(text: str, place: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert message in caught.value.message
    assert caught.value.hint
    assert str(caught.value.location).startswith(f"a.yaml:{place}" if place else "a.yaml")


def test_tabs_get_a_hint_about_tabs() -> None:
    with pytest.raises(InputError) as caught:
        read("a:\n\tb: 1")
    assert caught.value.hint is not None
    assert "not tabs" in caught.value.hint


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes("a: 1\nb: né".encode("latin-1"))
    with pytest.raises(InputError, match="UTF-8") as caught:
        read_yaml(file)
    assert caught.value.location == f"{file}:2:5"


def test_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.yaml"):
        with pytest.raises(InputError, match="can't be read") as caught:
            read_yaml(path)
        assert caught.value.location == str(path)


def test_a_file_is_read_no_further_than_the_limit() -> None:
    with pytest.raises(InputError, match="larger than 1 MiB"):
        read_yaml(Path("/dev/zero"))


@given(st.text(max_size=200))
@example("a: &a [*a]")
@example("%YAML 9.9\n---\na: 1")
@example("%TAG ! x\n---\na: 1")
@example("{a: 1, [b]: 2}")
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        document = parse_yaml(text, "a.yaml")
    except InputError:
        return
    assert () in document.places


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    # As they are: control characters have no place in YAML, and line breaks are folded.
    | st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=20)
)
KEYS = st.text(st.characters(codec="ascii", categories=("Ll", "Lu")), min_size=1, max_size=8)


@given(
    st.dictionaries(
        KEYS,
        st.recursive(
            SCALARS,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
            max_leaves=10,
        ),
        min_size=1,
        max_size=5,
    )
)
def test_json_is_yaml(data: dict[str, Any]) -> None:
    assert read(json.dumps(data, ensure_ascii=False)) == data


HOSTILE = """
import json, sys, time
from pathlib import Path
from kvplan.errors import InputError
from kvplan.sources.yaml_reader import parse_yaml
texts = {
    "brackets": "a: " + "[" * 500_000,
    "braces": "{a: " * 200_000,
    "billion laughs": "a: &a [x]\\n" + "".join(
        f"k{i}: &k{i} [{','.join(['*a'] * 9)}]\\n" for i in range(5000)
    ),
    "many values": "a: [" + "[]," * 340_000 + "]",
    "many keys": "".join(f"k{i}: 1\\n" for i in range(90_000)),
    "dashes": "- " * 500_000,
    "questions": "? " * 500_000,
    "colons": ": " * 500_000,
    "quote": 'a: "' + "x" * 1_000_000,
    "spaces": "{" + " " * 1_000_000,
    "digits": "a: " + "9" * 1_000_000,
    "comments": "#\\n" * 500_000,
    "ampersands": "a: " + "&" * 1_000_000,
}
slowest = {}
for name, text in texts.items():
    start = time.process_time()
    try:
        parse_yaml(text, name)
        print("accepted", name, file=sys.stderr)
    except InputError:
        pass
    slowest[name] = time.process_time() - start
# Not ru_maxrss: that of the process which started this one is counted in it.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
peak = int(status["VmHWM"].split()[0])
print(json.dumps({"slowest": slowest, "peak_kib": peak}))
"""


def test_hostile_files_end_within_a_second_and_200_mb() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HOSTILE], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stderr == ""
    measured = json.loads(done.stdout)
    assert max(measured["slowest"].values()) < 1.0, measured["slowest"]
    assert measured["peak_kib"] < 200_000
