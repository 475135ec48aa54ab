"""GPT-J and CodeGen."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, attention, layer_norms, plain_mlp, vector
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, split_evenly

_QKV = ("attn.q_proj", "attn.k_proj", "attn.v_proj")


def gptj(fields: Fields) -> Anatomy:
    """GPT-J 6B: attention and feed-forward side by side, a head with a bias."""
    shape = _shape(fields)
    return _assemble(fields, shape, attention(shape, qkv=_QKV, out="attn.out_proj"))


def codegen(fields: Fields) -> Anatomy:
    """CodeGen: GPT-J with fused projections."""
    shape = _shape(fields)
    return _assemble(fields, shape, attention(shape, qkv="attn.qkv_proj", out="attn.out_proj"))


def _shape(fields: Fields) -> DecoderShape:
    hidden = fields.integer("n_embd", "hidden_size")
    heads = fields.integer("n_head", "num_attention_heads")
    return DecoderShape(
        layers=fields.integer("n_layer", "num_hidden_layers", most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size"),
    )


def _assemble(fields: Fields, shape: DecoderShape, projections: Weights) -> Anatomy:
    intermediate = fields.integer("n_inner", default=4 * shape.hidden)
    return decoder(
        shape,
        projections
        + plain_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.fc_in", "mlp.fc_out"),
            bias=True,
        )
        + layer_norms(shape, ("ln_1",), bias=True)
        # The head's bias exists whether or not its matrix is the embedding's.
        + vector("lm_head.bias", shape.vocab, component="lm_head", place="head", sharding="vocab"),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(embed="wte", norm="ln_f", norm_bias=True),
    )
