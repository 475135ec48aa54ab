"""GgufKeys: checked reading of one architecture's metadata."""

from __future__ import annotations

from typing import NamedTuple

from kvplan.architectures.fields import MAX_DIMENSION, Fields


class GgufKeys(NamedTuple):
    """The metadata of one architecture: keys without its name in front."""

    fields: Fields
    architecture: str

    def whole(self, key: str, *, default: int | None = None, most: int = MAX_DIMENSION) -> int:
        """A number above zero."""
        return self.fields.integer(f"{self.architecture}.{key}", default=default, most=most)

    def optional(self, key: str, *, most: int = MAX_DIMENSION) -> int | None:
        """A number above zero, or None where it is absent or zero."""
        name = f"{self.architecture}.{key}"
        return self.fields.optional_integer(name, least=0, most=most) or None

    def per_layer(self, key: str, layers: int, *, default: int | None = None) -> tuple[int, ...]:
        """One number a layer, from an array or from a number for all."""
        name = f"{self.architecture}.{key}"
        if not isinstance(self.fields.raw(name), tuple | list):
            return (
                self.fields.integer(name, default=default, least=0, most=MAX_DIMENSION),
            ) * layers
        values = self.fields.integers(name, least=0, most=MAX_DIMENSION) or ()
        if len(values) < layers:
            raise self.fields.conflict(f"`{name}` lists {len(values)} layers of {layers}.")
        return values[:layers]
