"""GPT-NeoX, Pythia, RedPajama-INCITE."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import attention, layer_norms, plain_mlp
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.heads import score, without_head
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, split_evenly


def gpt_neox(fields: Fields) -> Anatomy:
    """Multi-head attention, fused projections, two normalizations a layer."""
    shape = _shape(fields)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("attention_bias", default=True)
    return decoder(
        shape,
        attention(
            shape,
            qkv="attention.query_key_value",
            out="attention.dense",
            qkv_bias=bias,
            out_bias=bias,
        )
        + plain_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.dense_h_to_4h", "mlp.dense_4h_to_h"),
            bias=True,
        )
        + layer_norms(shape, bias=True),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(embed="embed_in", norm="final_layer_norm", norm_bias=True, head="embed_out"),
    )


def gpt_neox_reward(fields: Fields) -> Anatomy:
    """Open-Assistant's reward models: one row with a bias in place of the head.

    ``LAION-AI/Open-Assistant@93f0bb9c:model/model_training/models/reward_model.py``.
    """
    anatomy = gpt_neox(fields)
    return without_head(anatomy, score("out_proj", anatomy.hidden_size, 1, bias=True))


def _shape(fields: Fields) -> DecoderShape:
    hidden = fields.integer("hidden_size")
    heads = fields.integer("num_attention_heads")
    return DecoderShape(
        layers=fields.integer("num_hidden_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )
