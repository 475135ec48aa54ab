"""Kimi Linear and the text part of Kimi K3: KDA layers, and latent attention every fourth."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import (
    Weights,
    experts,
    gated_mlp,
    layer_norms,
    linear,
    norm,
    router,
)
from kvplan.architectures.deepseek import Latent, latent_attention, latent_shape
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.kda import Kda, kda_cache, kda_mixer
from kvplan.architectures.recurrent import placed, read_kinds, read_taps, where
from kvplan.architectures.shapes import DecoderShape
from kvplan.models.caches import LatentCache
from kvplan.models.spec import Layer

_LINEAR, _FULL = "linear_attention", "full_attention"
_KINDS = {_LINEAR: _LINEAR, _FULL: _FULL}
_MOE = "block_sparse_moe"
_EXPERTS = tuple(f"{_MOE}.experts.{part}" for part in ("w1", "w3", "w2"))
_SHARED = tuple(f"{_MOE}.shared_experts.{part}_proj" for part in ("gate", "up", "down"))


class Moe(BaseModel):
    """Sizes of the expert layers.

    Attributes:
        layers: The layers that have experts; the others are dense.
        experts, active: Routed experts of a layer, and how many a token goes through.
        width: Feed-forward of one routed expert.
        shared: Of all shared experts together; 0 if there are none.
        latent: What the routed experts read and write, or None: the hidden state itself.
        normed: Whether what they write is normalized.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    layers: tuple[int, ...]
    experts: int
    active: int
    width: int
    shared: int
    latent: int | None
    normed: bool


def kimi_linear(fields: Fields) -> Anatomy:
    """Layers are counted from 1 in the file's lists."""
    latent = _latent(fields)
    shape = latent_shape(fields, latent)
    linear_config = fields.section("linear_attn_config")
    kinds = _kinds(fields, linear_config, shape.layers)
    sizes = _kda(linear_config or fields)
    moe = _moe(fields, shape)
    width = fields.integer("intermediate_size", default=9216)
    body = kda_mixer("self_attn", sizes, shape.hidden, where(kinds, _LINEAR))
    body += placed(_attention(fields, shape, latent), where(kinds, _FULL))
    body += _feed_forwards(shape, moe, width) + layer_norms(shape) + _residuals(fields, shape)
    layer = {
        _LINEAR: Layer(caches=(kda_cache(sizes),)),
        _FULL: Layer(caches=(LatentCache(latent_dim=latent.latent, rope_dim=latent.rope),)),
    }
    return decoder(
        shape,
        body,
        layers=tuple(layer[kind] for kind in kinds),
        intermediate=max(width, moe.width) if moe.layers else width,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=moe.experts if moe.layers else 0,
        experts_per_token=moe.active if moe.layers else 0,
    )


def _kinds(fields: Fields, stated: Fields | None, layers: int) -> tuple[str, ...]:
    types = read_kinds(fields, "layer_types", layers, _KINDS)
    if types is not None:
        return types
    if stated is None:
        fields.fill("layer_types", "every fourth full_attention")
        return tuple(_FULL if index and index % 4 == 0 else _LINEAR for index in range(layers))
    linear_layers = _listed(stated, "kda_layers", layers)
    full = _listed(stated, "full_attn_layers", layers)
    if sorted(linear_layers + full) != list(range(1, layers + 1)):
        raise fields.conflict(
            f"`kda_layers` and `full_attn_layers` don't name each of {layers} layers once."
        )
    return tuple(_LINEAR if index + 1 in set(linear_layers) else _FULL for index in range(layers))


def _listed(stated: Fields, name: str, layers: int) -> tuple[int, ...]:
    return stated.integers(name, least=1, most=layers) or ()


def _kda(stated: Fields) -> Kda:
    narrow = not stated.flag("use_full_rank_gate", default=False)
    return Kda(
        heads=stated.integer("num_heads", "linear_num_heads", default=32, most=65_536),
        head_dim=stated.integer("head_dim", "linear_head_dim", default=128),
        taps=read_taps(stated, "short_conv_kernel_size", default=4),
        narrow_forget=True,
        narrow_gate=narrow,
    )


