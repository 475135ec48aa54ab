"""An engine's answer → what a sweep keeps of it."""

from __future__ import annotations

from collections.abc import Iterable

from kvplan.engines.base import Answer
from kvplan.errors import KvplanError
from kvplan.ledger import LedgerLine, total
from kvplan.plan import Reason
from kvplan.sweep_result import Cell


def cell_of(answer: Answer, *, notes: Iterable[str] = ()) -> Cell:
    """What an answer holds; ``notes`` are further codes."""
    capacity, kv, spread = answer.capacity, answer.kv, answer.parallelism
    first, others = _split(answer)
    weights = _weights(answer.ledger)
    return Cell(
        verdict=answer.verdict,
        reason_code=first.code if first else None,
        reason=first.message if first else None,
        hint=first.hint if first else None,
        notes=(*(reason.code for reason in others), *notes),
        engine_version=answer.engine.version,
        planned_context=answer.context,
        gpus=spread.gpus,
        replicas=spread.dp,
        requests=capacity.requests,
        max_concurrency=capacity.max_concurrency,
        max_context=capacity.max_context,
        tokens=capacity.tokens,
        tokens_low=capacity.tokens_low,
        tokens_high=capacity.tokens_high,
        blocks=capacity.blocks,
        bytes_per_token=kv.bytes_per_token,
        bytes_per_request=kv.bytes_per_request,
        budget_bytes=kv.budget_bytes,
        total_bytes=answer.total_bytes,
        weights_bytes=weights,
        runtime_bytes=total(answer.ledger, "budget") - weights,
        kv_bytes=total(answer.ledger, "pool"),
        outside_bytes=total(answer.ledger, "outside"),
        free_bytes=total(answer.ledger, "free"),
    )


def refused_cell(refusal: KvplanError) -> Cell:
    """What the engine, or kvplan, would not have."""
    return Cell(
        verdict="refused", reason_code=refusal.slug, reason=refusal.message, hint=refusal.hint
    )


def _split(answer: Answer) -> tuple[Reason | None, tuple[Reason, ...]]:
    """Why it does not fit, and what else is said."""
    if answer.verdict == "fits" or not answer.reasons:
        return None, answer.reasons
    return answer.reasons[0], answer.reasons[1:]


def _weights(ledger: tuple[LedgerLine, ...]) -> int:
    return sum(line.bytes for line in ledger if line.name.split(".")[0] == "weights")
