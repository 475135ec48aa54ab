"""FlexOlmo."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import attention, experts, layer_norms, qk_norms, router
from kvplan.architectures.fields import MAX_EXPERTS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import read_shape

_NORMS = ("post_attention_layernorm", "post_feedforward_layernorm")


def flex_olmo(fields: Fields) -> Anatomy:
    """FlexOlmo: OLMo 2's attention, whole models as experts, normalized afterwards."""
    shape = read_shape(fields)
    width = fields.integer("intermediate_size")
    count = fields.integer("num_experts", "num_local_experts", default=7, most=MAX_EXPERTS)
    active = fields.integer("num_experts_per_tok", default=5, most=count)
    bias = fields.flag("attention_bias", default=False)
    sizes = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim)
    return decoder(
        shape,
        attention(shape, qkv_bias=bias, out_bias=bias)
        + qk_norms(shape, sizes)
        + experts(shape.hidden, width, count=count, active=active, layers=shape.every)
        + router(shape.hidden, count, layers=shape.every)
        + layer_norms(shape, _NORMS),
        layers=same_layers(shape, window=None),
        intermediate=width,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=count,
        experts_per_token=active,
    )
