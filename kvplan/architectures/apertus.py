"""Apertus."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, layer_norms, plain_mlp, qk_norms, vector
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import read_shape

# The activation is learned: transformers v5.24.0 src/transformers/activations.py XIELUActivation.
# Its two parameters of each layer are counted with the feed-forward.
_ACTIVATION = ("mlp.act_fn.alpha_n", "mlp.act_fn.alpha_p")


def apertus(fields: Fields) -> Anatomy:
    """Apertus: normalized queries and keys, an ungated feed-forward with a learned activation."""
    shape = read_shape(fields)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", default=False)
    body = (
        attention(shape, qkv_bias=bias, out_bias=bias)
        + qk_norms(shape, (shape.head_dim, shape.head_dim))
        + plain_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.up_proj", "mlp.down_proj"),
            bias=False,
        )
        + layer_norms(shape, ("attention_layernorm", "feedforward_layernorm"))
    )
    for name in _ACTIVATION:
        body += vector(name, 1, component="mlp", layers=shape.every)
    return decoder(
        shape,
        body,
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
    )
