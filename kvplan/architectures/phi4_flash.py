"""Phi 4 mini flash (SambaY): Mamba and attention first, then layers that reread what those kept."""

from __future__ import annotations

from typing import NamedTuple

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    gated_mlp,
    layer_norms,
    linear,
    norm,
    vector,
)
from kvplan.architectures.fields import MAX_LAYERS, MAX_POSITIONS, Fields
from kvplan.architectures.layers import read_window, same_layers
from kvplan.architectures.mamba import Mamba, mamba_cache, mamba_mixer, read_rank
from kvplan.architectures.recurrent import read_taps
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.models.caches import SharedCache
from kvplan.models.spec import Layer

_LAMBDAS = ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2")
_INNER = "attn.inner_cross_attn"


class _Plan(NamedTuple):
    """Which layer is what: the first half keeps, the second half rereads.

    Attributes:
        half: Where the second half begins.
        mamba: Mixers with a state.
        attention: Attention with keys of its own, windowed in the first half.
        gates: Later mixers, which are gates on the last state's output and keep nothing.
        readers: Later attention, which reads the one full cache.
    """

    half: int
    mamba: tuple[int, ...]
    attention: tuple[int, ...]
    gates: tuple[int, ...]
    readers: tuple[int, ...]


def phi4_flash(fields: Fields) -> Anatomy:
    """Phi 4 mini flash reasoning.

    ``vllm-project/vllm@03356f8c:vllm/model_executor/models/phi4flash.py``.
    """
    shape = read_shape(fields, kv_heads=4)
    plan = _plan(shape.layers, fields.integer("mb_per_layer", default=2, least=2, most=MAX_LAYERS))
    sizes = _mamba(fields, shape.hidden)
    intermediate = fields.integer("intermediate_size")
    bias = fields.flag("mlp_bias", default=False)
    body = (
        mamba_mixer("attn", sizes, shape.hidden, plan.mamba)
        + _gates(sizes, shape.hidden, plan.gates)
        + _attention(shape, plan)
        + gated_mlp(
            shape.hidden,
            intermediate,
            layers=shape.every,
            names=("mlp.fc1", "mlp.fc2"),
            bias=bias,
        )
        + layer_norms(shape, bias=True)
    )
    if fields.flag("lm_head_bias", default=False):
        body += vector(
            "lm_head.bias", shape.vocab, component="lm_head", place="head", sharding="vocab"
        )
    return decoder(
        shape,
        body,
        layers=_layers(fields, shape, plan, sizes),
        intermediate=intermediate,
        tied=fields.flag("tie_word_embeddings", default=True),
        ends=Ends(norm="final_layernorm", norm_bias=True),
    )


def _plan(layers: int, step: int) -> _Plan:
    """Mixers alternate with attention; the first two layers of the second half still keep."""
    half = layers // 2
    kept, later = range(min(half + 2, layers)), range(half + 2, layers)
    return _Plan(
        half=half,
        mamba=tuple(layer for layer in kept if layer % step == 0),
        attention=tuple(layer for layer in kept if layer % step),
        gates=tuple(layer for layer in later if layer % step == 0),
        readers=tuple(layer for layer in later if layer % step),
    )


def _mamba(fields: Fields, hidden: int) -> Mamba:
    return Mamba(
        inner=fields.integer("mamba_expand", default=2, most=1024) * hidden,
        state=fields.integer("mamba_d_state", default=16),
        taps=read_taps(fields, "mamba_d_conv", default=4),
        rank=read_rank(fields, "mamba_dt_rank", hidden),
        bias=fields.flag("mamba_proj_bias", default=False),
        conv_bias=fields.flag("mamba_conv_bias", default=True),
    )


def _gates(sizes: Mamba, hidden: int, layers: tuple[int, ...]) -> Weights:
    return linear(
        "attn.in_proj",
        (sizes.inner, hidden),
        component="recurrent",
        sharding="column",
        layers=layers,
        bias=sizes.bias,
    ) + linear(
        "attn.out_proj",
        (hidden, sizes.inner),
        component="recurrent",
        sharding="row",
        layers=layers,
        bias=sizes.bias,
    )


def _attention(shape: DecoderShape, plan: _Plan) -> Weights:
    both = tuple(sorted(plan.attention + plan.readers))
    weights = attention(
        shape,
        qkv="attn.Wqkv",
        out="attn.out_proj",
        qkv_bias=True,
        out_bias=True,
        layers=both,
    )
    # The readers project queries only.
    weights = tuple(
        weight.model_copy(update={"layers": plan.attention})
        if weight.sharding == "kv_heads"
        else weight
        for weight in weights
        if weight.sharding != "kv_heads" or plan.attention
    )
    for name in _LAMBDAS:
        weights += vector(f"{_INNER}.{name}", shape.head_dim, component="attention", layers=both)
    return weights + norm(f"{_INNER}.subln", 2 * shape.head_dim, layers=both, component="attention")


def _layers(fields: Fields, shape: DecoderShape, plan: _Plan, sizes: Mamba) -> tuple[Layer, ...]:
    window = _window(fields)
    full = same_layers(shape, window=None)[0]
    windowed = same_layers(shape, window=window)[0]
    kinds = dict.fromkeys(plan.mamba, Layer(caches=(mamba_cache(sizes),)))
    kinds |= {layer: windowed if layer < plan.half else full for layer in plan.attention}
    kinds |= dict.fromkeys(plan.gates, Layer())
    if plan.readers:
        target = max((layer for layer in plan.attention if layer >= plan.half), default=None)
        if target is None:
            raise fields.conflict("The later layers read a full cache, and no layer keeps one.")
        kinds |= dict.fromkeys(plan.readers, Layer(caches=(SharedCache(layer=target),)))
    return tuple(kinds[layer] for layer in shape.every)


def _window(fields: Fields) -> int | None:
    """One number, or the list that the class makes of it, where null means full."""
    name = "sliding_window"
    stated = fields.raw(name)
    if not isinstance(stated, list):
        return read_window(fields, name, default=2047)
    sizes = [size for size in stated if size is not None]
    if not sizes:
        return None
    first = sizes[0]
    if any(size != first for size in sizes) or isinstance(first, bool):
        raise fields.error(name, stated, "one size, or null, for each layer")
    if not isinstance(first, int) or not 0 < first <= MAX_POSITIONS:
        raise fields.error(name, stated, "one size, or null, for each layer")
    return first
