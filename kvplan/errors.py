"""Every error that kvplan raises on purpose.

KvplanError                      slug               exit
├── UsageError                   usage              2   an argument that makes no sense
│   ├── UnknownNameError         unknown-name       2   no GPU, engine or option of that name
│   └── AmbiguousNameError       ambiguous-name     2   a name that fits several things
├── InputError                   unreadable-input   2   a file that isn't what it claims to be
├── FactsError                   facts-unobtainable 3   a fact that can't be had here and now
│   ├── ModelNotFoundError       model-not-found    3
│   ├── GatedModelError          gated-model        3
│   ├── HubUnreachableError      hub-unreachable    3
│   └── NoDeviceError            no-device          3
├── RefusedError                 refused            4   no amount of memory cures it
│   ├── NotModelledError         not_modelled       4   an architecture not modelled here
│   └── EngineRefusesError       engine_refuses     4   the engine itself rejects it
└── InternalError                bug                70  a mistake in kvplan

The class decides the exit code; `cli.main` only prints what the error says of itself.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, ClassVar


class KvplanError(Exception):
    """Base of all errors: one sentence, a hint that says what to do, and a place.

    Args:
        message: What was wrong, as a sentence.
        hint: What the reader can do about it.
        location: Where it was, as ``file``, ``file:line`` or ``file:line:column``.

    Example:
        >>> str(KvplanError("There is no such key.", hint="Try tp.", location="a.yaml:3"))
        'a.yaml:3: There is no such key.'
    """

    slug: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 70

    def __init__(
        self, message: str, *, hint: str | None = None, location: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.location = location

    def __str__(self) -> str:
        return f"{self.location}: {self.message}" if self.location else self.message


class UsageError(KvplanError):
    """An argument or a combination of arguments makes no sense."""

    slug = "usage"
    exit_code = 2


class UnknownNameError(UsageError):
    """No GPU, engine or option has that name."""

    slug = "unknown-name"


class AmbiguousNameError(UsageError):
    """The name fits several things, and kvplan does not pick one."""

    slug = "ambiguous-name"


class InputError(KvplanError):
    """A file is not what it claims to be: broken JSON, wrong types, a truncated header."""

    slug = "unreadable-input"
    exit_code = 2


class FactsError(KvplanError):
    """A fact that the plan needs can't be had here and now."""

    slug = "facts-unobtainable"
    exit_code = 3


class ModelNotFoundError(FactsError):
    """Neither the bundled specs nor the Hub has a model (or revision) of that name."""

    slug = "model-not-found"


class GatedModelError(FactsError):
    """The Hub wants a login or an accepted licence for this model."""

    slug = "gated-model"


class HubUnreachableError(FactsError):
    """The Hub can't be asked: offline, no route, time-out, server error."""

    slug = "hub-unreachable"


class NoDeviceError(FactsError):
    """This machine has no GPU (or no driver) that can be read."""

    slug = "no-device"


class RefusedError(KvplanError):
    """No amount of memory cures it."""

    slug = "refused"
    exit_code = 4


class NotModelledError(RefusedError):
    """The architecture (or format) is not one that kvplan models."""

    slug = "not_modelled"


class EngineRefusesError(RefusedError):
    """The engine itself would reject the configuration, whatever the memory."""

    slug = "engine_refuses"


class InternalError(KvplanError):
    """A mistake in kvplan itself."""

    slug = "bug"
    exit_code = 70


# Fewer characters are the start of too many names.
_SHORTEST_START = 3


_LOGIN = re.compile(r"(?<=//)[^/\s'\"]*@")


def without_login(text: str) -> str:
    """A text without users and passwords of addresses in it, which no message repeats.

    >>> without_login("https://user:word@host/model@main")
    'https://host/model@main'
    """
    return _LOGIN.sub("", text)


def shown(value: Any, most: int = 60) -> str:
    """A value as a message can quote it: short, whatever it is.

    >>> shown("fast"), shown(10**9999)
    ("'fast'", 'a number of 33,216 bits')
    """
    # Python itself refuses to write out an integer of more than 4,300 digits.
    if isinstance(value, int) and value.bit_length() > 4 * most:
        return f"a number of {value.bit_length():,} bits"
    try:
        text = without_login(repr(value))
    except (ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= most else text[: most - 1] + "…"


def nearest(name: str, known: Iterable[str], *, count: int = 3, cutoff: float = 0.5) -> str | None:
    """Says which known names look like ``name`` or start with it, or None if none does.

    Args:
        name: What was typed.
        known: All the names there are.
        count: Most names offered.
        cutoff: How alike they have to be, from 0 to 1 (difflib's ratio).

    >>> nearest("H100-SMX", ["H100-SXM-80GB", "L4-24GB"])
    'Did you mean H100-SXM-80GB?'
    >>> nearest("gpu_mem", ["gpu_memory_utilization", "block_size"])
    'Did you mean gpu_memory_utilization?'
    """
    by_folded = {candidate.casefold(): candidate for candidate in known}
    wanted = name.casefold()[:200]
    longer = len(wanted) >= _SHORTEST_START
    starting = sorted(folded for folded in by_folded if longer and folded.startswith(wanted))
    close = difflib.get_close_matches(wanted, by_folded, n=count, cutoff=cutoff)
    offered = list(dict.fromkeys((*starting, *close)))[:count]
    if not offered:
        return None
    return "Did you mean " + ", ".join(by_folded[folded] for folded in offered) + "?"
