"""The ledger of one device: weights, activations, the cache, what a view keeps, what is left."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from kvplan.engines import occupied
from kvplan.engines.transformers.memory import activation, cuda_context
from kvplan.engines.transformers.sizes import held, layer_size
from kvplan.ledger import Draft, LedgerLine

if TYPE_CHECKING:
    from kvplan.engines.transformers.deployment import TransformersDeployment

_CACHES = "transformers 5.24.0, src/transformers/cache_utils.py"


def ledger(
    deployment: TransformersDeployment, stage: int, batch: int, context: int
) -> tuple[LedgerLine, ...]:
    """All lines of a stage; they sum to the device, or to the bytes that were given."""
    pool = _pool(deployment, stage, batch, context)
    if deployment.given is not None:
        return _lines(
            (*pool, _rest("kv_budget", deployment.given[stage], pool, "kv_budget as given"))
        )
    frame = deployment.frame
    parts = (
        *deployment.stages[stage].weights,
        activation(frame, deployment.stages[stage], batch, context),
        *pool,
        cuda_context(),
        *occupied.lines(deployment.used_by_others, "outside"),
    )
    rest = _rest("total_bytes", frame.device.total, parts, "nothing is reserved in advance")
    return _lines((*parts, rest))


def _pool(
    deployment: TransformersDeployment, stage: int, batch: int, context: int
) -> tuple[Draft, ...]:
    cache = _cache(deployment, stage, batch, context)
    views = deployment.peak_storage(stage, batch, context) - cache.value()
    if views <= 0:
        return (cache,)
    behind = Draft(
        "kv_cache_views",
        "pool",
        "storage_bytes - kv_cache",
        {"storage_bytes": views + cache.value(), "kv_cache": cache.value()},
        source=f"{_CACHES} DynamicSlidingWindowLayer: a window's rows are a view of the prompt's",
        confidence="exact",
    )
    return (cache, behind)


def _cache(deployment: TransformersDeployment, stage: int, batch: int, context: int) -> Draft:
    """The tensors, a term for those that are alike."""
    frame = deployment.frame
    layout, moment = frame.layout(context), frame.moment(batch, context)
    inputs: dict[str, int | float] = {"batch": batch}
    terms: list[str] = []
    seen: Counter[str] = Counter()
    for part in deployment.kept(stage):
        seen[part.kind] += 1
        name = part.kind + (f"_{seen[part.kind]}" if seen[part.kind] > 1 else "")
        inputs[f"{name}_layers"] = len(part.layers)
        if part.rows is None:
            inputs[f"{name}_bytes"] = part.state_bytes
            terms.append(f"batch * {name}_layers * {name}_bytes")
        elif layout.scheme is not None:
            inputs[f"{name}_packed_bytes"] = layer_size(part, layout, moment).tensor
            terms.append(f"{name}_layers * {name}_packed_bytes")
        else:
            inputs[f"{name}_tokens"] = held(part.rows, layout.static_len, moment)[0]
            inputs[f"{name}_row_bytes"] = part.rows.elements * layout.element_bytes
            terms.append(f"batch * {name}_layers * {name}_tokens * {name}_row_bytes")
    return Draft(
        "kv_cache",
        "pool",
        " + ".join(terms) or "0 * batch",
        inputs,
        source=f"{_CACHES} {frame.cache}",
        confidence="exact",
    )


def _rest(name: str, whole: int, parts: tuple[Draft, ...], source: str) -> Draft:
    spent = {part.name.replace(".", "_"): part.value() for part in parts}
    return Draft(
        "unused",
        "free",
        " - ".join((name, *spent)),
        {name: whole, **spent},
        source=source,
        confidence="derived",
    )


def _lines(drafts: tuple[Draft, ...]) -> tuple[LedgerLine, ...]:
    return tuple(draft.line() for draft in drafts)
