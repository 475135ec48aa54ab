"""Now against the lock: what changed, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from kvplan.check_result import Finding
from kvplan.scenario.lock import LockedPlan
from kvplan.scenario.question import Question
from kvplan.scenario.rules.lint import reason_to_ignore
from kvplan.units import format_bytes

_SHORT_HASH = 12


def drift(question: Question, locked: LockedPlan, now: LockedPlan) -> Finding | None:
    """The difference between the lock and now, as one finding; None where there is none."""
    causes, effects = list(_causes(locked, now)), list(_effects(locked, now))
    if not causes and not effects:
        return None
    what = "; ".join(causes) or "nothing that the scenario names: kvplan itself computes otherwise"
    cost = "; ".join(effects) or "no figure of the plan"
    place = question.place()
    return Finding(
        code="KV201",
        rule="lock-drift",
        level="error",
        message=f"Changed since the lock: {what}. It costs: {cost}.",
        fix="Pin what moved, or accept it with `kvplan lock`.",
        place=place,
        ignored=reason_to_ignore(question.variant.layered, "KV201", place),
    )


def _causes(locked: LockedPlan, now: LockedPlan) -> Iterator[str]:
    for label, old, new in (
        ("model", locked.model, now.model),
        ("revision", _short(locked.revision), _short(now.revision)),
        ("config.json", _short(locked.config_sha256), _short(now.config_sha256)),
        ("draft model", _short(locked.draft_sha256), _short(now.draft_sha256)),
        ("trace", _short(locked.trace_sha256), _short(now.trace_sha256)),
        ("GPU", locked.gpu, now.gpu),
        ("GPUs", locked.gpus, now.gpus),
        ("engine", locked.engine, now.engine),
        ("context", locked.context, now.context),
        ("cache type", locked.kv_dtype, now.kv_dtype),
    ):
        if old != new:
            yield f"{label} {_said(old)} → {_said(new)}"
    if locked.gpu_bytes != now.gpu_bytes:
        yield f"GPU memory {_bytes(locked.gpu_bytes, now.gpu_bytes)}"
    yield from _options(locked.options, now.options)


def _options(locked: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*locked, *now}):
        if locked.get(name) != now.get(name):
            yield f"{name} {_said(locked.get(name))} → {_said(now.get(name))}"


def _effects(locked: LockedPlan, now: LockedPlan) -> Iterator[str]:
    if locked.verdict != now.verdict:
        yield f"verdict {locked.verdict} → {now.verdict}"
    if locked.requests != now.requests:
        yield f"requests {_counts(locked.requests, now.requests)}"
    if locked.tokens_low != now.tokens_low:
        yield f"tokens at least {_counts(locked.tokens_low, now.tokens_low)}"
    if locked.held_requests != now.held_requests:
        yield f"requests of the traffic {_counts(locked.held_requests, now.held_requests)}"
    if not _alike(locked.overload_risk, now.overload_risk):
        yield f"overload risk {_share(locked.overload_risk)} → {_share(now.overload_risk)}"
    if locked.replicas_needed != now.replicas_needed:
        yield f"replicas {_said(locked.replicas_needed)} → {_said(now.replicas_needed)}"
    if locked.weights_bytes != now.weights_bytes:
        yield f"weights {_bytes(locked.weights_bytes, now.weights_bytes)} a GPU"
    if locked.kv_bytes_per_request != now.kv_bytes_per_request:
        yield f"a request {_bytes(locked.kv_bytes_per_request, now.kv_bytes_per_request)} a GPU"


def _alike(old: float | None, new: float | None) -> bool:
    """Whether two shares are the same but for what another machine's last digits do."""
    if old is None or new is None:
        return old is new
    return math.isclose(old, new, rel_tol=1e-6, abs_tol=1e-7)


def _share(value: float | None) -> str:
    return "none" if value is None else f"{100 * value:.4g} %"


def _bytes(old: int | None, new: int | None) -> str:
    shown = tuple("nothing" if each is None else format_bytes(each) for each in (old, new))
    # Where both print the same, only the exact figures tell them apart.
    exact = tuple(f"{each:,} B" if each is not None else "nothing" for each in (old, new))
    first, last = shown if shown[0] != shown[1] else exact
    return f"{first} → {last}"


def _counts(old: int | None, new: int | None) -> str:
    if old is None or new is None:
        return f"{_said(old)} → {_said(new)}"
    return f"{old:,} → {new:,} ({new - old:+,})"


def _short(text: str | None) -> str | None:
    return text[:_SHORT_HASH] if text else text


def _said(value: Any) -> str:
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