def _latent(fields: Fields) -> Latent:
    return Latent(
        query_rank=fields.optional_integer("q_lora_rank"),
        latent=fields.integer("kv_lora_rank", default=512),
        rope=fields.integer("qk_rope_head_dim", default=64),
        nope=fields.integer("qk_nope_head_dim", default=128),
        value=fields.integer("v_head_dim", default=128),
        bias=fields.flag("attention_bias", default=False),
    )


def _attention(fields: Fields, shape: DecoderShape, latent: Latent) -> Weights:
    weights = latent_attention(shape, latent)
    if fields.flag("mla_use_output_gate", default=False):
        weights += linear(
            "self_attn.g_proj",
            (shape.heads * latent.value, shape.hidden),
            component="attention",
            sharding="column",
            layers=shape.every,
        )
    return weights


def _moe(fields: Fields, shape: DecoderShape) -> Moe:
    first = fields.integer("first_k_dense_replace", default=1, least=0, most=MAX_LAYERS)
    step = fields.integer("moe_layer_freq", default=1, most=MAX_LAYERS)
    count = fields.integer("num_experts", "num_local_experts", default=256, most=MAX_EXPERTS)
    names = ("num_experts_per_token", "num_experts_per_tok")
    shared_names = ("num_shared_experts", "n_shared_experts")
    width = fields.integer("moe_intermediate_size", default=1024)
    return Moe(
        layers=tuple(index for index in shape.every if index >= first and index % step == 0),
        experts=count,
        active=fields.integer(*names, default=8, most=count),
        width=width,
        shared=width * fields.integer(*shared_names, default=1, least=0, most=MAX_EXPERTS),
        latent=fields.optional_integer("routed_expert_hidden_size"),
        normed=fields.flag("latent_moe_use_norm", default=False),
    )


def _feed_forwards(shape: DecoderShape, moe: Moe, width: int) -> Weights:
    hidden, layers = shape.hidden, moe.layers
    dense = tuple(sorted(set(shape.every) - set(layers)))
    weights = gated_mlp(hidden, width, layers=dense) + experts(
        moe.latent or hidden,
        moe.width,
        count=moe.experts,
        active=moe.active,
        layers=layers,
        names=_EXPERTS,
    )
    if moe.shared:
        weights += gated_mlp(
            hidden, moe.shared, layers=layers, names=_SHARED, component="shared_experts"
        )
    weights += router(hidden, moe.experts, layers=layers, name=f"{_MOE}.gate")
    return weights + _into_latent(hidden, moe)


def _into_latent(hidden: int, moe: Moe) -> Weights:
    """Kimi K3's routed experts work on a narrower state; every rank holds the way in and out.

    vLLM v0.33.0 vllm/models/kimi_k3/nvidia/model.py KimiMoE.
    """
    if moe.latent is None:
        return ()
    sizes = {"down": (moe.latent, hidden), "up": (hidden, moe.latent)}
    weights: Weights = ()
    for name, size in sizes.items():
        weights += linear(
            f"{_MOE}.routed_expert_{name}_proj",
            size,
            component="shared_experts",
            sharding="replicated",
            layers=moe.layers,
        )
    if moe.normed:
        weights += norm(f"{_MOE}.routed_expert_norm", moe.latent, layers=moe.layers)
    return weights


def _residuals(fields: Fields, shape: DecoderShape) -> Weights:
    """Kimi K3 attends over earlier residual streams: a query and a normalization a block."""
    if fields.optional_integer("attn_res_block_size") is None:
        return ()
    weights: Weights = ()
    for name in ("self_attention", "mlp"):
        weights += norm(f"{name}_res_norm", shape.hidden, layers=shape.every)
        weights += linear(
            f"{name}_res_proj",
            (1, shape.hidden),
            component="norms",
            sharding="replicated",
            layers=shape.every,
        )
    return (
        weights
        + norm("output_attn_res_norm", shape.hidden, place="head")
        + linear(
            "output_attn_res_proj",
            (1, shape.hidden),
            component="norms",
            sharding="replicated",
            place="head",
        )
    )
