"""BioGPT."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import attention, layer_norms, plain_mlp, positions
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, split_evenly

# The first two rows of the table are never used, as in OPT: transformers v5.24.0
# src/transformers/models/biogpt/modeling_biogpt.py BioGptLearnedPositionalEmbedding.
_OFFSET = 2


def biogpt(fields: Fields) -> Anatomy:
    """BioGPT: learned positions, biases everywhere."""
    hidden = fields.integer("hidden_size")
    heads = fields.integer("num_attention_heads")
    shape = DecoderShape(
        layers=fields.integer("num_hidden_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )
    intermediate = fields.integer("intermediate_size")
    places = fields.integer("max_position_embeddings", default=1024)
    return decoder(
        shape,
        positions(places + _OFFSET, hidden, "embed_positions")
        + attention(shape, out="self_attn.out_proj", qkv_bias=True, out_bias=True)
        + plain_mlp(hidden, intermediate, layers=shape.every, names=("fc1", "fc2"), bias=True)
        + layer_norms(shape, ("self_attn_layer_norm", "final_layer_norm"), bias=True),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=True),
        ends=Ends(norm="layer_norm", norm_bias=True, head="output_projection"),
    )
