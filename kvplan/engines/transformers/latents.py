"""The keys and values that a latent expands to, where a release caches those instead."""

from __future__ import annotations

from kvplan.errors import NotModelledError
from kvplan.models.caches import LatentCache
from kvplan.models.spec import ModelSpec

_UP = "self_attn.kv_b_proj.weight"
_QUERIES = ("self_attn.q_b_proj.weight", "self_attn.q_proj.weight")


def expanded(model: ModelSpec, cache: LatentCache) -> tuple[int, int, int]:
    """Heads, and elements of a head's key and value.

    A query has as many elements as a key; the up-projection makes a key's part without
    positions and a value. Source: transformers 4.57.6, DeepseekV3Attention.forward.

    Raises:
        NotModelledError: the weights do not show the sizes.
    """
    if cache.unpacked is not None:
        known = cache.unpacked
        return known.kv_heads, known.head_dim, known.head_dim_v
    heads = model.attention_heads
    rows = {weight.name: weight.shape[0] for weight in model.weights if weight.elements is None}
    query = next((rows[name] for name in _QUERIES if name in rows), None)
    up = rows.get(_UP)
    if query is None or up is None or not heads or query % heads or up % heads:
        raise NotModelledError(
            f"The weights of {model.id} do not show how wide its keys and values are, which this "
            "release of transformers caches in place of latents.",
            hint="Plan for 5.15 or later, or for the unquantized model.",
        )
    key = query // heads
    return heads, key, up // heads - (key - cache.rope_dim)
