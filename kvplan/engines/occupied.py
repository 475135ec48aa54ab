"""What other programs hold of a card that was read: the line and the reason all engines share.

Only a card of this machine (``--gpu auto``) has such memory; a card that was named is idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kvplan.engines.base import Prepared, Setup
from kvplan.ledger import Draft, Section
from kvplan.plan import Reason
from kvplan.units import format_bytes

NAME = "other_processes"
SOURCE = "NVML, when this plan was made"


def fullest_card(setup: Setup) -> int:
    """Bytes that other programs hold on the fullest of the cards that are planned for.

    Ranks agree on one size for the cache: that of the rank with the least memory.
    """
    return max(setup.gpu.in_use[: setup.parallelism.gpus], default=0)


def lines(used_bytes: int, section: Section) -> tuple[Draft, ...]:
    """The ledger's line for those bytes; none where nobody else uses the card."""
    if not used_bytes:
        return ()
    return (
        Draft(
            NAME,
            section,
            "used_by_others",
            {"used_by_others": used_bytes},
            source=SOURCE,
            confidence="exact",
        ),
    )


def held(drafts: Iterable[Draft]) -> int:
    """Bytes of that line among others; 0 where it is not there."""
    return sum(draft.value() for draft in drafts if draft.name == NAME)


def without(drafts: Iterable[Draft]) -> tuple[Draft, ...]:
    """The lines of the same card if nobody else used it."""
    return tuple(draft for draft in drafts if draft.name != NAME)


def blame(
    used_bytes: int, idle: Prepared, *, context: int, concurrency: int | None, card: str = "the GPU"
) -> Iterator[Reason]:
    """The reason of a shortfall that an idle card would not have.

    Args:
        used_bytes: What others hold of ``card``.
        idle: The same configuration where nobody else uses the cards.
        context: Tokens of a request of the load that does not fit.
        concurrency: How many of them, or None.
        card: How the message names it.
    """
    if not used_bytes:
        return
    figures = idle.figures(context)
    if figures.starts and (concurrency is None or figures.requests >= concurrency):
        yield reason(used_bytes, "Without them it would fit.", card=card)


def reason(used_bytes: int, effect: str, *, hint: str = "Stop them.", card: str) -> Reason:
    """What others hold, and what follows from it in one sentence."""
    return Reason(
        code="memory_in_use",
        message=f"Other programs hold {format_bytes(used_bytes)} of {card} now. {effect}",
        hint=hint,
    )
