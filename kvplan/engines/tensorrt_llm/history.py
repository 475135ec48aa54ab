"""What changed between TensorRT-LLM releases, as one table of dated rows.

The sources are files and logs of single dates, not of every release: a row names the release of
which the value is known, and a change may be older.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from kvplan.engines.base import Version, parse_version
from kvplan.errors import EngineRefusesError

NEWEST = "1.3.0"
OLDEST: Version = (0, 9)

Backend = Literal["pytorch", "tensorrt"]


@dataclass(frozen=True, slots=True)
class Rules:
    """How one release sizes its cache. The defaults are those of the oldest modelled, 0.9.

    Attributes:
        backend: The path that is taken where nobody says which.
        tokens_per_block: Default of the option of that name.
        rounds_up: The last block of the PyTorch path may be beyond the budget, as that of the
            other always is.
        derives_windows: Windows are read from the model where the option names none.
        has_pytorch: There is a PyTorch path.
    """

    backend: Backend = "tensorrt"
    tokens_per_block: int = 64
    rounds_up: bool = True
    derives_windows: bool = False
    has_pytorch: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One row: since which release which rule has which value, and where that can be read."""

    since: Version
    rule: str
    value: Any
    source: str


CHANGES: tuple[Change, ...] = (
    Change(
        (0, 17),
        "has_pytorch",
        value=True,
        source="docs/source/torch.md: available in version 0.17 and later",
    ),
    Change(
        (0, 19),
        "tokens_per_block",
        value=32,
        source="a start of 0.19 prints 32 (NVIDIA/TensorRT-LLM#4275), one of 0.13 prints 64 "
        "(NVIDIA/TensorRT-LLM#2268)",
    ),
    Change(
        (1, 0),
        "backend",
        value="pytorch",
        source="docs/source/examples/kvcacheconfig.md of 1.0: tensorrt_llm.LLM is the PyTorch path",
    ),
    Change(
        (1, 2),
        "rounds_up",
        value=False,
        source="resource_manager.py at commit 001541b: max_tokens // tokens_per_block",
    ),
    Change(
        (1, 3),
        "derives_windows",
        value=True,
        source="_util.py at commit 0004396: _derive_layer_type_attention_windows",
    ),
)


@lru_cache(maxsize=64)
def rules_for(version: str) -> Rules:
    """The rules of a release; between two modelled ones those of the older.

    Raises:
        EngineRefusesError: older than 0.9.
    """
    number = parse_version(version)
    if number < OLDEST:
        raise EngineRefusesError(
            f"TensorRT-LLM {version} is older than the oldest release kvplan models (0.9).",
            hint=f"Plan for a newer one, for example tensorrt-llm=={NEWEST}.",
        )
    rules = Rules()
    for change in CHANGES:
        if change.since <= number:
            rules = replace(rules, **{change.rule: change.value})
    return rules


def is_newer_than_modelled(version: str) -> bool:
    """Whether the release is newer than the newest whose rules are known."""
    return parse_version(version)[:2] > parse_version(NEWEST)[:2]
