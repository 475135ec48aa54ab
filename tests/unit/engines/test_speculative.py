"""speculative_config: keys, types, vLLM's shorthand."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.engines.vllm.options import read_options
from kvplan.engines.vllm.speculative import Speculative, read
from kvplan.errors import UnknownNameError, UsageError

NAME = "speculative_config"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {"method": "mtp", "num_speculative_tokens": 2},
            Speculative(method="mtp", num_speculative_tokens=2),
        ),
        (
            '{"method": "ngram", "num-speculative-tokens": 4, "prompt_lookup_max": 3}',
            Speculative(method="ngram", num_speculative_tokens=4, prompt_lookup_max=3),
        ),
        (
            {"model": "org/draft", "draft_tensor_parallel_size": 1, "method": None},
            Speculative(model="org/draft", draft_tensor_parallel_size=1),
        ),
        (
            {"method": "eagle", "revision": "main", "enforce_eager": True},
            Speculative(method="eagle", other=("enforce_eager", "revision")),
        ),
    ],
)
def test_what_is_given_is_read(value: Any, expected: Speculative) -> None:
    assert read(NAME, value) == expected


def test_as_a_mapping_it_is_what_was_given() -> None:
    given = {"method": "eagle3", "model": "a/b", "num_speculative_tokens": 3}
    assert read(NAME, given).as_mapping() == given
    assert read(NAME, read(NAME, given).as_mapping()) == read(NAME, given)


@pytest.mark.parametrize(
    "value",
    [
        *(None, [], "", "{", 3, {}, {1: 2}, {"method": 1}, {"num_speculative_tokens": 0}),
        *({"num_speculative_tokens": "two"}, {"prompt_lookup_max": True}, "[" * 5000),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_configuration_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match=NAME) as raised:
        read(NAME, value)
    assert len(raised.value.message) < 200


def test_an_unknown_key_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="no key 'num_spec_tokens'") as raised:
        read(NAME, {"num_spec_tokens": 1})
    assert raised.value.hint is not None
    assert "num_speculative_tokens" in raised.value.hint
    with pytest.raises(UnknownNameError) as raised:
        read(NAME, {"zzz": 1})
    assert raised.value.hint is not None
    assert raised.value.hint.startswith("It knows method, model, ")


def test_the_shorthand_is_the_same_thing() -> None:
    short = {"spec-method": "eagle3", "spec_model": "a/b", "--spec-tokens": 3}
    expected = Speculative(method="eagle3", model="a/b", num_speculative_tokens=3)
    assert read_options(short) == {NAME: expected}
    mixed = {"spec_tokens": 3, NAME: '{"method": "eagle3", "model": "a/b"}'}
    assert read_options(mixed) == {NAME: expected}


def test_the_shorthand_does_not_compete() -> None:
    with pytest.raises(UsageError, match="num_speculative_tokens is given twice"):
        read_options({"spec_tokens": 3, NAME: {"method": "mtp", "num_speculative_tokens": 1}})
