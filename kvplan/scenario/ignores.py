"""``# kvplan: ignore KV111 because REASON``: findings that somebody decided to live with.

The comment holds for its own line, or, on a line of its own, for the next one with a key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kvplan.scenario.problems import Found

_COMMENT = re.compile(
    r"(?:^|\s)#\s*kvplan:\s*ignore\b\s*((?:KV\d{3}[,\s]*)*)(?:because\b|[:-])?\s*(.*)$", re.ASCII
)
_CODE = re.compile(r"KV\d{3}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Ignore:
    """One code on one line, and why."""

    code: str
    reason: str


def read_ignores(text: str, name: str) -> tuple[Mapping[int, tuple[Ignore, ...]], list[Found]]:
    """The comments of a file by the line that they hold for, counted from 1.

    Beside them those that have no code or no reason, as problems.
    """
    found: dict[int, tuple[Ignore, ...]] = {}
    bad: list[Found] = []
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        match = _COMMENT.search(line) if "kvplan:" in line else None
        if match is None:
            continue
        codes, reason = _CODE.findall(match[1]), match[2].strip()
        if not codes or not reason:
            bad.append(
                Found(
                    f"{name}:{number}:{line.index('#', match.start()) + 1}",
                    "An ignored rule has a code and a reason:"
                    " # kvplan: ignore KV111 because REASON.",
                )
            )
        target = _target(lines, number)
        found[target] = (*found.get(target, ()), *(Ignore(code, reason) for code in codes))
    return found, bad


def _target(lines: list[str], number: int) -> int:
    """The line that a comment on line ``number`` is about."""
    if not lines[number - 1].lstrip().startswith("#"):
        return number
    for later, line in enumerate(lines[number:], start=number + 1):
        if line.strip() and not line.lstrip().startswith("#"):
            return later
    return number
