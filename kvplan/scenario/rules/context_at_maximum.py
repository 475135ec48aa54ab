"""KV104: room kept for requests that hardly ever come."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.scenario.rules.base import Hit, Rule, Shown

# The 99th percentile of lengths is at most this share of what is planned for.
_TENTH = 10


def _check(shown: Shown) -> Iterator[Hit]:
    p99, plan, model = _p99(shown), shown.plan, shown.model
    if p99 is None or plan is None or model is None or model.max_context is None:
        return
    context = plan.workload.context
    if context is None or context < model.max_context or p99 * _TENTH > context:
        return
    yield Hit(
        f"Every request may have {context:,} tokens, the model's maximum, while 99 % of them stay"
        f" below {p99:,}: capacity is judged by requests that hardly ever come.",
        f"Write context: {_rounded(p99)} or a little more, and let the engine refuse longer ones.",
        ("context",),
    )


def _p99(shown: Shown) -> int | None:
    """As stated, else that of the lengths or the trace."""
    stated = shown.question.workload.tokens_p99
    if stated is not None or shown.traffic is None:
        return stated
    return shown.traffic.plan.total.p99


def _rounded(tokens: int) -> int:
    """The next power of two, at least."""
    return 1 << max(0, tokens - 1).bit_length()


RULE = Rule(
    "KV104",
    "context-at-maximum",
    "warning",
    "The context is the model's maximum while traffic's p99 is a tenth of it.",
    _check,
)
