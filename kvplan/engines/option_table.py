"""An engine's options by name: read with their types, refused by name, or unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvplan.errors import NotModelledError, UnknownNameError, UsageError, nearest, shown


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The names that one engine has.

    Attributes:
        engine: The engine, as its own people write it.
        readers: A checked reader by name; the order is that of reports.
        aliases: Other names of the same options.
        not_yet: Options that the engine has and kvplan does not size: refused rather than ignored,
            unless given as they are by default, which follows the name.
        arguments: What is an argument of its own; as an option it would silently compete.
    """

    engine: str
    readers: Mapping[str, Callable[[str, Any], Any]]
    aliases: Mapping[str, str] = field(default_factory=dict)
    not_yet: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, str] = field(default_factory=dict)

    def read(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Checks names and types; names come back as the engine has them.

        Dashes or underscores, and a path before the last dot, make no difference.

        Raises:
            UnknownNameError: the engine has no such option; the nearest name is the hint.
            UsageError: a value of the wrong type or out of range, or a name given twice.
            NotModelledError: an option that kvplan does not size yet.
        """
        read: dict[str, Any] = {}
        for written, value in options.items():
            plain = written.strip().removeprefix("--").replace("-", "_").rpartition(".")[2]
            name = self.aliases.get(plain, plain)
            if name in read:
                raise UsageError(f"{name} is given twice.", hint="Keep one of the two.")
            if name in self.readers:
                read[name] = self.readers[name](name, value)
            else:
                self._check_other(name, value)
        return read

    def _check_other(self, name: str, value: Any) -> None:
        if name in self.arguments:
            raise UsageError(f"{name} is not set with -o.", hint=f"Use {self.arguments[name]}.")
        if name not in self.not_yet:
            known = (*self.readers, *self.aliases, *self.not_yet, *self.arguments)
            raise UnknownNameError(
                f"{self.engine} has no option {shown(name)} that kvplan knows.",
                hint=nearest(name, known) or f"It knows {', '.join(self.readers)}.",
            )
        if value != self.not_yet[name]:
            raise NotModelledError(
                f"kvplan does not size {self.engine}'s {name} yet.",
                hint="Leave it out to plan without it.",
            )
