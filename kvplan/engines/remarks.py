"""What several engines have to say alike: reasons that hold whatever the engine."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.models.spec import ModelSpec
from kvplan.plan import Reason
from kvplan.units import format_count


def above_maximum(model: ModelSpec, context: int) -> Iterator[Reason]:
    """That requests are longer than the model allows, which costs memory all the same."""
    longest = model.extended_context or model.max_context
    if longest is not None and context > longest:
        yield Reason(
            code="context_above_model_maximum",
            message=(
                f"{format_count(context)} tokens are more than the model's maximum of "
                f"{format_count(longest)}. The memory is computed all the same."
            ),
        )


def within_uncertainty(held: int, wanted: int, *, unless: str, measure: str) -> Iterator[Reason]:
    """That it fits by the likely figures only.

    Args:
        held: Requests at the scarce end of the range.
        wanted: Requests that are to be held.
        unless: What would take more, as the end of "not if ...".
        measure: What to measure on the target machine.
    """
    if held < wanted:
        yield Reason(
            code="within_uncertainty",
            message=(
                f"It fits by the likely figures, but not if {unless}: then "
                f"{format_count(held)} requests are held."
            ),
            hint=f"Leave headroom, or measure {measure} on the target machine.",
        )


def newer_than_modelled(engine: str, version: str, newest: str) -> Reason:
    """That a release's rules are those of an older one."""
    return Reason(
        code="engine_newer_than_modelled",
        message=(
            f"{engine} {version} is newer than the newest release modelled "
            f"({newest}); its rules are taken from that."
        ),
    )
