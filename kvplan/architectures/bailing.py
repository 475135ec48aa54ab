"""Bailing: Ling and Ring 1, 2, 2.5 and 3; grouped-query, lightning, KDA and latent attention."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, attention, layer_norms, linear, qk_norms
from kvplan.architectures.deepseek import Latent, latent_attention, latent_shape
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.kda import Kda, kda_cache, kda_mixer
from kvplan.architectures.layers import same_layers
from kvplan.architectures.lightning import lightning_cache
from kvplan.architectures.mtp import mtp_weights, read_modules
from kvplan.architectures.recurrent import per_channel, placed, read_taps, where
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.architectures.sparse import Sparse, dense_and_sparse
from kvplan.errors import NotModelledError
from kvplan.models.caches import LatentCache, RecurrentCache
from kvplan.models.spec import Layer

_ENDS = Ends(embed="word_embeddings")
_NORMS = ("attention.query_layernorm", "attention.key_layernorm")
_LINEAR, _FULL = "linear", "full"


class _Linear(BaseModel):
    """The linear layers of a hybrid: their weights in every layer, and their cache."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    weights: Weights
    cache: RecurrentCache


def bailing_moe(fields: Fields) -> Anatomy:
    """Ling and Ring 1 and 2: grouped-query attention throughout."""
    shape = read_shape(fields)
    bias = fields.flag("use_bias", default=False)
    qkv_bias = bias or fields.flag("use_qkv_bias", default=False)
    names = ("attention.query_key_value", "attention.dense")
    body = attention(shape, qkv=names[0], out=names[1], qkv_bias=qkv_bias, out_bias=bias)
    if fields.flag("use_qk_norm", default=False):
        body += qk_norms(shape, (shape.head_dim, shape.head_dim), names=_NORMS)
    sparse = _read_sparse(fields, shape)
    body += dense_and_sparse(shape, sparse, bias=bias) + layer_norms(shape)
    return _decoder(fields, shape, body, same_layers(shape, window=None), sparse)


def bailing_hybrid(fields: Fields) -> Anatomy:
    """Ling and Ring 2.5 (lightning) and 3 (KDA): the last layer of each group is latent."""
    latent = _latent(fields)
    shape = latent_shape(fields, latent)
    kinds = _kinds(fields, shape.layers)
    lightning = "BailingMoeV2_5ForCausalLM" in (fields.texts("architectures", most=100) or ())
    mixer = _lightning(fields, shape) if lightning else _kda(fields, shape)
    sparse = _read_sparse(fields, shape)
    body = placed(mixer.weights, where(kinds, _LINEAR))
    body += placed(_attention(fields, shape, latent), where(kinds, _FULL))
    body += dense_and_sparse(shape, sparse) + layer_norms(shape)
    layer = {
        _LINEAR: Layer(caches=(mixer.cache,)),
        _FULL: Layer(caches=(LatentCache(latent_dim=latent.latent, rope_dim=latent.rope),)),
    }
    return _decoder(fields, shape, body, tuple(layer[kind] for kind in kinds), sparse)


def _decoder(
    fields: Fields,
    shape: DecoderShape,
    body: Weights,
    layers: tuple[Layer, ...],
    sparse: Sparse,
) -> Anatomy:
    modules = read_modules(fields, shape)
    return decoder(
        shape,
        # vLLM v0.33.0 vllm/model_executor/models/bailing_moe_mtp.py: the decoder's own ends.
        body + mtp_weights(shape, body, modules, own_ends=False),
        layers=layers,
        intermediate=sparse.widest,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=_ENDS,
        experts=sparse.experts if sparse.sparse_layers else 0,
        experts_per_token=sparse.active if sparse.sparse_layers else 0,
    )


