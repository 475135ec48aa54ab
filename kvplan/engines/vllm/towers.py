"""Towers that no request reaches: ``limit_mm_per_prompt`` is 0 for all that they take.

vLLM then neither profiles images and sound nor, later, loads the towers. What is not named counts
as allowed, and which models take video beside images is not known here: a tower for images is only
taken to be off if both are 0. Sources: vllm-project/vllm pull requests 22299 and 33406; vLLM
0.33.0, vllm/model_executor/models/interfaces.py _mark_tower_model, vllm/config/multimodal.py
get_limit_per_prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kvplan.engines.base import Version
from kvplan.ledger import Draft
from kvplan.models.spec import ModelSpec

_TAKES: Mapping[str, tuple[str, ...]] = {"vision": ("image", "video"), "audio": ("audio",)}
# Since then nothing is profiled (merged August 2025).
_NOT_PROFILED = (0, 10, 1)
# Since then every class leaves the weights out; before, some did.
_NOT_LOADED = (0, 16)


def off(limits: Mapping[str, int] | None) -> frozenset[str]:
    """The components that no request reaches."""
    return frozenset(
        component
        for component, kinds in _TAKES.items()
        if limits is not None and all(limits.get(kind) == 0 for kind in kinds)
    )


def profiled(model: ModelSpec, limits: Mapping[str, int] | None, at: Version) -> bool:
    """Whether the profile run has images or sound."""
    towers = {weight.component for weight in model.weights} & _TAKES.keys()
    return bool(towers - off(limits) if at >= _NOT_PROFILED else towers)


def loaded(
    lines: Iterable[Draft], limits: Mapping[str, int] | None, at: Version
) -> tuple[Draft, ...]:
    """The lines of weights without those of towers that are not loaded."""
    names = {f"weights.{component}" for component in off(limits)} if at >= _NOT_LOADED else set()
    return tuple(line for line in lines if line.name not in names)
