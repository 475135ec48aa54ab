"""What a policy that drops entries would make of one request of a plan, as sentences."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.models.formats import plain_kv
from kvplan.models.spec import ModelSpec
from kvplan.plan import Plan, Reason
from kvplan.planning.policy import RECALL, Policy, not_in, request_bytes
from kvplan.units import format_bytes


def policy_notes(plan: Plan, model: ModelSpec, policy: Policy, context: int) -> Iterator[Reason]:
    """The figure, whether the engine has the policy, and what it costs.

    Args:
        plan: Without the policy; its figures stay as they are.
        model: What it is of.
        policy: What is dropped.
        context: Tokens of a request; for transformers a prompt, beside which ``decode_steps``
            are generated.
    """
    missing = not_in(plan.engine.name, policy)
    if missing is not None:
        yield Reason(
            code="kv_policy_not_implemented",
            message=missing,
            hint="Leave out --kv-policy, or use an engine that has it.",
        )
    if plan.kv is not None and plan.kv.bytes_per_request:
        made = plan.engine.options.get("decode_steps")
        kept, share = kept_of(model, policy, context, made if isinstance(made, int) else 0)
        whole, left = plan.kv.bytes_per_request, round(plan.kv.bytes_per_request * share)
        yield Reason(
            code="kv_policy",
            message=f"{policy.text} would leave {kept:,} entries in each layer that keeps every "
            f"token: about {format_bytes(left)} of {format_bytes(whole)} a request on one GPU, "
            "once the prompt is computed. Until then the peak is no lower.",
        )
    yield Reason(code="kv_policy_trades_recall", message=RECALL)


def kept_of(model: ModelSpec, policy: Policy, prompt: int, made: int) -> tuple[int, float]:
    """Entries that remain of a request, and the share of its bytes over all layers."""
    kv, size = plain_kv(model.dtype), (prompt, made)
    whole = sum(
        cache.request_bytes(prompt + made, kv, model.dtype, tp=1)
        for layer in model.layers
        for cache in layer.caches
    )
    left = request_bytes(model, policy.rule, size, kv)
    return policy.rule.kept(prompt, made), left / whole if whole else 1.0
