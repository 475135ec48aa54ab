"""Latent attention and many experts: DeepSeek V2 and V3, Kimi K2, GLM 4.7 Flash."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import Weights, layer_norms, linear, norm
from kvplan.architectures.deepseek_moe import deepseek
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.mtp import mtp_weights, read_modules
from kvplan.architectures.shapes import DecoderShape
from kvplan.architectures.sparse import dense_and_sparse, read_sparse
from kvplan.models.caches import LatentCache
from kvplan.models.spec import Layer

_V2: Mapping[str, int] = MappingProxyType(
    {
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "n_routed_experts": 64,
        "n_shared_experts": 2,
        "moe_intermediate_size": 1407,
        "first_k_dense_replace": 0,
    }
)
_V3: Mapping[str, int] = MappingProxyType(
    {
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "moe_intermediate_size": 2048,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
    }
)
_GLM_LITE: Mapping[str, int] = MappingProxyType(
    {
        "q_lora_rank": 768,
        "qk_nope_head_dim": 192,
        "v_head_dim": 256,
        "n_routed_experts": 64,
        "n_shared_experts": 1,
        "moe_intermediate_size": 1536,
        "num_experts_per_tok": 4,
        "first_k_dense_replace": 1,
    }
)


class Latent(BaseModel):
    """Sizes of latent attention (MLA).

    Attributes:
        query_rank: Rank of the compressed query, or None (queries are projected at once).
        latent: Rank of the compressed keys and values.
        rope, nope: Elements of a head's query and key with and without rotary positions.
        value: Elements of a head's value.
        bias: Whether the projections from and to the residual stream have a bias.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    query_rank: int | None
    latent: int
    rope: int
    nope: int
    value: int
    bias: bool


def deepseek_v2(fields: Fields) -> Anatomy:
    """DeepSeek V2, V2 Lite, V2.5 and Coder V2; the small VL2 models turn latent attention off."""
    if fields.raw("use_mla") is False:
        return deepseek(fields)
    return _deepseek(fields, _V2, mlp_bias=fields.flag("mlp_bias", default=False))


def deepseek_v3(fields: Fields) -> Anatomy:
    """DeepSeek V3, V3.1, R1 and Kimi K2."""
    return _deepseek(fields, _V3, mlp_bias=False)


def glm4_moe_lite(fields: Fields) -> Anatomy:
    """GLM 4.7 Flash."""
    return _deepseek(fields, _GLM_LITE, mlp_bias=False)


def read_latent(fields: Fields, defaults: Mapping[str, int]) -> Latent:
    """The sizes; ranks of the cached vector are the same by default in all these classes."""
    return Latent(
        query_rank=fields.optional_integer("q_lora_rank", default=defaults["q_lora_rank"]),
        latent=fields.integer("kv_lora_rank", default=512),
        rope=fields.integer("qk_rope_head_dim", default=64),
        nope=fields.integer("qk_nope_head_dim", default=defaults["qk_nope_head_dim"]),
        value=fields.integer("v_head_dim", default=defaults["v_head_dim"]),
        bias=fields.flag("attention_bias", default=False),
    )


def latent_attention(shape: DecoderShape, latent: Latent) -> Weights:
    """The projections: those into the latent are on every rank, those out of it split by heads."""
    head_dim = latent.rope + latent.nope
    narrow = latent.latent + latent.rope
    weights = _queries(shape, latent, head_dim)
    weights += _down("self_attn.kv_a_proj_with_mqa", narrow, shape, bias=latent.bias)
    weights += norm(
        "self_attn.kv_a_layernorm", latent.latent, layers=shape.every, component="attention"
    )
    weights += _up(
        "self_attn.kv_b_proj", shape.heads * (latent.nope + latent.value), latent.latent, shape
    )
    return weights + linear(
        "self_attn.o_proj",
        (shape.hidden, shape.heads * latent.value),
        component="attention",
        sharding="row",
        layers=shape.every,
        bias=latent.bias,
    )


def latent_shape(fields: Fields, latent: Latent) -> DecoderShape:
    """The decoder's sizes under latent attention."""
    # Every head has keys and values of its own once they are unpacked; none are cached.
    heads = fields.integer("num_attention_heads")
    return DecoderShape(
        layers=fields.integer("num_hidden_layers", most=MAX_LAYERS),
        hidden=fields.integer("hidden_size"),
        heads=heads,
        kv_heads=heads,
        head_dim=latent.rope + latent.nope,
        vocab=fields.integer("vocab_size"),
    )


def _deepseek(fields: Fields, defaults: Mapping[str, int], *, mlp_bias: bool) -> Anatomy:
    latent = read_latent(fields, defaults)
    shape = latent_shape(fields, latent)
    sparse = read_sparse(fields, shape, defaults)
    body = latent_attention(shape, latent)
    body += dense_and_sparse(shape, sparse, bias=mlp_bias) + layer_norms(shape)
    cache = LatentCache(latent_dim=latent.latent, rope_dim=latent.rope)
    return decoder(
        shape,
        body + mtp_weights(shape, body, read_modules(fields, shape)),
        layers=(Layer(caches=(cache,)),) * shape.layers,
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=sparse.experts,
        experts_per_token=sparse.active,
    )


def _queries(shape: DecoderShape, latent: Latent, head_dim: int) -> Weights:
    width = shape.heads * head_dim
    if latent.query_rank is None:
        return _up("self_attn.q_proj", width, shape.hidden, shape)
    return (
        _down("self_attn.q_a_proj", latent.query_rank, shape, bias=latent.bias)
        + norm(
            "self_attn.q_a_layernorm",
            latent.query_rank,
            layers=shape.every,
            component="attention",
        )
        + _up("self_attn.q_b_proj", width, latent.query_rank, shape)
    )


def _down(name: str, rank: int, shape: DecoderShape, *, bias: bool) -> Weights:
    return linear(
        name,
        (rank, shape.hidden),
        component="attention",
        sharding="replicated",
        layers=shape.every,
        bias=bias,
    )


def _up(name: str, width: int, rank: int, shape: DecoderShape) -> Weights:
    return linear(name, (width, rank), component="attention", sharding="column", layers=shape.every)
