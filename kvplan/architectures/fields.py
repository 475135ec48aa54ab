"""Fields: checked reading of a configuration, and a record of what it left out.

Everything in a ``config.json`` comes from a stranger. A value is read once, by name, with its
type and range; anything else is an `InputError` that names the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.errors import InputError
from kvplan.models.spec import FilledDefault

MAX_LAYERS = 10_000
MAX_DIMENSION = 2**24
MAX_EXPERTS = 10_000
MAX_POSITIONS = 2**40

_MISSING = object()


class Fields:
    """One configuration (or a nested part of one), read field by field.

    Several names for one field are tried in order; the first that is there and not null wins.

    Args:
        config: The configuration as parsed.
        where: The file or repository it came from, for error messages.
        source: Where the class defaults used by the reader are stated.
        path: Name of the nested part, for error messages.
        filled: The record of defaults, shared with the parts.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        where: str,
        source: str,
        path: str = "",
        filled: dict[str, FilledDefault] | None = None,
    ) -> None:
        self._config = config
        self._where = where
        self._source = source
        self._path = path
        self._filled: dict[str, FilledDefault] = {} if filled is None else filled

    @property
    def filled(self) -> tuple[FilledDefault, ...]:
        """What was left out so far, and what stands in for it."""
        return tuple(self._filled.values())

    def of_class(self, source: str) -> Fields:
        """The same fields, read with the defaults of another class."""
        return Fields(
            self._config, where=self._where, source=source, path=self._path, filled=self._filled
        )

    def completed(self, defaults: Mapping[str, int]) -> Fields:
        """The same fields with class defaults for those that are left out.

        Nested configurations keep only what differs from the class.
        """
        stated = {name: value for name, value in self._config.items() if value is not None}
        for name, value in defaults.items():
            if name not in self._config:
                self.fill(name, value)
        return Fields(
            {**self._config, **defaults, **stated},
            where=self._where,
            source=self._source,
            path=self._path,
            filled=self._filled,
        )

    def section(self, name: str, *, source: str | None = None) -> Fields | None:
        """A nested configuration, or None if there is none.

        Raises:
            InputError: there is something of that name that is no object.
        """
        value = self._config.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.error(name, value, "an object")
        path = f"{self._path}{name}."
        return Fields(
            value,
            where=self._where,
            source=source or self._source,
            path=path,
            filled=self._filled,
        )

    def sections(self, name: str, *, most: int) -> tuple[Fields, ...] | None:
        """A list of nested configurations, or None if absent or null.

        Raises:
            InputError: something else, or more than ``most``.
        """
        items = self._items(name, most, "a list of objects")
        if items is None:
            return None
        for index, item in enumerate(items):
            if not isinstance(item, Mapping):
                raise self.error(f"{name}[{index}]", item, "an object")
        return tuple(
            Fields(
                item,
                where=self._where,
                source=self._source,
                path=f"{self._path}{name}[{index}].",
                filled=self._filled,
            )
            for index, item in enumerate(items)
        )

    def has(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self._config.get(name) is not None

    def states(self, name: str) -> bool:
        """Whether the field is there, be it null."""
        return name in self._config

    def integer(
        self, *names: str, default: int | None = None, least: int = 1, most: int = MAX_DIMENSION
    ) -> int:
        """A whole number from ``least`` to ``most``.

        Raises:
            InputError: something else, or absent (or null) where there is no default up to
                ``most``.
        """
        name, value = self._find(names)
        if value is _MISSING:
            if default is None or default > most:
                raise self._left_out(name)
            self.fill(name, default)
            return default
        return self._whole(name, value, least, most)

    def optional_integer(
        self,
        *names: str,
        default: int | None = None,
        least: int = 1,
        most: int = MAX_DIMENSION,
    ) -> int | None:
        """A whole number or None: null in the file means none, absent means the class default."""
        name, value = self._find(names)
        if value is not _MISSING:
            return self._whole(name, value, least, most)
        if default is not None and not any(map(self.states, names)):
            self.fill(name, default)
            return default
        return None

    def number(self, name: str) -> float | None:
        """A finite number above zero, or None if absent or null."""
        value = self._config.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(name, value, "a number above zero")
        if not 0 < value < MAX_POSITIONS:  # NaN compares false and ends here too
            raise self.error(name, value, "a number above zero")
        return float(value)

    def flag(self, *names: str, default: bool) -> bool:
        """True or false.

        Raises:
            InputError: anything else.
        """
        name, value = self._find(names)
        if value is _MISSING:
            self.fill(name, default)
            return default
        if not isinstance(value, bool):
            raise self.error(name, value, "true or false")
        return value

    def optional_text(self, name: str) -> str | None:
        """A text, or None if absent or null."""
        value = self._config.get(name)
        if value is not None and not isinstance(value, str):
            raise self.error(name, value, "a text")
        return value

    def texts(self, name: str, *, most: int = 1_000_000) -> tuple[str, ...] | None:
        """A list of texts, or None if absent or null."""
        items = self._items(name, most, "a list of texts")
        if items is None:
            return None
        for index, item in enumerate(items):
            if not isinstance(item, str):
                raise self.error(f"{name}[{index}]", item, "a text")
        return tuple(items)

    def integers(self, name: str, *, least: int, most: int) -> tuple[int, ...] | None:
        """A list of whole numbers, or None if absent or null."""
        items = self._items(name, MAX_LAYERS, "a list of whole numbers")
        if items is None:
            return None
        return tuple(
            self._whole(f"{name}[{index}]", item, least, most) for index, item in enumerate(items)
        )

    def raw(self, name: str) -> Any:
        """The value as it is, or None: for fields that may have one of several types."""
        return self._config.get(name)

    def names(self) -> tuple[str, ...]:
        """All field names that are there."""
        return tuple(self._config)

    def fill(self, name: str, value: object, source: str | None = None) -> None:
        """Records that ``name`` is left out and ``value`` stands in for it."""
        field = f"{self._path}{name}"
        text = str(value).lower() if isinstance(value, bool) else str(value)
        self._filled[field] = FilledDefault(field=field, value=text, source=source or self._source)

    def error(self, name: str, value: object, expected: str) -> InputError:
        """The error for a field that is not what it has to be."""
        return InputError(
            f"`{self._path}{name}` is {describe(value)}, but has to be {expected}.",
            hint="Check the configuration file: this field decides the size of the model.",
            location=self._where,
        )

    def conflict(self, sentence: str) -> InputError:
        """The error for fields that are fine one by one and do not go together."""
        return InputError(
            sentence,
            hint="Check the configuration file: these fields contradict each other.",
            location=self._where,
        )

    def _find(self, names: tuple[str, ...]) -> tuple[str, Any]:
        for name in names:
            value = self._config.get(name)
            if value is not None:
                return name, value
        return names[0], _MISSING

    def _whole(self, name: str, value: Any, least: int, most: int) -> int:
        expected = f"a whole number from {least:,} to {most:,}"
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.error(name, value, expected)
        return int(value)

    def _items(self, name: str, most: int, expected: str) -> list[Any] | None:
        value = self._config.get(name)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or len(value) > most:
            raise self.error(name, value, expected)
        return list(value)

    def _left_out(self, name: str) -> InputError:
        return InputError(
            f"`{self._path}{name}` is missing, and the size of the model depends on it.",
            hint="Is this the complete configuration file of the model?",
            location=self._where,
        )


def describe(value: object) -> str:
    """A stranger's value in a few words; never long, never deep.

    >>> describe("8"), describe(True), describe(-1), describe([[1]]), describe(float("nan"))
    ("the text '8'", 'true', '-1', 'a list', 'nan')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {value[:40]!r}"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**20 else "a number of absurd size"
    if isinstance(value, float):
        return repr(value)
    return "an object" if isinstance(value, Mapping) else "a list"
