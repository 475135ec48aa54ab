"""Validation of YAML against a model: every problem at its place, in one error."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from kvplan.errors import InputError
from kvplan.sources.yaml_reader import parse_yaml, validate


class Full(BaseModel):
    """One member of a union."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["full"]
    kv_heads: Annotated[int, Field(gt=0)]


class Window(BaseModel):
    """The other member."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["window"]
    window: int


class Spec(BaseModel):
    """What the files of these tests hold."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    share: float
    length: int | Literal["auto"]
    caches: tuple[Annotated[Full | Window, Field(discriminator="kind")], ...] = ()
    tables: dict[str, Full] = {}
    exact: bool = True
    pair: Annotated[tuple[int, ...], Field(min_length=2, max_length=3)] = (1, 2)
    word: Annotated[str, Field(min_length=1, pattern="^[a-z]*$")] = "x"

    @model_validator(mode="after")
    def _short(self) -> Spec:
        if self.id == "wrong":
            raise ValueError("this id is taken")
        return self


GOOD = "id: x\nshare: 1\nlength: auto\n"


def problems(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        validate(parse_yaml(text, "a.yaml"), Spec)
    lines = str(caught.value).split("\n  ")
    return lines[1:] if len(lines) > 1 else lines


def test_builds_the_model() -> None:
    text = GOOD + "caches:\n- {kind: window, window: 4096}\n- {kind: full, kv_heads: 8}\n"
    spec = validate(parse_yaml(text, "a.yaml"), Spec)
    assert spec.share == 1.0
    assert spec.caches == (Window(kind="window", window=4096), Full(kind="full", kv_heads=8))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("share: 1\nlength: 1\n", "a.yaml:1:1: `id` is missing."),
        (GOOD + "cachse: []\n", "a.yaml:4:1: `cachse` is not a known key. Did you mean caches?"),
        (GOOD + "zzzzzz: 1\n", "a.yaml:4:1: `zzzzzz` is not a known key."),
        (GOOD + "exact: yes\n", 'a.yaml:4:1: `exact` should be a valid boolean, not "yes".'),
        (
            'id: x\nshare: 1\nlength: "8"\n',
            "a.yaml:3:1: `length` should be a valid integer or 'auto', not \"8\".",
        ),
        ("id: x\nshare: a\nlength: 8\n", 'a.yaml:2:1: `share` should be a valid number, not "a".'),
        ("id: 9.0\nshare: 1\nlength: 8\n", "a.yaml:1:1: `id` should be a valid string, not 9.0."),
        (
            GOOD + "caches:\n- kind: full\n  kv_heads: -8\n",
            "a.yaml:6:3: `caches[0].kv_heads` should be greater than 0, not -8.",
        ),
        (
            GOOD + "caches:\n- kind: full\n",
            "a.yaml:5:3: `caches[0].kv_heads` is missing.",
        ),
        (
            GOOD + "caches:\n- {kind: full, kv_heads: 8, kv_haeds: 8}\n",
            "a.yaml:5:29: `kv_haeds` is not a known key. Did you mean kv_heads?",
        ),
        (
            GOOD + "tables:\n  a: {kind: full, kv_heads: 8, kv: 8}\n",
            "a.yaml:5:32: `kv` is not a known key.",
        ),
        (
            GOOD + "caches:\n- kind: slots\n",
            "a.yaml:5:3: `caches[0]`: 'kind' is 'full', 'window', not 'slots'.",
        ),
        (
            GOOD + "pair: [1]\n",
            "a.yaml:4:1: `pair` should be something with at least 2 items, not [1].",
        ),
        (
            GOOD + 'word: ""\n',
            'a.yaml:4:1: `word` should be something with at least 1 character, not "".',
        ),
        (
            GOOD + "word: 'X'\n",
            'a.yaml:4:1: `word` should be text of the form ^[a-z]*$, not "X".',
        ),
        (GOOD + "caches:\n- window: 8\n", "a.yaml:5:3: `caches[0]` lacks the key 'kind'."),
        ("id: wrong\nshare: 1\nlength: 8\n", "a.yaml:1:1: The file: this id is taken"),
    ],
)
def test_one_problem_at_its_place(text: str, problem: str) -> None:
    (found,) = problems(text)
    assert found.startswith(problem)


def test_all_problems_in_the_order_of_the_file() -> None:
    found = problems("share: a\nidd: x\ncaches:\n- kind: full\n")
    assert [line.split(" ")[0] for line in found] == [
        "a.yaml:1:1:",
        "a.yaml:1:1:",
        "a.yaml:1:1:",
        "a.yaml:2:1:",
        "a.yaml:4:3:",
    ]


def test_a_long_list_of_problems_is_cut() -> None:
    text = GOOD + "".join(f"wrong{index}: 1\n" for index in range(15_000))
    found = problems(text)
    assert len(found) == 21
    assert found[-1] == "and 14,980 more"
