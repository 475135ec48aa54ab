"""Ledger lines corrected by what was measured on the machine that is planned for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kvplan.host_profile import ACTIVATION, GRAPHS, NON_TORCH, Factor, HostProfile, Offset
from kvplan.ledger import Draft
from kvplan.units import GIB


def corrected(drafts: Iterable[Draft], profile: HostProfile | None) -> tuple[Draft, ...]:
    """The lines, those that the profile says something of with its factor or offset."""
    if profile is None:
        return tuple(drafts)
    return tuple(_corrected(draft, profile) for draft in drafts)


def _corrected(draft: Draft, profile: HostProfile) -> Draft:
    if draft.name.startswith("weights."):
        return _times(draft, profile.weights, profile.name)
    if draft.name in ACTIVATION:
        return _times(draft, profile.activation, profile.name)
    if draft.name in GRAPHS:
        return _times(draft, profile.graphs, profile.name)
    if draft.name in NON_TORCH:
        return _plus(draft, profile.non_torch, profile.name)
    return draft


def _times(draft: Draft, factor: Factor, name: str) -> Draft:
    if not factor.starts:
        return draft
    formula = f"ceil(({draft.formula}) * host_factor)"
    # Outside the budget a line takes no more than there is, whatever it is multiplied by.
    return _changed(
        draft,
        formula=f"min({formula}, room_bytes)" if "room_bytes" in draft.inputs else formula,
        inputs={"host_factor": factor.value},
        source=_source(name, factor.starts, draft.source),
    )


def _plus(draft: Draft, offset: Offset, name: str) -> Draft:
    if not offset.starts:
        return draft
    return _changed(
        draft,
        formula=f"max(0, {draft.formula} + host_bytes)",
        inputs={"host_bytes": round(offset.gib * GIB)},
        source=_source(name, offset.starts, draft.source),
    )


def _changed(draft: Draft, *, formula: str, inputs: dict[str, int | float], source: str) -> Draft:
    return replace(
        draft,
        formula=formula,
        inputs={**draft.inputs, **inputs},
        source=source,
        confidence="calibrated",
    )


def _source(name: str, n: int, before: str) -> str:
    return f"{name}, {n} start{'' if n == 1 else 's'}; {before}"
