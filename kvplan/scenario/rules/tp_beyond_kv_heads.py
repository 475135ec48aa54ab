"""KV107: more tensor parallel ranks than KV heads, so that ranks hold copies."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.models.caches import ChunkedCache, FullCache, LatentCache, WindowCache
from kvplan.models.spec import ModelSpec
from kvplan.scenario.rules.base import Hit, Rule, Shown


def _check(shown: Shown) -> Iterator[Hit]:
    plan, model = shown.plan, shown.model
    if plan is None or model is None:
        return
    # Decode context parallelism splits what tensor parallelism would copy.
    tp, heads = plan.parallelism.tp // plan.parallelism.dcp, _fewest_heads(model)
    if heads is None or tp <= heads:
        return
    yield Hit(
        f"Tensor parallel size {plan.parallelism.tp} is more than the model's {heads} KV"
        f" head{'' if heads == 1 else 's'}: each token is held {tp // heads} times.",
        f"Write tp: {heads} with dp: {max(1, plan.parallelism.tp // heads)}, or"
        f" dcp: {max(1, plan.parallelism.tp // heads)} where the engine has it.",
        ("tp",),
    )


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
