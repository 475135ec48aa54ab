"""EAGLE-3 and P-EAGLE drafts: few layers, fed with the states of several layers of the target.

Source: vLLM v0.33.0 vllm/model_executor/models/llama_eagle3.py and qwen3_eagle3.py.
"""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import (
    Weights,
    attention,
    embedding,
    gated_mlp,
    layer_norms,
    qk_norms,
    vector,
)
from kvplan.architectures.drafts.parts import (
    draft,
    end_norm,
    features,
    fusion,
    own_head,
    stated_layers,
)
from kvplan.architectures.fields import Fields
from kvplan.architectures.layers import same_layers
from kvplan.architectures.shapes import DecoderShape, read_shape

_FEATURES = 3  # layers of the target whose states are fused, where none are listed
_FIRST = ("self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight")
_NORMS = ("input_layernorm", "hidden_norm", "post_attention_layernorm")


def eagle3(fields: Fields) -> Anatomy:
    """A draft of Llama's layers, whatever the target."""
    return _eagle3(fields, kind="EAGLE-3")


def eagle3_qwen3(fields: Fields) -> Anatomy:
    """A draft of Qwen 3's layers, which normalize queries and keys."""
    return _eagle3(fields, kind="EAGLE-3", normalized=True)


def peagle(fields: Fields) -> Anatomy:
    """P-EAGLE: several tokens at once; states that are not there yet are one learned vector."""
    return _eagle3(fields, kind="P-EAGLE")


def _eagle3(fields: Fields, *, kind: str, normalized: bool = False) -> Anatomy:
    shape = read_shape(fields)
    intermediate = fields.integer("intermediate_size")
    own = fields.section("eagle_config")
    count = fields.optional_integer("num_aux_hidden_states", most=1024) or stated_layers(
        own, "eagle_aux_hidden_state_layer_ids"
    )
    width = features(fields, shape, count or _FEATURES)
    body = _widened(shape, attention(shape, qkv_bias=_bias(fields)))
    body += gated_mlp(shape.hidden, intermediate, layers=shape.every) + layer_norms(shape, _NORMS)
    if normalized:
        body += qk_norms(shape, (shape.head_dim, shape.head_dim))
    head = fields.optional_integer("draft_vocab_size", most=shape.vocab) or shape.vocab
    narrow = width % shape.hidden != 0
    return draft(
        shape,
        (embedding(shape) if narrow else ())
        + fusion(width, shape.hidden)
        + _input_norm(fields, own, width)
        + (_masked(width) if kind == "P-EAGLE" else ())
        + body
        + end_norm("norm", shape.hidden)
        + own_head(head, shape),
        layers=same_layers(shape, window=None),
        intermediate=intermediate,
        kind=kind,
        shared="nothing" if narrow else "the embedding",
    )


def _widened(shape: DecoderShape, weights: Weights) -> Weights:
    """The first layer sees the token's embedding and the fused states side by side."""
    result: Weights = ()
    for weight in weights:
        if weight.name not in _FIRST:
            result += (weight,)
            continue
        rows, columns = weight.shape
        wide = {"layers": (0,), "shape": (rows, 2 * columns)}
        result += (weight.model_copy(update=wide),)
        if shape.layers > 1:
            result += (weight.model_copy(update={"layers": shape.every[1:]}),)
    return result


def _bias(fields: Fields) -> bool:
    return fields.flag("attention_bias", default=False)


def _input_norm(fields: Fields, own: Fields | None, width: int) -> Weights:
    stated = own if own is not None and own.has("norm_before_fc") else fields
    weights: Weights = ()
    if stated.flag("norm_before_fc", default=False):
        weights += end_norm("input_norm", width)
    if fields.flag("fc_norm", default=False):
        weights += end_norm("fc_norm", width)
    return weights


def _masked(width: int) -> Weights:
    return vector("mask_hidden", width, component="other", place="embedding")
