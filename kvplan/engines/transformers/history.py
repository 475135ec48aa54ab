"""What changed between releases of transformers, as dated rows.

Read from wheels of 4.57.6, 5.0.0, 5.2.0, 5.3.0, 5.4.0, 5.5.4, 5.10.4, 5.12.1, 5.13.1, 5.14.1,
5.15.1, 5.20.2, 5.21.1, 5.22.2, 5.23.0 and 5.24.0: a row names the first minor release of which
the wheel that was read has the change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from kvplan.engines.base import Version, parse_version
from kvplan.errors import EngineRefusesError

NEWEST = "5.24.0"
OLDEST: Version = (4, 57)


@dataclass(frozen=True, slots=True)
class Rules:
    """How one release keeps its cache. The defaults are those of the oldest modelled, 4.57.

    Attributes:
        latents: MLA keeps the compressed vector; else the keys and values that it expands to.
        state_layers: Recurrent states are layers of the common cache, whose types were checked.
        indexer: The keys of a sparse indexer are cached.
        fp8_backend: ``QuantizedCache`` has the backend fp8.
        hybrid_classes: ``HybridCache`` and its kin are names of ``StaticCache``.
        sliding_class: ``SlidingWindowCache`` is a name of ``StaticCache``.
        auto_dtype: A model loads in its checkpoint's type if none is given, else in float32.
    """

    latents: bool = False
    state_layers: bool = False
    indexer: bool = False
    fp8_backend: bool = False
    hybrid_classes: bool = True
    sliding_class: bool = True
    auto_dtype: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One row: since which release which rule has which value, and where that can be read."""

    since: Version
    rule: str
    value: Any
    source: str


_CACHES = "src/transformers/cache_utils.py"
_MODELS = "src/transformers/models"

CHANGES: tuple[Change, ...] = (
    Change((5, 0), "hybrid_classes", value=False, source=f"{_CACHES}: HybridCache"),
    Change((5, 0), "sliding_class", value=False, source=f"{_CACHES}: SlidingWindowCache"),
    Change((5, 0), "auto_dtype", value=True, source="src/transformers/modeling_utils.py: dtype"),
    Change((5, 5), "state_layers", value=True, source=f"{_CACHES}: LinearAttentionLayer"),
    Change((5, 5), "sliding_class", value=True, source=f"{_CACHES}: SlidingWindowCache"),
    Change((5, 12), "indexer", value=True, source=f"{_CACHES}: DynamicIndexedLayer"),
    Change((5, 15), "latents", value=True, source=f"{_MODELS}/deepseek_v3: DeepseekV3Attention"),
    Change((5, 21), "fp8_backend", value=True, source=f"{_CACHES}: Fp8QuantizedLayer"),
)


@lru_cache(maxsize=64)
def rules_for(version: str) -> Rules:
    """The rules of a release; between two modelled ones those of the older.

    Raises:
        EngineRefusesError: older than 4.57, whose caches are built in another way.
    """
    number = parse_version(version)
    if number < OLDEST:
        raise EngineRefusesError(
            f"transformers {version} is older than the oldest release kvplan models (4.57).",
            hint=f"Plan for a newer one, for example transformers=={NEWEST}.",
        )
    rules = Rules()
    for change in CHANGES:
        if change.since <= number:
            rules = replace(rules, **{change.rule: change.value})
    return rules


def is_newer_than_modelled(version: str) -> bool:
    """Whether the release is newer than the newest whose rules are known."""
    return parse_version(version)[:2] > parse_version(NEWEST)[:2]
