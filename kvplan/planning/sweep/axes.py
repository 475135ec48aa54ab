"""What is to be varied → axes; every problem is kept, so that all can be said at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvplan.errors import FactsError, KvplanError, UsageError, shown
from kvplan.planning.sweep.words import KINDS, Kind, read_values
from kvplan.sweep_grid import Axis

_MOST_SAID = 20


def axes_of(
    vary: Mapping[str, str | Sequence[Any]],
    problems: list[KvplanError],
    kinds: Mapping[str, Kind] = KINDS,
) -> tuple[Axis, ...]:
    """An axis for each input.

    Args:
        vary: Values, or a text for them, by name; dashes are as good as underscores.
        problems: What makes no sense is added here.
        kinds: How the values of each input are written; all others are engine options.
    """
    found: dict[str, Axis] = {}
    for written, values in vary.items():
        name = str(written).strip().replace("-", "_")
        try:
            found[name] = Axis(name, _values(name, values, kinds, twice=name in found))
        except UsageError as error:
            problems.append(at(f"--vary {name}", error))
    if not vary:
        problems.append(
            UsageError(
                "Nothing is varied.",
                hint="Write --vary context=8k..128k*2 --vary kv_dtype=auto,fp8.",
            )
        )
    return tuple(found.values())


def _values(name: str, values: Any, kinds: Mapping[str, Kind], *, twice: bool) -> tuple[Any, ...]:
    if twice:
        raise UsageError(f"{name} is varied twice.", hint="Put all its values in one list.")
    if not name.isidentifier():
        raise UsageError(f"{shown(name)} is no name of an input.", hint="Write context=8k,32k.")
    if isinstance(values, str):
        return read_values(name, values, kinds)
    if not isinstance(values, Iterable):
        raise UsageError(f"The values of {name} are a list or a text.", hint="Give [8192, 32768].")
    listed = list(values)
    if not listed:
        raise UsageError(f"{name} has no values.", hint="Give at least one.")
    return tuple(value for place, value in enumerate(listed) if _is_first(listed, place))


def _is_first(listed: list[Any], place: int) -> bool:
    # Long lists are numbers that a program made: comparing all of them takes for ever.
    return len(listed) > 1000 or listed[place] not in listed[:place]


def at(location: str, error: KvplanError) -> KvplanError:
    """The same error with its place."""
    return type(error)(error.message, hint=error.hint, location=location)


def raise_all(problems: Sequence[KvplanError]) -> None:
    """Raises where there are problems: the only one as it is, several in one.

    Raises:
        KvplanError: that.
    """
    if not problems:
        return
    if len(problems) == 1:
        raise problems[0]
    lines = [f"{problem} {problem.hint or ''}".rstrip() for problem in problems]
    title = f"{len(problems)} inputs of the sweep make no sense:"
    kind = FactsError if all(isinstance(one, FactsError) for one in problems) else UsageError
    raise kind("\n".join((title, *lines[:_MOST_SAID])))
