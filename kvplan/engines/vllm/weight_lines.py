"""One rank's weights as ledger lines: by component, of the model and of its draft."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from kvplan.engines.base import Version
from kvplan.engines.vllm.loaded import loaded_lines
from kvplan.ledger import Confidence, Draft
from kvplan.models.formats import DTYPE_BYTES, PLAIN, Dtype
from kvplan.models.identity import ById
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout, RankPart, rank_parts


def weight_lines(
    model: ModelSpec,
    draft: ModelSpec | None,
    layout: RankLayout,
    *,
    dtype: Dtype,
    sm: tuple[int, int],
    at: Version,
) -> tuple[Draft, ...]:
    """All weights of one rank, and what loading adds to them.

    Args:
        model: What is loaded.
        draft: What drafts tokens for it, or None; it is whole on the last stage.
        layout: The rank's part.
        dtype: The type it runs in.
        sm: The device's compute capability.
        at: The release.
    """
    lines = _inventory(model, dtype, layout)
    if draft is not None and layout.last:
        lines += _draft_weights(draft, dtype, layout)
    return lines + loaded_lines(
        model, element_bytes=DTYPE_BYTES[dtype], layout=layout, sm=sm, at=at
    )


def _draft_weights(draft: ModelSpec, dtype: Dtype, layout: RankLayout) -> tuple[Draft, ...]:
    every = (0, len(draft.layers))
    whole = layout.model_copy(update={"layers": every, "first": True, "last": True})
    return _inventory(draft, dtype, whole, "draft_")


def _inventory(
    model: ModelSpec, dtype: Dtype, layout: RankLayout, prefix: str = ""
) -> tuple[Draft, ...]:
    parts = rank_parts(model.weights, PLAIN[dtype], layout, tied=model.tied_embeddings)
    checkpoint = model.checkpoint
    if checkpoint is not None and checkpoint.bytes_by_dtype:
        return _weight_lines(ById(parts), checkpoint.source, "exact", prefix)
    return _weight_lines(ById(parts), model.source, "derived", prefix)


@lru_cache(maxsize=1024)
def _weight_lines(
    parts: ById[tuple[RankPart, ...]], source: str, confidence: Confidence, prefix: str
) -> tuple[Draft, ...]:
    by_component: dict[str, list[RankPart]] = {}
    for part in parts.value:
        by_component.setdefault(part.component, []).append(part)
    return tuple(
        _weight_line(f"{prefix}{component}", held, source, confidence)
        for component, held in by_component.items()
    )


def _weight_line(
    component: str, parts: list[RankPart], source: str, confidence: Confidence
) -> Draft:
    terms: list[str] = []
    inputs: dict[str, int | float] = {}
    seen: Counter[str] = Counter()
    for part in parts:
        name = identifier(part.format)
        seen[name] += 1
        if seen[name] > 1:  # formats of one name may differ in bits or groups
            name = f"{name}_{seen[name]}"
        if part.bytes_per_element is None:
            inputs[f"packed_{name}_bytes"] = part.bytes
            terms.append(f"packed_{name}_bytes")
        else:
            inputs[f"elements_{name}"] = part.elements
            inputs[f"bytes_{name}"] = part.bytes_per_element
            terms.append(f"elements_{name} * bytes_{name}")
    return Draft(
        f"weights.{component}",
        "budget",
        " + ".join(terms),
        inputs,
        source=source,
        confidence=confidence,
    )


def identifier(name: str) -> str:
    """A name as formulas can hold it."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name.lower())
