"""A key that compares by identity, so that results about large immutable objects can be cached."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class ById(Generic[T]):
    """Wraps an object; two wrappers are equal if they wrap the same one.

    Hashing a model's whole inventory costs more than computing with it. A cache that holds the
    wrapper holds the object too, so its identity can't be taken over by another.
    """

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value: T = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ById) and other.value is self.value
