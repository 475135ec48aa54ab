"""Wrappers by identity: equal for one object, and for no other that looks the same."""

from __future__ import annotations

from kvplan.models.identity import ById


def test_two_wrappers_of_one_object_are_equal() -> None:
    inventory = ([1], [2])
    assert ById(inventory) == ById(inventory)
    assert hash(ById(inventory)) == hash(ById(inventory))
    assert {ById(inventory): "found"}[ById(inventory)] == "found"


def test_equal_objects_are_told_apart() -> None:
    one, other = [1], [1]
    assert one == other
    assert ById(one) != ById(other)
    assert ById(one) != one
    assert len({ById(one), ById(other)}) == 2


def test_the_object_is_kept() -> None:
    inventory = [1]
    assert ById(inventory).value is inventory
