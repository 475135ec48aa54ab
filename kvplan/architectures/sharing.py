"""Layers that read the cache of an earlier layer instead of keeping one."""

from __future__ import annotations

from collections.abc import Sequence

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.models.caches import SharedCache
from kvplan.models.spec import Layer


def read_shared(fields: Fields, layers: int, *, default: int) -> int:
    """How many of the last layers keep nothing (``num_kv_shared_layers``).

    Raises:
        InputError: all of them, or more than there are.
    """
    shared = fields.integer("num_kv_shared_layers", default=default, least=0, most=MAX_LAYERS)
    if shared >= layers:
        raise fields.conflict(f"{shared} of {layers} layers share the cache of an earlier one.")
    return shared


def shared_tail(
    fields: Fields, layers: tuple[Layer, ...], types: Sequence[str], shared: int
) -> tuple[Layer, ...]:
    """The last ``shared`` layers read the last layer of their own type that keeps a cache.

    Raises:
        InputError: there is none of that type.
    """
    first = len(layers) - shared
    last = {kind: layer for layer, kind in enumerate(types[:first])}
    for kind in types[first:]:
        if kind not in last:
            raise fields.conflict(f"The last layers share a {kind} cache, and no layer keeps one.")
    readers = {kind: Layer(caches=(SharedCache(layer=layer),)) for kind, layer in last.items()}
    return layers[:first] + tuple(readers[kind] for kind in types[first:])


def own_keys(weights: Weights, layers: tuple[int, ...]) -> Weights:
    """The same weights, with projections and normalizations of keys and values in ``layers`` only.

    A layer that reads another's cache loads none: vLLM v0.33.0
    vllm/model_executor/models/gemma3n.py Gemma3nAttention.
    """
    return tuple(
        weight.model_copy(update={"layers": tuple(sorted(set(layers) & set(weight.layers)))})
        if weight.sharding == "kv_heads" or weight.name.endswith("k_norm.weight")
        else weight
        for weight in weights
    )
