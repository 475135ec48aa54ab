"""Phi 1, 1.5 and 2 before transformers had the class (mixformer-sequential, phi-msft)."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import attention, layer_norms, plain_mlp, vector
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, checked, split_evenly


def mixformer(fields: Fields) -> Anatomy:
    """Embedding, layers and head as one sequence."""
    return _assemble(fields, Ends(embed="wte", norm="ln", norm_bias=True, head="linear"))


def phi_msft(fields: Fields) -> Anatomy:
    """The same weights under the names of a transformer."""
    return _assemble(
        fields,
        Ends(embed="embd.wte", norm="lm_head.ln", norm_bias=True, head="lm_head.linear"),
    )


def _assemble(fields: Fields, ends: Ends) -> Anatomy:
    shape = _shape(fields)
    intermediate = fields.integer("n_inner", default=4 * shape.hidden)
    return decoder(
        shape,
        attention(shape, qkv="mixer.Wqkv", out="mixer.out_proj", qkv_bias=True, out_bias=True)
        + plain_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.fc1", "mlp.fc2"),
            bias=True,
        )
        + layer_norms(shape, ("ln",), bias=True)
        + vector(
            f"{ends.head}.bias", shape.vocab, component="lm_head", place="head", sharding="vocab"
        ),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=ends,
    )


def _shape(fields: Fields) -> DecoderShape:
    hidden = fields.integer("n_embd", "hidden_size")
    heads = fields.integer("n_head", "num_attention_heads")
    shape = DecoderShape(
        layers=fields.integer("n_layer", "num_hidden_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=fields.optional_integer("n_head_kv") or heads,
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )
    return checked(fields, shape)
