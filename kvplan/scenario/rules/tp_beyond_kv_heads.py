"""KV107: more tensor parallel ranks than KV heads, so that ranks hold copies."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.models.caches import ChunkedCache, FullCache, LatentCache, WindowCache
from kvplan.models.spec import ModelSpec
from kvplan.plan import Plan
from kvplan.scenario.rules.base import Hit, Rule, Shown


def _check(shown: Shown) -> Iterator[Hit]:
    plan, model = shown.plan, shown.model
    if plan is None or model is None:
        return
    tp, heads = _ranks_of_attention(plan), _fewest_heads(model)
    if heads is None or tp <= heads:
        return
    copies = tp // heads
    yield Hit(
        f"Tensor parallel size {plan.parallelism.tp} is more than the model's {heads} KV"
        f" head{'' if heads == 1 else 's'}: each token is held {copies} times.",
        f"Write dcp: {copies} where the engine has it, or tp: {heads} with dp: {copies}"
        f"{' and expert parallelism' if model.experts else ''} where the weights fit.",
        ("tp",),
    )


def _ranks_of_attention(plan: Plan) -> int:
    """Ranks that share a request's cache: not those that hold a part or other requests."""
    options = plan.engine.options
    # Decode context parallelism splits what tensor parallelism would copy.
    ranks = plan.parallelism.tp // plan.parallelism.dcp
    if options.get("enable_dp_attention"):  # SGLang
        return max(1, ranks // int(options.get("dp_size") or 1))
    return 1 if options.get("enable_attention_dp") else ranks  # TensorRT-LLM


def _fewest_heads(model: ModelSpec) -> int | None:
    """KV heads of the layers that have fewest; a latent cache is one head that is never split."""
    heads = [
        cache.kv_heads
        for cache in model.caches
        if isinstance(cache, FullCache | WindowCache | ChunkedCache)
    ]
    heads += [1 for cache in model.caches if isinstance(cache, LatentCache)]
    return min(heads, default=None)


RULE = Rule(
    "KV107",
    "tp-beyond-kv-heads",
    "warning",
    "Tensor parallelism beyond the KV heads copies the cache.",
    _check,
)
