"""The weights of DeepSeek V4, by the names of its checkpoints.

Shapes: transformers v5.24.0 src/transformers/models/deepseek_v4/modeling_deepseek_v4.py. Names,
sharding and fixed types: vLLM v0.33.0 vllm/models/deepseek_v4/attention.py, compressor.py,
nvidia/model.py and nvidia/mtp.py.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.blocks import (
    Weights,
    experts,
    gated_mlp,
    layer_norms,
    linear,
    norm,
    router,
    vector,
)
from kvplan.architectures.indexer import Indexer
from kvplan.architectures.quantization.mxfp4 import MXFP4
from kvplan.architectures.shapes import DecoderShape
from kvplan.models.formats import PLAIN, NumberFormat
from kvplan.models.weights import Place, Sharding, Weight

_FP32 = PLAIN["float32"]
_INT32 = NumberFormat(
    name="int32", bits=32, source="vLLM v0.33.0 vllm/models/deepseek_v4/nvidia/model.py tid2eid"
)
_GATED = ("w1", "w3", "w2")


class Sizes(BaseModel):
    """Everything that decides a size.

    Attributes:
        shape: The decoder's; one key and value head that is the cached vector itself.
        rope: Elements of a head with rotary positions.
        query_rank: Rank of the compressed query.
        output_rank, output_groups: The output goes through this rank, group of heads by group.
        indexer: The sparse indexer of layers that compress four tokens into one vector.
        rates: For each layer how many tokens one vector stands for; 0: no compression.
        experts, active, expert_width, shared: Routed experts, how many for a token, their width,
            and how many more every token goes through.
        hashed: Layers whose experts are looked up by token.
        streams: Parallel residual streams (hyper-connections).
        packed_experts: The routed experts are stored in four bits.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    shape: DecoderShape
    rope: int
    query_rank: int
    output_rank: int
    output_groups: int
    indexer: Indexer
    rates: tuple[int, ...]
    experts: int
    active: int
    expert_width: int
    shared: int
    hashed: tuple[int, ...]
    streams: int
    packed_experts: bool

    def layers_at(self, rate: int) -> tuple[int, ...]:
        """The layers of one rate."""
        return tuple(layer for layer, own in enumerate(self.rates) if own == rate)


def layer_weights(sizes: Sizes) -> Weights:
    """What the layers hold."""
    every = sizes.shape.every
    weights = _attention(sizes) + _mixture(sizes)
    weights += layer_norms(sizes.shape, ("attn_norm", "ffn_norm"))
    for name in ("hc_attn", "hc_ffn"):
        weights += _mixing(sizes, name, rows=(2 + sizes.streams) * sizes.streams, layers=every)
    for rate in (4, 128):
        weights += _compressor(sizes, "attn.", sizes.shape.head_dim, rate)
    return weights + _indexer(sizes)


def mixing_head(sizes: Sizes) -> Weights:
    """What merges the residual streams before the head."""
    return _mixing(sizes, "hc_head", rows=sizes.streams, scales=1, place="head")


def draft_weights(sizes: Sizes, body: Weights, modules: tuple[int, ...]) -> Weights:
    """Modules for multi-token prediction: a layer with a window only, and what joins it."""
    if not modules:
        return ()
    hidden = sizes.shape.hidden
    last = sizes.shape.layers - 1
    added = _mixing(sizes, "hc_head", rows=sizes.streams, scales=1, layers=modules)
    for name in ("e_proj", "h_proj"):
        added += _whole(name, (hidden, hidden), modules)
    for name in ("enorm", "hnorm", "norm"):
        added += norm(name, hidden, layers=modules)
    inside = tuple(
        weight
        for weight in body
        if last in weight.layers and not weight.name.startswith(("attn.compressor", "attn.indexer"))
    )
    changes = {"component": "mtp", "layers": modules}
    return tuple(weight.model_copy(update=changes) for weight in inside + added)


