"""Sentences: what follows a number has to be there."""

from __future__ import annotations

import pytest

from kvplan.sources.logs.facts import Value, count, gib, human, mib, ratio, text, together
from kvplan.sources.logs.lines import Line
from kvplan.sources.logs.reader import ENGINES
from kvplan.sources.logs.wording import wording

FACTS = {"a_gib": gib(), "n": count(), "x": ratio(), "w": text(r"\w+"), "m": mib(), "h": human()}


def read(template: str, line: str, *, whole: bool = True) -> dict[str, Value] | None:
    sentence = wording(template, FACTS)
    match = sentence.find(Line(line, 1, whole))
    return None if match is None else sentence.read(match)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("took 6.51 GiB memory", {"a_gib": 6.51}),
        ("took -0.05 GiB", {"a_gib": -0.05}),
        ("took    6 GiB", {"a_gib": 6.0}),
        ("took 6.5", None),
        ("took 6.51", None),
        ("took 6.5.1 GiB", None),
        ("took 6,51 GiB", None),
        ("took 6.5x GiB", None),
        ("took 1234567.0 GiB", {}),
        ("took nan GiB", None),
        ("took \u0663 GiB", None),
    ],
)
def test_memory(line: str, expected: dict[str, Value] | None) -> None:
    assert read("took {a_gib} GiB", line) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("size: 1,234,567 tokens", {"n": 1234567}),
        ("size: 1234567 tokens", {"n": 1234567}),
        ("size: 12,34 tokens", None),
        ("size: 1,2345 tokens", None),
        ("size: 1,234, tokens", None),
        ("size: 1,234", None),
        ("size: -5 tokens", None),
        ("size: 9999999999999999 tokens", {}),
        ("size: 99999999999999999999 tokens", None),
    ],
)
def test_counts(line: str, expected: dict[str, Value] | None) -> None:
    assert read("size: {n} tokens", line) == expected


def test_a_number_at_the_end_needs_the_end_of_the_line() -> None:
    assert read("is {n}", "is 4096") == {"n": 4096}
    assert read("is {n}", "is 4096 ") == {"n": 4096}
    assert read("is {n}", "is 4096", whole=False) is None
    assert read("is {n}", "is 4096(Worker pid=1)") is None


def test_a_blank_alone_ends_a_word() -> None:
    assert read("--ctx {n} ", "--ctx 8192 --x") == {"n": 8192}
    assert read("--ctx {n} ", "--ctx 81") is None


def test_units() -> None:
    assert read("= {m} MiB", "= 1024.50 MiB") == {"m": 1.000488}
    assert read('size="{h}"', 'size="680.0 MiB"') == {"h": 0.664062}
    assert read('size="{h}"', 'size="11.5 GiB"') == {"h": 11.5}
    assert read('size="{h}"', 'size="0 B"') == {"h": 0.0}


@pytest.mark.parametrize(
    ("several", "values", "expected"),
    [
        ("agree", [2.0, 2.0], 2.0),
        ("agree", [2.0, 2.5], None),
        ("agree", ["a", "a"], "a"),
        ("least", [3, 2, 5], 2),
        ("last", [3, 2, 5], 5),
        ("sum", [0.1, 0.2], 0.3),
    ],
)
def test_several_sightings(several: str, values: list[Value], expected: Value | None) -> None:
    assert together(several, values) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_every_fact_of_an_engine_is_used(engine: object) -> None:
    known = set(engine.facts)  # type: ignore[attr-defined]
    said = {name for each in engine.wordings for name in each.facts}  # type: ignore[attr-defined]
    said |= {
        name
        for each in engine.wordings  # type: ignore[attr-defined]
        for name in each.arguments.values()
    }
    assert said <= known
    ordered = {name for names in engine.order.values() for name in names}  # type: ignore[attr-defined]
    assert ordered <= known
    if engine.name != "ollama":  # type: ignore[attr-defined]  # its llama.cpp says the rest
        assert known == said
