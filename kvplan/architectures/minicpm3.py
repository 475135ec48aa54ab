"""MiniCPM 3: latent attention before a dense feed-forward."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import gated_mlp, layer_norms
from kvplan.architectures.deepseek import Latent, latent_attention, latent_shape
from kvplan.architectures.fields import Fields
from kvplan.architectures.shapes import split_evenly
from kvplan.models.caches import FullCache, LatentCache
from kvplan.models.spec import Layer

# The class defaults are the 4B model's own sizes, and its file leaves several out.
_DEFAULTS: Mapping[str, int] = MappingProxyType(
    {
        "hidden_size": 2560,
        "intermediate_size": 6400,
        "num_hidden_layers": 62,
        "num_attention_heads": 40,
        "vocab_size": 73_448,
    }
)


def minicpm3(fields: Fields) -> Anatomy:
    """MiniCPM 3 4B. Defaults: MiniCPM3Config."""
    fields = fields.completed(_DEFAULTS)
    latent = _latent(fields)
    shape = latent_shape(fields, latent)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("mlp_bias", default=False)
    head_dim = latent.nope + latent.rope
    cache = LatentCache(
        latent_dim=latent.latent,
        rope_dim=latent.rope,
        # Values are padded to the size of keys: vLLM v0.33.0
        # vllm/model_executor/models/minicpm3.py.
        unpacked=FullCache(kv_heads=shape.heads, head_dim=head_dim, head_dim_v=head_dim),
    )
    return decoder(
        shape,
        latent_attention(shape, latent)
        + gated_mlp(shape.hidden, intermediate, layers=shape.every, bias=bias)
        + layer_norms(shape),
        layers=(Layer(caches=(cache,)),) * shape.layers,
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=True),
    )


def _latent(fields: Fields) -> Latent:
    heads, hidden = fields.integer("num_attention_heads"), fields.integer("hidden_size")
    value = fields.optional_integer("v_head_dim")
    if value is None:
        value = split_evenly(fields, hidden, heads)
        fields.fill("v_head_dim", value)
    return Latent(
        query_rank=fields.optional_integer("q_lora_rank", default=768),
        latent=fields.integer("kv_lora_rank", default=256),
        rope=fields.integer("qk_rope_head_dim", default=32),
        nope=fields.integer("qk_nope_head_dim", default=64),
        value=value,
        bias=fields.flag("attention_bias", default=False),
    )
