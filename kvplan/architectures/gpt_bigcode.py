"""SantaCoder, StarCoder 1 and WizardCoder (gpt_bigcode)."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import attention, layer_norms, plain_mlp, positions
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, split_evenly
from kvplan.errors import NotModelledError


def gpt_bigcode(fields: Fields) -> Anatomy:
    """GPT-2 with one KV head for all query heads (unless ``multi_query`` is off)."""
    if fields.flag("add_cross_attention", default=False):
        raise NotModelledError(
            "GPT BigCode with cross-attention is half of an encoder-decoder, and is not modelled.",
            hint="Plan the plain decoder, or write a model spec for the pair.",
        )
    hidden = fields.integer("n_embd", "hidden_size")
    heads = fields.integer("n_head", "num_attention_heads")
    shape = DecoderShape(
        layers=fields.integer("n_layer", "num_hidden_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=1 if fields.flag("multi_query", default=True) else heads,
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )
    intermediate = fields.integer("n_inner", default=4 * hidden)
    places = fields.integer("n_positions", "max_position_embeddings", default=1024)
    return decoder(
        shape,
        positions(places, hidden, "wpe")
        + attention(shape, qkv="attn.c_attn", out="attn.c_proj", qkv_bias=True, out_bias=True)
        + plain_mlp(
            hidden, intermediate, layers=shape.every, names=("mlp.c_fc", "mlp.c_proj"), bias=True
        )
        + layer_norms(shape, ("ln_1", "ln_2"), bias=True),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=True),
        ends=Ends(embed="wte", norm="ln_f", norm_bias=True),
    )