def _read_sparse(fields: Fields, shape: DecoderShape) -> Sparse:
    first = fields.integer("first_k_dense_replace", default=0, least=0, most=MAX_LAYERS)
    count = fields.integer("num_experts", most=MAX_EXPERTS)
    width = fields.integer("moe_intermediate_size")
    shared = fields.integer("num_shared_experts", default=0, least=0, most=MAX_EXPERTS)
    return Sparse(
        dense_layers=shape.every[:first],
        sparse_layers=shape.every[first:],
        dense_width=fields.integer("intermediate_size"),
        experts=count,
        active=fields.integer("num_experts_per_tok", most=count),
        expert_width=width,
        shared_width=shared * fields.integer("moe_shared_expert_intermediate_size", default=width),
    )


def _kinds(fields: Fields, layers: int) -> tuple[str, ...]:
    """A group that the layers don't fill is all latent attention."""
    group = fields.integer("layer_group_size", default=1, most=MAX_LAYERS)
    grouped = layers // group * group
    return tuple(
        _FULL if (index + 1) % group == 0 or index >= grouped else _LINEAR
        for index in range(layers)
    )


def _latent(fields: Fields) -> Latent:
    return Latent(
        query_rank=fields.optional_integer("q_lora_rank"),
        latent=fields.integer("kv_lora_rank", default=512),
        rope=fields.integer("qk_rope_head_dim", default=64),
        nope=fields.integer("qk_nope_head_dim", default=128),
        value=fields.integer("v_head_dim", default=128),
        bias=fields.flag("use_qkv_bias", default=False),
    )


def _attention(fields: Fields, shape: DecoderShape, latent: Latent) -> Weights:
    weights = tuple(
        weight.model_copy(update={"name": _renamed(weight.name)})
        for weight in latent_attention(shape, latent)
    )
    gate = fields.optional_text("gated_attention_proj_granularity_type")
    rows = {"head_wise": shape.heads, "element_wise": shape.heads * latent.value}.get(gate or "")
    if rows is None:
        return weights
    return weights + _projection("g_proj", rows, shape)


def _renamed(name: str) -> str:
    return name.replace("self_attn.o_proj", "attention.dense").replace("self_attn.", "attention.")


def _projection(name: str, rows: int, shape: DecoderShape) -> Weights:
    return linear(
        f"attention.{name}",
        (rows, shape.hidden),
        component="attention",
        sharding="column",
        layers=shape.every,
    )


def _kda(fields: Fields, shape: DecoderShape) -> _Linear:
    """Sharding: vLLM v0.33.0 vllm/model_executor/models/bailing_moe_v3.py."""
    if not fields.flag("no_kda_lora", default=True):
        raise NotModelledError(
            "Ling 3 with gates in two steps (`no_kda_lora: false`) is not modelled.",
            hint="Published files have gates in one step; vLLM refuses the others too.",
        )
    sizes = Kda(
        heads=shape.heads,
        head_dim=fields.integer("head_dim", default=128),
        taps=read_taps(fields, "short_conv_kernel_size", default=4),
        narrow_forget=False,
        narrow_gate=False,
    )
    weights = kda_mixer("attention", sizes, shape.hidden, shape.every)
    return _Linear(weights=weights, cache=kda_cache(sizes))


def _lightning(fields: Fields, shape: DecoderShape) -> _Linear:
    """Sharding: vLLM v0.33.0 vllm/model_executor/layers/mamba/linear/bailing_linear_attn.py."""
    head_dim = fields.integer("head_dim", default=128)
    heads = shape.model_copy(update={"kv_heads": shape.heads, "head_dim": head_dim})
    bias = fields.flag("use_bias", default=False)
    qkv_bias = bias or fields.flag("use_qkv_bias", default=False)
    names = ("attention.query_key_value", "attention.dense")
    plain = attention(heads, qkv=names[0], out=names[1], qkv_bias=qkv_bias, out_bias=bias)
    plain += _projection("g_proj", shape.heads * head_dim, shape)
    if fields.flag("use_qk_norm", default=False):
        plain += qk_norms(heads, (head_dim, head_dim), names=_NORMS)
    weights = tuple(weight.model_copy(update={"component": "recurrent"}) for weight in plain)
    weights += per_channel(("attention.g_norm.weight",), shape.heads * head_dim, shape.every)
    return _Linear(weights=weights, cache=lightning_cache(shape.heads, head_dim))
