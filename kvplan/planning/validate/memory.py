"""Weights, and memory left for the cache: from measured weights, and from flags alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kvplan.engines.base import Answer
from kvplan.hardware import device_memory
from kvplan.ledger import LedgerLine
from kvplan.measurement import Measurement
from kvplan.models.spec import ModelSpec
from kvplan.plan import KvPart
from kvplan.planning.validate.cause import cause, weights_bytes
from kvplan.planning.validate.geometry import logged_gib, printed_tokens
from kvplan.planning.validate.lacking import LEAST_GIB, LackingError, extra, need, need_gib
from kvplan.planning.validate.match import Start
from kvplan.planning.validate.printed import between
from kvplan.units import GIB
from kvplan.validation import KvCheck, WeightsCheck

# A share of the budget is then kept by something that no plan knows of.
_UNPLANNED = {
    "sleep_mode": "sleep mode allocates past torch's own pool",
    "cpu_offload_gib": "part of the weights was kept in the host's memory",
    "kv_cache_memory_bytes": "the size of the pool was given",
    "num_gpu_blocks_override": "the size of the pool was given",
}


def weights(start: Start) -> WeightsCheck:
    """Predicted and logged weights of the fullest rank.

    Raises:
        LackingError: the log states none, or their format is not known.
        KvplanError: the configuration is refused.
    """
    measured = need_gib(start.record.weights_gib, "weights_gib")
    predicted = weights_bytes(_answer(start, start.loaded()).ledger) / GIB
    return WeightsCheck(
        predicted_weights_gib=predicted,
        measured_weights_gib=measured,
        relative_error=predicted / measured - 1,
        share_of_card=abs(predicted - measured) / _card_gib(start) if start.gpu_stated else None,
    )


def overhead(start: Start) -> KvCheck:
    """The cache that is left if the weights are what the log says.

    Raises:
        LackingError: the record does not state all that it takes.
        KvplanError: the configuration is refused.
    """
    record = start.record
    _check_flags(start)
    logged = round(need_gib(record.weights_gib, "weights_gib") * GIB)
    gib = logged_gib(record)
    # The checkpoint's format does not matter: its bytes are taken out again.
    answer = _answer(start, start.model)
    saved = weights_bytes(answer.ledger) - logged
    return _compared(start, _Left.of(answer.kv, saved), gib, _other_lines(answer.ledger))


def end_to_end(start: Start) -> KvCheck:
    """The cache that is left by model, GPU and flags alone.

    Raises:
        LackingError: the record does not state all that it takes.
        KvplanError: the configuration is refused.
    """
    _check_flags(start)
    answer = _answer(start, start.loaded())
    measured, measured_from = measured_kv(start.record, answer)
    compared = _compared(start, _Left.of(answer.kv, 0), measured, answer.ledger)
    return compared.model_copy(
        update={
            "measured_from": measured_from,
            "predicted_tokens": answer.capacity.tokens,
            "measured_tokens": printed_tokens(start.record) or start.record.kv_tokens,
        }
    )


@dataclass(frozen=True, slots=True)
class _Left:
    """Memory left for the cache, in GiB, with its range where there is one."""

    gib: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, kv: KvPart, more: int) -> _Left:
        """The plan's budget for the cache with ``more`` bytes added."""
        ends = [
            None if end is None else (end + more) / GIB for end in (kv.budget_low, kv.budget_high)
        ]
        return cls((kv.budget_bytes + more) / GIB, ends[0], ends[1])


def _check_flags(start: Start) -> None:
    record = start.record
    if not start.gpu_stated:
        raise LackingError("gpu is not stated")
    need(record.engine_version, "engine_version")
    need(record.tp, "tp")
    need(record.gpu_memory_utilization, "gpu_memory_utilization")
    if extra(record, "gpu_memory_utilization_assumed"):
        raise LackingError("gpu_memory_utilization is not stated: the record assumes one")
    for name, why in _UNPLANNED.items():
        if extra(record, name):
            raise LackingError(why)


def _answer(start: Start, model: ModelSpec) -> Answer:
    return start.engine.prepare(start.memory(model)).answer(start.context, None)


def _card_gib(start: Start) -> float:
    return device_memory(start.gpu).total / GIB


def measured_kv(
    record: Measurement, answer: Answer
) -> tuple[float, Literal["log", "blocks", "tokens"]]:
    """The cache's memory as logged, else worked out from what was logged of it."""
    if record.available_kv_gib is not None:
        return logged_gib(record), "log"
    if record.num_gpu_blocks:
        return record.num_gpu_blocks * answer.capacity.bytes_per_block / GIB, "blocks"
    tokens = need(record.kv_tokens or None, "available_kv_gib")
    if not answer.capacity.tokens:
        raise LackingError("available_kv_gib is not stated")
    allocated = answer.kv.allocated_bytes / GIB
    return tokens * allocated / answer.capacity.tokens, "tokens"


def _compared(
    start: Start, left: _Left, measured: float, ledger: tuple[LedgerLine, ...]
) -> KvCheck:
    ranged = left.low is not None and left.high is not None
    return KvCheck(
        predicted_kv_gib=left.gib,
        low_kv_gib=left.low,
        high_kv_gib=left.high,
        measured_kv_gib=measured,
        relative_error=left.gib / measured - 1 if measured >= LEAST_GIB else None,
        share_of_card=abs(left.gib - measured) / _card_gib(start),
        in_interval=between(left.low or 0.0, measured, left.high or 0.0) if ranged else None,
        cause=cause(ledger, start.record, left.gib - measured),
    )


def _other_lines(ledger: tuple[LedgerLine, ...]) -> tuple[LedgerLine, ...]:
    return tuple(line for line in ledger if not line.name.startswith("weights"))
