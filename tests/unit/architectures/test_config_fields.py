"""Fields: what a stranger may write into a configuration, and what is said about it."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.architectures.fields import Fields, describe
from kvplan.errors import InputError


def fields(config: dict[str, Any]) -> Fields:
    return Fields(config, where="config.json", source="the class")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("8", "the text '8'"),
        (True, "true"),
        (8.0, "8.0"),
        (float("nan"), "nan"),
        (-8, "-8"),
        (0, "0"),
        (2**24 + 1, "16777217"),
        (10**4000, "a number of absurd size"),
        ([8], "a list"),
        ({"a": 1}, "an object"),
    ],
    ids=str,
)
def test_anything_but_a_sane_whole_number_is_named(value: object, said: str) -> None:
    with pytest.raises(InputError) as caught:
        fields({"num_attention_heads": value}).integer("num_attention_heads")
    assert caught.value.message == (
        f"`num_attention_heads` is {said}, but has to be a whole number from 1 to 16,777,216."
    )
    assert caught.value.location == "config.json"
    assert caught.value.hint


def test_a_missing_field_without_default_is_named() -> None:
    with pytest.raises(InputError, match="`hidden_size` is missing"):
        fields({}).integer("hidden_size")


def test_null_is_missing() -> None:
    with pytest.raises(InputError, match="`hidden_size` is missing"):
        fields({"hidden_size": None}).integer("hidden_size")


def test_a_default_is_recorded_with_its_source_once() -> None:
    read = fields({})
    assert read.integer("num_key_value_heads", default=8) == 8
    assert read.flag("attention_bias", default=False) is False
    assert read.integer("num_key_value_heads", default=8) == 8
    assert [(d.field, d.value, d.source) for d in read.filled] == [
        ("num_key_value_heads", "8", "the class"),
        ("attention_bias", "false", "the class"),
    ]


def test_a_default_beyond_the_most_is_none() -> None:
    """A class that routes to eight experts says nothing about a file with four."""
    with pytest.raises(InputError, match="`num_experts_per_tok` is missing"):
        fields({}).integer("num_experts_per_tok", default=8, most=4)


def test_a_stated_value_is_no_default() -> None:
    read = fields({"num_key_value_heads": 8})
    assert read.integer("num_key_value_heads", default=4) == 8
    assert read.filled == ()


def test_null_means_none_and_absent_means_the_class_default() -> None:
    """The difference that decides whether Mistral has a window."""
    assert fields({"sliding_window": None}).optional_integer("sliding_window", default=4096) is None
    assert fields({}).optional_integer("sliding_window", default=4096) == 4096


def test_names_are_tried_in_order() -> None:
    read = fields({"n_embed": 64, "hidden_size": None})
    assert read.integer("hidden_size", "n_embed") == 64


def test_a_nested_field_is_named_with_its_path() -> None:
    text = fields({"text_config": {"num_hidden_layers": "34"}}).section("text_config")
    assert text is not None
    with pytest.raises(InputError, match=r"`text_config\.num_hidden_layers` is the text '34'"):
        text.integer("num_hidden_layers")


def test_a_part_shares_the_record_of_defaults() -> None:
    read = fields({"text_config": {}})
    text = read.section("text_config", source="another class")
    assert text is not None
    text.integer("head_dim", default=256)
    assert [(d.field, d.source) for d in read.filled] == [("text_config.head_dim", "another class")]


def test_a_part_that_is_no_object_is_named() -> None:
    with pytest.raises(InputError, match="`text_config` is a list, but has to be an object"):
        fields({"text_config": []}).section("text_config")


@pytest.mark.parametrize("value", [1, "true", [], {}])
def test_flags_are_true_or_false(value: object) -> None:
    with pytest.raises(InputError, match="has to be true or false"):
        fields({"bias": value}).flag("bias", default=False)


@pytest.mark.parametrize("value", ["8.0", True, 0, -1, float("nan"), float("inf"), []])
def test_numbers_are_finite_and_positive(value: object) -> None:
    with pytest.raises(InputError, match="a number above zero"):
        fields({"factor": value}).number("factor")


@pytest.mark.parametrize("value", ["abc", [1], ["a", None], {"a": "b"}])
def test_lists_of_texts_hold_texts(value: object) -> None:
    with pytest.raises(InputError, match="`ignore"):
        fields({"ignore": value}).texts("ignore")


def test_a_value_is_described_in_a_few_words() -> None:
    assert len(describe("x" * 10_000)) < 60
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert describe(deep) == "a list"
