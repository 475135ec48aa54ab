"""Settings are read from what engines print of them, and nothing is evaluated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.sources.logs.arguments import read_arguments
from kvplan.sources.logs.facts import Value

WANTED = {"model": "model", "tp": "tp", "util": "util", "eager": "eager"}


def read(text: str, *, whole: bool = True) -> dict[str, Value]:
    return read_arguments(text, WANTED, whole=whole)


ALL = {"model": "org/name", "tp": 2, "util": 0.9, "eager": True}


@pytest.mark.parametrize(
    "text",
    [
        "{'model': 'org/name', 'tp': 2, 'util': 0.9, 'eager': True}",
        "Namespace(model='org/name', tp=2, util=0.9, eager=True)",
        "ServerArgs(other=None, model='org/name', tp=2, util=0.9, eager=True, last='x')",
        "model='org/name', tp=2, util=0.9, eager=True",
        "model='org/name', tp=2, other=[1, 2, {'tp': 9}], util=0.9, eager=True, ",
        "{'x': A(tp=9, model='no'), 'model': 'org/name', 'tp': 2, 'util': 0.9, 'eager': True} tp=7",
        "model=org/name, tp=2, f=<function f at 0x7f>, util=0.9, eager=True",
        "model='org/name', tp=2, text='a, tp=5, (', util=0.9, eager=True",
        'model="org/name", tp=2, text="it\'s", util=0.9, eager=True',
    ],
)
def test_plain_values_are_read_in_every_form(text: str) -> None:
    assert read(text) == ALL


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model=None, tp=2", {"tp": 2}),
        ("model='', tp=2", {"tp": 2}),
        ("tp=-1, model=x", {"tp": -1, "model": "x"}),
        ("tp=[1], model=f('x')", {}),
        ("tp=__import__('os').system('x')", {}),
        ("model='a\\'b'", {}),
        ("model='" + "x" * 400 + "'", {}),
        ("tp=" + "9" * 40, {"tp": "9" * 40}),
        ("{'model': 'x', 'tp': 2", {"model": "x"}),
        ("model='x, tp=2", {}),
        ("", {}),
        (")", {}),
    ],
)
def test_what_is_not_plain_or_not_whole_is_left_out(text: str, expected: dict[str, Value]) -> None:
    assert read(text) == expected


def test_the_last_setting_of_a_line_that_is_cut_is_left_out() -> None:
    assert read("model='x', tp=16", whole=False) == {"model": "x"}
    assert read("model='x', tp=16", whole=True) == {"model": "x", "tp": 16}


@given(where=st.integers(0, 70))
def test_a_cut_text_never_gives_another_value(where: int) -> None:
    text = "Namespace(a=[1, 2], model='org/name', tp=16, util=0.925, eager=True)"
    assert read(text[:where], whole=False).items() <= read(text).items()


@given(text=st.text(alphabet="{}()[],=:'\"\\ab1.-\n ", max_size=60))
def test_anything_is_read_without_an_error(text: str) -> None:
    for value in read("model=" + text).values():
        assert isinstance(value, int | float | str)
