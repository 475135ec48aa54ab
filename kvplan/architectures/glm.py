"""GLM 4 in transformers' form, GLM Edge, GLM 4 0414 and Z1."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, gated_mlp, layer_norms
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import read_shape

_TWO = ("input_layernorm", "post_attention_layernorm")
_FOUR = (*_TWO, "post_self_attn_layernorm", "post_mlp_layernorm")


def glm(fields: Fields) -> Anatomy:
    """GLM 4 9B and GLM Edge: two KV heads, biases on query, key and value."""
    return _glm(fields, _TWO)


def glm4(fields: Fields) -> Anatomy:
    """GLM 4 0414 and Z1: normalized after attention and feed-forward too."""
    return _glm(fields, _FOUR)


def _glm(fields: Fields, norms: tuple[str, ...]) -> Anatomy:
    shape = read_shape(fields, kv_heads=2, head_dim=128)
    intermediate = fields.integer("intermediate_size")
    return decoder(
        shape,
        attention(shape, qkv_bias=fields.flag("attention_bias", default=True))
        + gated_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.gate_up_proj", "mlp.down_proj"),
        )
        + layer_norms(shape, norms),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )
