"""Ollama's releases: which build of llama.cpp each starts.

Since 0.30.0 Ollama starts llama-server for every GGUF model (ollama/ollama@9db4bdbad); releases
before had engines of their own and are not modelled. What Ollama itself decides (tiers of context,
steps of the batch) is the same in all of them. Source: LLAMA_CPP_VERSION of each tag.
"""

from __future__ import annotations

from kvplan.engines.base import Version, parse_version
from kvplan.errors import EngineRefusesError

NEWEST = "0.33.0"
OLDEST: Version = (0, 30)

BUILDS: tuple[tuple[Version, str], ...] = (
    ((0, 30, 0), "b9452"),
    ((0, 30, 1), "b9479"),
    ((0, 30, 4), "b9493"),
    ((0, 30, 5), "b9509"),
    ((0, 30, 9), "b9626"),
    ((0, 30, 10), "b9672"),
    ((0, 30, 11), "b9781"),
    ((0, 31, 0), "b9840"),
    ((0, 31, 2), "b9888"),
    ((0, 32, 2), "b10069"),
    ((0, 32, 3), "b10091"),
    ((0, 32, 6), "b10242"),
    ((0, 32, 8), "b10353"),
    ((0, 32, 10), "b10380"),
    ((0, 32, 14), "b10434"),
    ((0, 32, 15), "b10488"),
)


def build_of(text: str) -> str:
    """The llama.cpp that a release of Ollama starts.

    >>> build_of("0.31.1")
    'b9840'

    Raises:
        EngineRefusesError: a release from before llama-server.
        UsageError: text that is no version.
    """
    version = parse_version(text)
    if version < OLDEST:
        raise EngineRefusesError(
            f"Ollama {text.strip()[:40]} has an engine of its own, which is not modelled.",
            hint="Its releases are known from 0.30.0 on, which start llama-server.",
        )
    return [build for since, build in BUILDS if since <= version or since == BUILDS[0][0]][-1]


def is_newer_than_modelled(text: str) -> bool:
    """Whether the release is newer than the one that was read."""
    return parse_version(text) > parse_version(NEWEST)