def _attention(sizes: Sizes) -> Weights:
    shape, every = sizes.shape, sizes.shape.every
    width = shape.heads * shape.head_dim
    ranks = sizes.output_groups * sizes.output_rank
    return (
        _fixed(vector("attn.attn_sink", shape.heads, component="attention", layers=every))
        + _whole("attn.wq_a", (sizes.query_rank, shape.hidden), every)
        + norm("attn.q_norm", sizes.query_rank, layers=every, component="attention")
        + _split("attn.wq_b", (width, sizes.query_rank), "column", every)
        + _whole("attn.wkv", (shape.head_dim, shape.hidden), every)
        + norm("attn.kv_norm", shape.head_dim, layers=every, component="attention")
        + _split("attn.wo_a", (ranks, width // sizes.output_groups), "column", every)
        + _split("attn.wo_b", (shape.hidden, ranks), "row", every)
    )


def _compressor(sizes: Sizes, prefix: str, head_dim: int, rate: int) -> Weights:
    layers = sizes.layers_at(rate)
    width = (2 if rate == 4 else 1) * head_dim
    name = f"{prefix}compressor"
    return (
        _fixed(
            linear(
                f"{name}.ape",
                (rate, width),
                component="attention",
                sharding="replicated",
                layers=layers,
            )
        )
        + _whole(f"{name}.wkv", (width, sizes.shape.hidden), layers)
        + _whole(f"{name}.wgate", (width, sizes.shape.hidden), layers)
        + norm(f"{name}.norm", head_dim, layers=layers, component="attention")
    )


def _indexer(sizes: Sizes) -> Weights:
    layers, indexer = sizes.layers_at(4), sizes.indexer
    return (
        _whole("attn.indexer.wq_b", (indexer.heads * indexer.head_dim, sizes.query_rank), layers)
        + _whole("attn.indexer.weights_proj", (indexer.heads, sizes.shape.hidden), layers)
        + _compressor(sizes, "attn.indexer.", indexer.head_dim, 4)
    )


def _mixture(sizes: Sizes) -> Weights:
    hidden, every = sizes.shape.hidden, sizes.shape.every
    routed = experts(
        hidden,
        sizes.expert_width,
        count=sizes.experts,
        active=sizes.active,
        layers=every,
        names=tuple(f"ffn.experts.{name}" for name in _GATED),
    )
    if sizes.packed_experts:
        routed = tuple(weight.model_copy(update={"format": MXFP4}) for weight in routed)
    weights = routed + router(hidden, sizes.experts, layers=every, name="ffn.gate")
    weights += _lookup(sizes)
    if sizes.shared:
        weights += gated_mlp(
            hidden,
            sizes.shared * sizes.expert_width,
            layers=every,
            names=tuple(f"ffn.shared_experts.{name}" for name in _GATED),
            component="shared_experts",
        )
    return weights


def _lookup(sizes: Sizes) -> Weights:
    """The table from tokens to experts: stored and loaded, but no parameters."""
    if not sizes.hashed:
        return ()
    table = Weight(
        name="ffn.gate.tid2eid",
        component="router",
        shape=(sizes.shape.vocab, sizes.active),
        layers=sizes.hashed,
        format=_INT32,
        elements=0,
    )
    return (table,)


def _mixing(
    sizes: Sizes,
    name: str,
    *,
    rows: int,
    scales: int = 3,
    layers: tuple[int, ...] = (),
    place: Place = "layers",
) -> Weights:
    """Weights of hyper-connections, in fp32: how streams are mixed before and after a part."""
    matrix = Weight(
        name=f"{name}_fn",
        component="norms",
        shape=(rows, sizes.streams * sizes.shape.hidden),
        place=place,
        layers=layers,
    )
    weights: Weights = (matrix,)
    for end, size in (("base", rows), ("scale", scales)):
        weights += vector(f"{name}_{end}", size, component="norms", layers=layers, place=place)
    return _fixed(weights)


def _whole(name: str, size: tuple[int, int], layers: tuple[int, ...]) -> Weights:
    return _split(name, size, "replicated", layers)


def _split(
    name: str, size: tuple[int, int], sharding: Sharding, layers: tuple[int, ...]
) -> Weights:
    return linear(name, size, component="attention", sharding=sharding, layers=layers)


def _fixed(weights: Weights) -> Weights:
    return tuple(weight.model_copy(update={"format": _FP32}) for weight in weights)
