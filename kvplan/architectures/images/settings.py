"""What a processor's rule is read from: the configuration, and the processor's own file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kvplan.architectures.fields import MAX_DIMENSION, Fields

PROCESSOR = "preprocessor_config.json: "
_NESTED = "image_processor"  # where processor_config.json keeps it


class ImageSettings(NamedTuple):
    """Both files, and a record of the settings that neither states.

    Attributes:
        fields: The configuration.
        processor: ``preprocessor_config.json``, empty where it is not at hand.
        unstated: Settings that a class default stands in for, as ``name = value``.
    """

    fields: Fields
    processor: Fields
    unstated: list[str]

    @property
    def vision(self) -> Fields:
        """The part of the configuration that describes the tower."""
        return self.fields.section("vision_config") or self.fields

    @property
    def unknown(self) -> tuple[str, ...]:
        """The record so far."""
        return tuple(self.unstated)

    def chosen(self, name: str, default: int, *, least: int = 1, most: int = MAX_DIMENSION) -> int:
        """A whole number of the processor's file; the class default where it has none."""
        return self._number(self.processor, name, default, least, most)

    def stated(self, fields: Fields, name: str, default: int, *, most: int = MAX_DIMENSION) -> int:
        """A whole number of a configuration, whose class default needs no mention."""
        if isinstance(fields.raw(name), list):  # some classes keep height and width
            sides = fields.integers(name, least=1, most=most) or (default,)
            return sides[0]
        return fields.integer(name, least=1, most=most) if fields.has(name) else default

    def switch(self, name: str, *, default: bool) -> bool:
        """A yes or no of the processor's file; the class default where it has none."""
        if self.processor.has(name):
            return self.processor.flag(name, default=default)
        self.unstated.append(f"{name} = {str(default).lower()}")
        return default

    def edge(self, part: str, name: str, default: int) -> int:
        """A whole number of one of the file's nested parts: ``size.longest_edge``."""
        nested = self.processor.section(part)
        if nested is not None and nested.has(name):
            return nested.integer(name)
        self.unstated.append(f"{part}.{name} = {default}")
        return default

    def _number(self, fields: Fields, name: str, default: int, least: int, most: int) -> int:
        if fields.has(name):
            return fields.integer(name, least=least, most=most)
        self.unstated.append(f"{name} = {default}")
        return default


def read_settings(fields: Fields, processor: Mapping[str, Any] | None, where: str) -> ImageSettings:
    """Both files of one model; the processor's settings may be nested."""
    config = processor or {}
    nested = config.get(_NESTED)
    own = nested if isinstance(nested, Mapping) else config
    return ImageSettings(fields, Fields(own, where=where, source="", path=PROCESSOR), unstated=[])
