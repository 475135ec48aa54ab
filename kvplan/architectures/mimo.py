"""MiMo 7B and MiMo V2 (windows, sinks, keys wider than values)."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import Weights, attention, gated_mlp, layer_norms, vector
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, MAX_POSITIONS, Fields
from kvplan.architectures.layers import (
    FULL,
    SLIDING,
    mixed_layers,
    read_layer_types,
    read_window,
    typed_layers,
)
from kvplan.architectures.mtp import mtp_weights, read_modules
from kvplan.architectures.shapes import DecoderShape, checked, read_shape
from kvplan.architectures.sparse import Sparse, dense_and_sparse, listed_sparse

_DRAFT_NORMS = ("token_layernorm", "hidden_layernorm", "final_layernorm")


def mimo(fields: Fields) -> Anatomy:
    """MiMo 7B: Qwen 2 with a draft module that has no copy of embedding and head."""
    shape = read_shape(fields)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", default=True)
    body = (
        attention(shape, qkv_bias=bias)
        + gated_mlp(shape.hidden, intermediate, layers=shape.every)
        + layer_norms(shape)
    )
    drafts = mtp_weights(
        shape,
        body,
        read_modules(fields, shape),
        own_ends=False,
        norms=_DRAFT_NORMS,
        projection="input_proj",
    )
    window = read_window(fields) if fields.flag("use_sliding_window", default=False) else None
    return decoder(
        shape,
        body + drafts,
        layers=typed_layers(fields, shape, _later_types(fields, shape, window), window=window),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )


def mimo_v2(fields: Fields) -> Anatomy:
    """MiMo V2: windowed layers have KV heads and sinks of their own; values are narrower."""
    full = _full_shape(fields)
    sliding = _sliding_shape(fields, full)
    types = _types(fields, full.layers)
    sparse = _sparse(fields, full)
    value = fields.integer("v_head_dim", default=128)
    return decoder(
        full,
        _attention(fields, full, sliding, types, value)
        + dense_and_sparse(full, sparse)
        + layer_norms(full)
        + _drafts(fields, sliding, value, sparse.dense_width),
        layers=mixed_layers(
            fields,
            types,
            full=full,
            sliding=sliding,
            window=fields.optional_integer(
                "sliding_window_size", "sliding_window", default=129, most=MAX_POSITIONS
            ),
            value_dim=value,
        ),
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )


def _drafts(fields: Fields, sliding: DecoderShape, value: int, width: int) -> Weights:
    """Modules with windowed attention and a dense feed-forward.

    vLLM v0.33.0 vllm/model_executor/models/mimo_v2_mtp.py, where embedding and head are shared.
    """
    last = (sliding.layers - 1,)
    types = (SLIDING,) * sliding.layers
    body = (
        _attention(fields, sliding, sliding, types, value)
        + gated_mlp(sliding.hidden, width, layers=last)
        + layer_norms(sliding, ("input_layernorm", "pre_mlp_layernorm"))
    )
    return mtp_weights(
        sliding,
        body,
        read_modules(fields, sliding),
        own_ends=False,
        norms=("enorm", "hnorm", "final_layernorm"),
    )


def _later_types(fields: Fields, shape: DecoderShape, window: int | None) -> tuple[str, ...]:
    stated = read_layer_types(fields, shape.layers)
    if stated is not None:
        return stated
    if window is None:
        return (FULL,) * shape.layers
    first = fields.integer("max_window_layers", default=28, least=0)
    return tuple(SLIDING if layer >= first else FULL for layer in shape.every)


def _full_shape(fields: Fields) -> DecoderShape:
    return read_shape(fields, kv_heads=4, head_dim=192)


def _sliding_shape(fields: Fields, full: DecoderShape) -> DecoderShape:
    """Files of remote code state these heads; transformers' class doubles the KV heads."""
    update = {
        "heads": fields.integer("swa_num_attention_heads", default=full.heads),
        "kv_heads": fields.integer("swa_num_key_value_heads", default=2 * full.kv_heads),
        "head_dim": fields.integer("swa_head_dim", default=full.head_dim),
    }
    value = fields.optional_integer("swa_v_head_dim")
    if value is not None and value != fields.integer("v_head_dim", default=128):
        raise fields.conflict("`swa_v_head_dim` and `v_head_dim` differ, which no class allows.")
    return checked(fields, full.model_copy(update=update))


def _types(fields: Fields, layers: int) -> tuple[str, ...]:
    stated = read_layer_types(fields, layers)
    if stated is not None:
        return stated
    pattern = fields.integers("hybrid_layer_pattern", least=0, most=1)
    if pattern is None:
        return tuple(
            FULL if layer == 0 or (layer + 1) % 6 == 0 else SLIDING  # the class's own pattern
            for layer in range(layers)
        )
    if len(pattern) != layers:
        raise fields.conflict(f"`hybrid_layer_pattern` lists {len(pattern)} layers of {layers}.")
    return tuple(SLIDING if windowed else FULL for windowed in pattern)


def _attention(
    fields: Fields,
    full: DecoderShape,
    sliding: DecoderShape,
    types: tuple[str, ...],
    value: int,
) -> Weights:
    bias = fields.flag("attention_bias", default=False)
    weights: Weights = ()
    for shape, kind, name in (
        (full, FULL, "add_full_attention_sink_bias"),
        (sliding, SLIDING, "add_swa_attention_sink_bias"),
    ):
        layers = tuple(layer for layer in full.every if types[layer] == kind)
        weights += attention(shape, qkv_bias=bias, layers=layers, value_dim=value)
        if fields.flag(name, default=kind == SLIDING):
            weights += vector(
                "self_attn.attention_sink_bias",
                shape.heads,
                component="attention",
                layers=layers,
                sharding="column",
            )
    return weights


def _sparse(fields: Fields, shape: DecoderShape) -> Sparse:
    layers = listed_sparse(fields, shape)
    if layers is None:
        layers = _by_frequency(fields, shape)
    count = fields.integer("n_routed_experts", "num_local_experts", default=256, most=MAX_EXPERTS)
    width = fields.integer("moe_intermediate_size", default=2048)
    shared = fields.optional_integer("n_shared_experts", least=0, most=MAX_EXPERTS) or 0
    return Sparse(
        dense_layers=tuple(sorted(set(shape.every) - set(layers))),
        sparse_layers=layers,
        dense_width=fields.integer("intermediate_size"),
        experts=count,
        active=fields.integer("num_experts_per_tok", default=8, most=count),
        expert_width=width,
        shared_width=width * shared,
    )


def _by_frequency(fields: Fields, shape: DecoderShape) -> tuple[int, ...]:
    if not isinstance(fields.raw("moe_layer_freq"), list):
        return shape.every[1:]
    stated = fields.integers("moe_layer_freq", least=0, most=MAX_LAYERS) or ()
    if len(stated) != shape.layers:
        raise fields.conflict(f"`moe_layer_freq` lists {len(stated)} layers of {shape.layers}.")
    return tuple(layer for layer in shape.every if stated[layer])
