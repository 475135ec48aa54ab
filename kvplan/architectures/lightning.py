"""Lightning attention: MiniMax Text 01 and M1."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    experts,
    layer_norms,
    linear,
    router,
)
from kvplan.architectures.fields import MAX_EXPERTS, Fields
from kvplan.architectures.recurrent import (
    full_cache,
    only,
    per_channel,
    read_kinds,
    where,
)
from kvplan.architectures.shapes import DecoderShape, read_shape
from kvplan.errors import NotModelledError
from kvplan.models.caches import RecurrentCache, StateTensor
from kvplan.models.formats import PLAIN
from kvplan.models.spec import Layer

_LINEAR, _FULL = "linear_attention", "full_attention"
_EXPERTS = tuple(f"block_sparse_moe.experts.{part}" for part in ("w1", "w3", "w2"))
_KINDS = {_LINEAR: _LINEAR, _FULL: _FULL}


def lightning_cache(heads: int, head_dim: int) -> RecurrentCache:
    """One state (heads, dim, dim), in the type that the engine keeps convolutions in."""
    return only(StateTensor(name="linear", shape=(heads, head_dim, head_dim)))


def minimax(fields: Fields) -> Anatomy:
    """MiniMax Text 01 as transformers writes it: every second layer full unless listed."""
    shape = read_shape(fields, kv_heads=8)
    kinds = read_kinds(fields, "layer_types", shape.layers, _KINDS)
    if kinds is None:
        fields.fill("layer_types", "every second full_attention")
        kinds = tuple(_LINEAR if layer % 2 else _FULL for layer in shape.every)
    return _minimax(fields, shape, kinds)


def minimax_text_01(fields: Fields) -> Anatomy:
    """MiniMax Text 01 and M1 as published: softmax attention in one layer of eight."""
    shape = read_shape(fields)
    if fields.optional_integer("shared_intermediate_size", least=0):
        raise NotModelledError(
            "A MiniMax model with shared experts is not modelled.",
            hint="Published files state a `shared_intermediate_size` of 0.",
        )
    numbers = fields.integers("attn_type_list", least=0, most=1)
    if numbers is None:
        raise fields.error("attn_type_list", None, "a list of 0 and 1")
    if len(numbers) != shape.layers:
        raise fields.conflict(f"`attn_type_list` lists {len(numbers)} layers of {shape.layers}.")
    return _minimax(fields, shape, tuple(_FULL if number else _LINEAR for number in numbers))


def _minimax(fields: Fields, shape: DecoderShape, kinds: tuple[str, ...]) -> Anatomy:
    hidden, every = shape.hidden, shape.every
    width = fields.integer("intermediate_size", default=14_336)
    count = fields.integer("num_local_experts", default=8, most=MAX_EXPERTS)
    active = fields.integer("num_experts_per_tok", default=2, most=count)
    body = attention(shape, layers=where(kinds, _FULL))
    body += _lightning(shape, where(kinds, _LINEAR))
    body += experts(hidden, width, count=count, active=active, layers=every, names=_EXPERTS)
    layer = {
        _LINEAR: Layer(caches=(lightning_cache(shape.heads, shape.head_dim),)),
        _FULL: Layer(caches=(full_cache(shape),)),
    }
    return decoder(
        shape,
        body + _router(hidden, count, every) + layer_norms(shape),
        layers=tuple(layer[kind] for kind in kinds),
        intermediate=width,
        tied=fields.flag("tie_word_embeddings", default=False),
        experts=count,
        experts_per_token=active,
    )


def _router(hidden: int, count: int, layers: tuple[int, ...]) -> Weights:
    """Kept in float32.

    The total of MiniMax-AI/MiniMax-M1@2abb4f45a9:model.safetensors.index.json is that of 16-bit
    weights and 31,457,280 bytes: two more for each of 80 x 32 x 6144 elements.
    """
    plain = router(hidden, count, layers=layers, name="block_sparse_moe.gate")
    return tuple(weight.model_copy(update={"format": PLAIN["float32"]}) for weight in plain)


def _lightning(shape: DecoderShape, layers: tuple[int, ...]) -> Weights:
    """Sharding: vLLM v0.33.0 vllm/model_executor/layers/mamba/linear/minimax_linear_attn.py."""
    inner = shape.heads * shape.head_dim
    weights: Weights = ()
    for name, rows in (("qkv_proj", 3 * inner), ("output_gate", inner)):
        weights += linear(
            f"self_attn.{name}",
            (rows, shape.hidden),
            component="recurrent",
            sharding="column",
            layers=layers,
        )
    return (
        weights
        + linear(
            "self_attn.out_proj",
            (shape.hidden, inner),
            component="recurrent",
            sharding="row",
            layers=layers,
        )
        + per_channel(("self_attn.norm.weight",), inner, layers)
    )
