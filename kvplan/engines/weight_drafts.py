"""The weights of one rank as ledger lines, one a component, for engines that add nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kvplan.ledger import Confidence, Draft
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankPart


def drafts_of(
    parts: Iterable[RankPart], *, source: str, confidence: Confidence, prefix: str = ""
) -> tuple[Draft, ...]:
    """One line a component; ``prefix`` stands before its name."""
    by_component: dict[str, list[RankPart]] = {}
    for part in parts:
        by_component.setdefault(part.component, []).append(part)
    return tuple(
        _draft(f"weights.{prefix}{component}", held, source, confidence)
        for component, held in by_component.items()
    )


def origin(model: ModelSpec) -> tuple[str, Confidence]:
    """Where the sizes come from, and how sure they are: read from a checkpoint, or computed."""
    checkpoint = model.checkpoint
    if checkpoint is not None and checkpoint.bytes_by_dtype:
        return checkpoint.source, "exact"
    return model.source, "derived"


def _draft(name: str, parts: list[RankPart], source: str, confidence: Confidence) -> Draft:
    terms: list[str] = []
    inputs: dict[str, int | float] = {}
    seen: Counter[str] = Counter()
    for part in parts:
        key = identifier(part.format)
        seen[key] += 1
        if seen[key] > 1:  # formats of one name may differ in bits or groups
            key = f"{key}_{seen[key]}"
        if part.bytes_per_element is None:
            inputs[f"packed_{key}_bytes"] = part.bytes
            terms.append(f"packed_{key}_bytes")
        else:
            inputs[f"elements_{key}"] = part.elements
            inputs[f"bytes_{key}"] = part.bytes_per_element
            terms.append(f"elements_{key} * bytes_{key}")
    return Draft(name, "budget", " + ".join(terms), inputs, source=source, confidence=confidence)


def identifier(name: str) -> str:
    """A name as formulas can hold it."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name.lower())
