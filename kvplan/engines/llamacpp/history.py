"""What changed between llama.cpp releases, as one table of dated rows.

Releases are builds (``b10488``) and, beside them, versions (``0.5.0``, the commit 0c1e57098 that
all rules were read from). Build numbers are those of the first build on record that shows a rule:
it may be older, never younger.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from kvplan.engines.base import Version, parse_version
from kvplan.errors import EngineRefusesError

NEWEST = "0.5.0"
SOURCE = "ggml-org/llama.cpp@0c1e57098"
_BUILD = "b"


@dataclass(frozen=True, slots=True)
class Rules:
    """How one release sizes its memory. The defaults are those of the oldest modelled, b7079.

    Attributes:
        fit: There is ``--fit``, which sets what was left open to what the devices hold.
        outputs_limited: llama-server reserves logits for what it samples, not for the whole batch.
    """

    fit: bool = False
    outputs_limited: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One row: since which release which rule has which value, and where that can be read."""

    since: Version
    rule: str
    value: Any
    source: str


# The server's four slots with one cache, and contexts in steps of 256 cells, are in it:
# ggml-org/llama.cpp#17300.
OLDEST: Version = (0, 0, 7079)
CHANGES: tuple[Change, ...] = (
    Change(
        (0, 0, 8763), "fit", value=True, source="ggml-org/llama.cpp#16653, ggml-org/llama.cpp#21801"
    ),
    # Merged by 2 June 2026 (abetlen/llama-cpp-python#2242); b9688 is of 17 June
    # (ggml-org/llama.cpp#24735).
    Change((0, 0, 9688), "outputs_limited", value=True, source="ggml-org/llama.cpp#23861"),
)


def version_of(text: str) -> Version:
    """``b10488`` as (0, 0, 10488), so that builds come before versions.

    >>> version_of("b10488") < version_of("0.5.0")
    True
    """
    number = text.strip()
    build = number.lower().startswith(_BUILD)
    version = parse_version(number[1:] if build else number)
    return (0, 0, version[0]) if build else version


@lru_cache(maxsize=256)
def rules_for(text: str) -> Rules:
    """The rules of one release.

    Raises:
        EngineRefusesError: a release older than all that are modelled.
        UsageError: text that is no version.
    """
    version = version_of(text)
    if version < OLDEST:
        raise EngineRefusesError(
            f"llama.cpp {text.strip()[:40]} is older than the builds modelled.",
            hint=f"Its rules are known from b{OLDEST[2]} on.",
        )
    rules = Rules()
    for change in CHANGES:
        if change.since <= version:
            rules = replace(rules, **{change.rule: change.value})
    return rules


def is_newer_than_modelled(text: str) -> bool:
    """Whether the release is newer than the one that the rules were read from."""
    return version_of(text) > version_of(NEWEST)
