"""The error tree is what its drawing says, and an error says where and what to do."""

from __future__ import annotations

import re

import pytest

from kvplan import errors
from kvplan.errors import KvplanError, nearest, shown

_ROW = re.compile(r"^(?P<tree>[│├└─ ]*)(?P<name>\w+Error) +(?P<slug>\S+) +(?P<exit>\d+|exit)")


def _drawn() -> list[tuple[str, str, str, str]]:
    """(parent, name, slug, exit code) of each row of the drawing in the module's docstring."""
    rows = []
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = _ROW.match(line)
        if match is None:
            continue
        depth = len(match["tree"]) // 4
        path = [*path[:depth], match["name"]]
        parent = path[-2] if depth else "Exception"
        rows.append((parent, match["name"], match["slug"], match["exit"]))
    return rows


def _real(error: type[KvplanError]) -> list[tuple[str, str, str, str]]:
    parent = error.__base__
    assert parent is not None
    row = (parent.__name__, error.__name__, error.slug, str(error.exit_code))
    return [row, *(row for child in error.__subclasses__() for row in _real(child))]


def _own(error: type[KvplanError]) -> list[type[KvplanError]]:
    return [error, *(below for child in error.__subclasses__() for below in _own(child))]


def test_the_drawn_tree_is_the_real_one() -> None:
    header, *drawn = _drawn()
    assert header == ("Exception", "KvplanError", "slug", "exit")
    assert drawn == _real(KvplanError)[1:]
    assert len(drawn) > 10


def test_every_class_has_a_slug_of_its_own() -> None:
    slugs = [error.__dict__["slug"] for error in _own(KvplanError)]
    assert len(set(slugs)) == len(slugs)


def test_every_class_says_what_it_means() -> None:
    assert all(error.__doc__ for error in _own(KvplanError))


def test_exit_codes_are_those_a_shell_can_tell_apart() -> None:
    assert {error.exit_code for error in _own(KvplanError)} == {2, 3, 4, 70}


def test_the_base_is_called_error() -> None:
    assert KvplanError.slug == "error"


def test_an_error_carries_its_hint_and_place() -> None:
    error = KvplanError("Twelve is too many.", hint="Take eleven.", location="plan.yaml:3")
    assert str(error) == "plan.yaml:3: Twelve is too many."
    assert (error.message, error.hint, error.location) == (
        "Twelve is too many.",
        "Take eleven.",
        "plan.yaml:3",
    )
    assert error.args == ("Twelve is too many.",)


def test_an_error_without_a_place_is_its_sentence() -> None:
    error = KvplanError("Twelve is too many.")
    assert str(error) == "Twelve is too many."
    assert error.hint is None
    assert error.location is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("fast", "'fast'"),
        (None, "None"),
        ("x" * 58, f"'{'x' * 58}'"),
        ("x" * 59, f"'{'x' * 58}…"),
        ("x" * 10**6, f"'{'x' * 58}…"),
        ("\x1b[2J", r"'\x1b[2J'"),
        (2**100, "1267650600228229401496703205376"),
        (2**239, f"{str(2**239)[:59]}…"),
        (2**240, "a number of 241 bits"),
        (-(2**240), "a number of 241 bits"),
        ([10**9999], "a list"),
        ({"a": 10**9999}, "a dict"),
    ],
)
def test_a_value_is_quoted_in_short(value: object, text: str) -> None:
    assert shown(value) == text
    assert shown(1 << 33_216) == "a number of 33,217 bits"


def test_a_value_is_quoted_as_short_as_asked() -> None:
    assert shown("abcdefgh", 10) == "'abcdefgh'"
    assert shown("abcdefghi", 10) == "'abcdefgh…"
    assert shown(2**40, 10) == "a number of 41 bits"
    assert shown(2**39, 10) == "549755813…"


def test_a_value_nested_without_end_is_named_by_its_kind() -> None:
    nested: list[object] = []
    for _ in range(10**5):
        nested = [nested]
    assert shown(nested) == "a list"


GPUS = ("H100-SXM-80GB", "H100-PCIe-80GB", "H200-SXM-141GB", "L4-24GB")


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("H100-SMX-80GB", "Did you mean H100-SXM-80GB, H100-PCIe-80GB, H200-SXM-141GB?"),
        ("l4-24gb", "Did you mean L4-24GB?"),
        ("zzz", None),
        ("", None),
    ],
)
def test_nearest_names(name: str, answer: str | None) -> None:
    assert nearest(name, GPUS) == answer


def test_nearest_offers_three_at_most() -> None:
    many = [f"H100-SXM-{size}GB" for size in range(10, 99)]
    offered = nearest("H100-SXM-80GB", many)
    assert offered is not None
    assert offered.count("H100") == 3


def test_nearest_gives_no_more_than_asked_and_keeps_the_known_spelling() -> None:
    assert nearest("h100-sxm-80gb", GPUS, count=1) == "Did you mean H100-SXM-80GB?"
    assert nearest("anything", ()) is None


def test_nearest_looks_at_the_start_of_a_very_long_name_only() -> None:
    assert nearest("x" * 10**6, GPUS) is None
    known = ("a" * 150,)
    assert nearest("a" * 150 + "b" * 10**6, known) == f"Did you mean {known[0]}?"


def test_a_name_is_offered_once() -> None:
    assert nearest("l4-24g", ["l4-24gb", "L4-24GB"]) == "Did you mean L4-24GB?"


def test_nearest_offers_names_that_start_with_what_was_typed() -> None:
    known = ("block_size", "gpu_memory_utilization", "max_num_seqs")
    assert nearest("gpu_mem", known) == "Did you mean gpu_memory_utilization?"
    assert nearest("gp", known) is None


def test_nearest_can_ask_for_more_likeness() -> None:
    assert nearest("mamba", ("llama",)) == "Did you mean llama?"
    assert nearest("mamba", ("llama",), cutoff=0.75) is None
