"""RWKV 7 in the form of flash-linear-attention."""

from __future__ import annotations

import math

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import Weights, linear, norm, vector
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.recurrent import per_channel
from kvplan.architectures.rwkv import shifting
from kvplan.architectures.shapes import DecoderShape, split_evenly
from kvplan.errors import NotModelledError
from kvplan.models.caches import StateTensor
from kvplan.models.formats import round_up
from kvplan.models.spec import Layer

_HEAD_DIM = 64
_STEP = 32  # low ranks and widths are multiples of it


def rwkv7(fields: Fields) -> Anatomy:
    """Weights and state: fla/layers/rwkv7.py and fla/models/rwkv7/modeling_rwkv7.py."""
    _refuse_hybrids(fields)
    shape = _shape(fields)
    hidden, every = shape.hidden, shape.every
    width = fields.optional_integer("intermediate_size") or round_up(4 * hidden, _STEP)
    bias = fields.flag("norm_bias", default=True)
    body = _mixer(fields, shape) + _feed_forward(hidden, width, every)
    for name in ("attn_norm", "ffn_norm"):
        body += norm(name, hidden, layers=every, bias=bias)
    if fields.flag("norm_first", default=True):
        body += norm("pre_norm", hidden, layers=every[:1], bias=bias)
    state = StateTensor(
        name="recurrent", shape=(shape.heads, shape.head_dim, shape.head_dim), dtype="float32"
    )
    return decoder(
        shape,
        body,
        layers=(Layer(caches=(shifting(hidden, state),)),) * shape.layers,
        intermediate=width,
        tied=fields.flag("tie_word_embeddings", default=False),
        ends=Ends(embed="embeddings", norm="norm", norm_bias=bias),
    )


def _mixer(fields: Fields, shape: DecoderShape) -> Weights:
    hidden, every = shape.hidden, shape.every
    weights: Weights = ()
    for name in (*(f"x_{part}" for part in "rwkvag"), "k_k", "k_a", "r_k"):
        weights += vector(f"attn.{name}", hidden, component="recurrent", layers=every)
    for name in ("r_proj", "k_proj", "v_proj"):
        weights += linear(
            f"attn.{name}", (hidden, hidden), component="recurrent", sharding="column", layers=every
        )
    weights += linear(
        "attn.o_proj", (hidden, hidden), component="recurrent", sharding="row", layers=every
    )
    weights += per_channel(("attn.g_norm.weight", "attn.g_norm.bias"), hidden, every)
    wider = shape.head_dim / _HEAD_DIM
    factors = {"decay": 2.5 * wider, "gate": 5.0, "a": 2.5 * wider, "v": 1.7 * wider}
    for name, factor in factors.items():
        automatic = max(_STEP, round(factor * math.sqrt(hidden) / _STEP) * _STEP)
        rank = fields.integer(f"{name}_low_rank_dim", default=automatic)
        # The first layer's values are what the others mix theirs with.
        layers = every[1:] if name == "v" else every
        weights += _low_rank(name, hidden, rank, layers)
    return weights


def _low_rank(name: str, hidden: int, rank: int, layers: tuple[int, ...]) -> Weights:
    module = f"attn.{'w' if name == 'decay' else name[0]}_lora.lora"
    return linear(
        f"{module}.0", (rank, hidden), component="recurrent", sharding="replicated", layers=layers
    ) + linear(
        f"{module}.2",
        (hidden, rank),
        component="recurrent",
        sharding="column",
        layers=layers,
        bias=name != "gate",
    )


def _feed_forward(hidden: int, width: int, layers: tuple[int, ...]) -> Weights:
    return (
        vector("ffn.x_k", hidden, component="mlp", layers=layers)
        + linear("ffn.key", (width, hidden), component="mlp", sharding="column", layers=layers)
        + linear("ffn.value", (hidden, width), component="mlp", sharding="row", layers=layers)
    )


def _shape(fields: Fields) -> DecoderShape:
    hidden = fields.integer("hidden_size", default=2048)
    head_dim = fields.optional_integer("head_dim", default=_HEAD_DIM)
    heads = split_evenly(fields, hidden, head_dim) if head_dim else fields.integer("num_heads")
    return DecoderShape(
        layers=fields.integer("num_hidden_layers", default=24, most=MAX_LAYERS),
        hidden=hidden,
        heads=heads,
        kv_heads=0,
        head_dim=split_evenly(fields, hidden, heads),
        vocab=fields.integer("vocab_size", default=32_000),
    )


def _refuse_hybrids(fields: Fields) -> None:
    hidden = fields.raw("hidden_size")
    values = fields.raw("value_dim")
    listed = values if isinstance(values, list) else [values]
    if fields.has("attn") or any(value not in (None, hidden) for value in listed):
        raise NotModelledError(
            "RWKV 7 with attention layers, or with wider values, is not modelled.",
            hint="Plain RWKV 7 states neither `attn` nor another `value_dim`.",
        )
