"""The text part of Llama 4."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import Weights, attention, experts, gated_mlp, layer_norms, router
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, MAX_POSITIONS, Fields
from kvplan.architectures.layers import FULL, same_layers
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.errors import NotModelledError
from kvplan.models.caches import ChunkedCache
from kvplan.models.spec import Layer

CHUNKED = "chunked_attention"

_DENSE = tuple(f"feed_forward.{part}_proj" for part in ("gate", "up", "down"))
_SHARED = tuple(f"feed_forward.shared_expert.{part}_proj" for part in ("gate", "up", "down"))
# One tensor holds all experts of a layer, gate and up side by side.
_ROUTED = ("feed_forward.experts.gate_up_proj", "feed_forward.experts.down_proj")
# Nested files keep only what differs from the class.
_DEFAULTS: Mapping[str, int] = MappingProxyType(
    {
        "vocab_size": 202_048,
        "hidden_size": 5120,
        "num_hidden_layers": 48,
        "num_attention_heads": 40,
    }
)


def llama4_text(fields: Fields) -> Anatomy:
    """Llama 4 Scout and Maverick: chunked layers, every fourth full; experts in all or some."""
    shape = read_shape(fields, kv_heads=8, head_dim=128, defaults=_DEFAULTS)
    sparse = _sparse_layers(fields, shape)
    dense = tuple(sorted(set(shape.every) - set(sparse)))
    width = fields.integer("intermediate_size", default=8192)
    dense_width = fields.integer("intermediate_size_mlp", default=16_384)
    count = fields.integer("num_local_experts", default=16, most=MAX_EXPERTS)
    active = fields.integer("num_experts_per_tok", default=1, most=count)
    bias = fields.flag("attention_bias", default=False)
    body: Weights = (
        attention(shape, qkv_bias=bias, out_bias=bias)
        + gated_mlp(shape.hidden, dense_width, layers=dense, names=_DENSE)
        + gated_mlp(shape.hidden, width, layers=sparse, names=_SHARED, component="shared_experts")
        + experts(shape.hidden, width, count=count, active=active, layers=sparse, names=_ROUTED)
        + router(shape.hidden, count, layers=sparse, name="feed_forward.router")
        + layer_norms(shape)
    )
    return decoder(
        shape,
        body,
        layers=_layers(fields, shape),
        intermediate=max(width if sparse else 0, dense_width if dense else 0),
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=count,
        experts_per_token=active,
    )


def _layers(fields: Fields, shape: DecoderShape) -> tuple[Layer, ...]:
    full = same_layers(shape, window=None)
    chunk = fields.optional_integer("attention_chunk_size", default=8192, most=MAX_POSITIONS)
    if chunk is None:
        return full
    cache = ChunkedCache(
        kv_heads=shape.kv_heads, head_dim=shape.head_dim, head_dim_v=shape.head_dim, chunk=chunk
    )
    chunked = Layer(caches=(cache,))
    return tuple(
        chunked if kind == CHUNKED else full[layer]
        for layer, kind in enumerate(_types(fields, shape.layers))
    )


def _types(fields: Fields, layers: int) -> tuple[str, ...]:
    stated = fields.texts("layer_types", most=MAX_LAYERS)
    if stated is None:
        return tuple(CHUNKED if rotary else FULL for rotary in _rotary(fields, layers))
    if len(stated) != layers:
        raise fields.conflict(f"`layer_types` lists {len(stated)} layers of {layers}.")
    for kind in stated:
        if kind not in (CHUNKED, FULL):
            raise NotModelledError(
                f"Layers of type {kind[:40]!r} are not modelled for this family.",
                hint=f"Known are {CHUNKED} and {FULL}.",
            )
    return stated


def _rotary(fields: Fields, layers: int) -> tuple[int, ...]:
    """1 for layers with rotary positions, which are the chunked ones. An empty list means none."""
    stated = fields.integers("no_rope_layers", least=0, most=1)
    if not stated:
        interval = fields.integer("no_rope_layer_interval", default=4, most=MAX_LAYERS)
        return tuple(int((layer + 1) % interval != 0) for layer in range(layers))
    if len(stated) < layers:
        raise fields.conflict(f"`no_rope_layers` lists {len(stated)} layers of {layers}.")
    return stated[:layers]


def _sparse_layers(fields: Fields, shape: DecoderShape) -> tuple[int, ...]:
    stated = fields.integers("moe_layers", least=0, most=MAX_LAYERS)
    if stated is not None:
        return tuple(layer for layer in shape.every if layer in set(stated))
    step = fields.integer("interleave_moe_layer_step", default=1, most=MAX_LAYERS)
    return shape.every[step - 1 :: step]
