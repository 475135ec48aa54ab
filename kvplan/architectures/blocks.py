"""The weights of the parts that most decoders are built from, each with how it shards.

Names are those of the checkpoint without the layer and expert numbers. A matrix that a
checkpoint fuses but tensor parallelism cuts in parts has one entry a part:
``self_attn.qkv_proj.weight[q]``. Sharding is vLLM's (v0.33.0 vllm/model_executor/layers/linear.py:
QKVParallelLinear, MergedColumnParallelLinear, RowParallelLinear, ReplicatedLinear).
"""

from __future__ import annotations

from kvplan.architectures.shapes import DecoderShape
from kvplan.models.weights import Component, Place, Sharding, Weight

Weights = tuple[Weight, ...]


def linear(
    name: str,
    shape: tuple[int, int],
    *,
    component: Component,
    sharding: Sharding,
    layers: tuple[int, ...] = (),
    bias: bool = False,
    place: Place = "layers",
    copies: int = 1,
    active: int = 1,
    heads: int = 1,
    part: str = "",
) -> Weights:
    """One (out, in) matrix and, on request, its bias."""
    if place == "layers" and not layers:
        return ()
    matrix = Weight(
        name=f"{name}.weight{part}",
        component=component,
        shape=shape,
        place=place,
        layers=layers,
        copies=copies,
        active_copies=active,
        sharding=sharding,
        heads=heads,
    )
    if not bias:
        return (matrix,)
    # The bias of a row-parallel matrix is added once, after the sum over ranks: never split.
    whole = "replicated" if sharding == "row" else sharding
    changes = {"name": f"{name}.bias{part}", "shape": shape[:1], "sharding": whole}
    return matrix, matrix.model_copy(update=changes)


def norm(
    name: str,
    size: int,
    *,
    layers: tuple[int, ...] = (),
    bias: bool = False,
    component: Component = "norms",
    place: Place = "layers",
) -> Weights:
    """Scale (and shift) of a normalization; every rank holds all of it."""
    return vector(f"{name}.weight", size, layers=layers, component=component, place=place) + (
        vector(f"{name}.bias", size, layers=layers, component=component, place=place)
        if bias
        else ()
    )


def vector(
    name: str,
    size: int,
    *,
    component: Component,
    layers: tuple[int, ...] = (),
    place: Place = "layers",
    sharding: Sharding = "replicated",
) -> Weights:
    """A lone vector."""
    if place == "layers" and not layers:
        return ()
    return (
        Weight(
            name=name,
            component=component,
            shape=(size,),
            place=place,
            layers=layers,
            sharding=sharding,
        ),
    )


def attention(
    shape: DecoderShape,
    *,
    qkv: str | tuple[str, str, str] = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    out: str = "self_attn.o_proj",
    qkv_bias: bool = False,
    out_bias: bool = False,
    layers: tuple[int, ...] | None = None,
    value_dim: int | None = None,
) -> Weights:
    """Query, key, value and output projections of every layer.

    Args:
        shape: The decoder's sizes.
        qkv: The three names, or the one name of the fused matrix.
        out: Name of the output projection.
        qkv_bias: Whether the first three have a bias.
        out_bias: Whether the output projection has one.
        layers: The layers that have this attention; None: all.
        value_dim: Elements of a head's value; None: as many as of its query and key.
    """
    names = (qkv,) * 3 if isinstance(qkv, str) else qkv
    parts = ("[q]", "[k]", "[v]") if isinstance(qkv, str) else ("", "", "")
    at = shape.every if layers is None else layers
    value = value_dim or shape.head_dim
    weights = linear(
        names[0],
        (shape.heads * shape.head_dim, shape.hidden),
        component="attention",
        sharding="column",
        layers=at,
        bias=qkv_bias,
        part=parts[0],
    )
    for name, part, size in zip(names[1:], parts[1:], (shape.head_dim, value), strict=True):
        weights += linear(
            name,
            (shape.kv_heads * size, shape.hidden),
            component="attention",
            sharding="kv_heads",
            heads=shape.kv_heads,
            layers=at,
            bias=qkv_bias,
            part=part,
        )
    return weights + linear(
        out,
        (shape.hidden, shape.heads * value),
        component="attention",
        sharding="row",
        layers=at,
        bias=out_bias,
    )


def gated_mlp(
    hidden: int,
    width: int,
    *,
    layers: tuple[int, ...],
    names: tuple[str, ...] = ("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
    component: Component = "mlp",
    bias: bool = False,
) -> Weights:
    """Gate, up and down projections; with two names gate and up are one matrix."""
    *ups, down = names
    rows = 2 * width // len(ups)
    weights: Weights = ()
    for name in ups:
        weights += linear(
            name,
            (rows, hidden),
            component=component,
            sharding="column",
            layers=layers,
            bias=bias,
        )
    return weights + linear(
        down, (hidden, width), component=component, sharding="row", layers=layers, bias=bias
    )


def plain_mlp(
    hidden: int, width: int, *, layers: tuple[int, ...], names: tuple[str, str], bias: bool
) -> Weights:
    """An up and a down projection."""
    up, down = names
    return linear(
        up, (width, hidden), component="mlp", sharding="column", layers=layers, bias=bias
    ) + linear(down, (hidden, width), component="mlp", sharding="row", layers=layers, bias=bias)


def experts(
    hidden: int,
    width: int,
    *,
    count: int,
    active: int,
    layers: tuple[int, ...],
    names: tuple[str, ...] = (
        "mlp.experts.gate_proj",
        "mlp.experts.up_proj",
        "mlp.experts.down_proj",
    ),
) -> Weights:
    """The routed experts: gated feed-forwards, ``count`` a layer, ``active`` for a token."""
    dense = gated_mlp(hidden, width, layers=layers, names=names, component="experts")
    changes = {"copies": count, "active_copies": active}
    return tuple(weight.model_copy(update=changes) for weight in dense)


def router(
    hidden: int,
    count: int,
    *,
    layers: tuple[int, ...],
    name: str = "mlp.gate",
    bias: bool = False,
) -> Weights:
    """The matrix that picks the experts; every rank holds all of it."""
    return linear(
        name,
        (count, hidden),
        component="router",
        sharding="replicated",
        layers=layers,
        bias=bias,
    )


def embedding(shape: DecoderShape, name: str = "embed_tokens", *, width: int = 0) -> Weights:
    """The token embedding; ``width`` if it is not the hidden size."""
    return linear(
        name,
        (shape.vocab, width or shape.hidden),
        component="embedding",
        sharding="vocab",
        place="embedding",
    )


def positions(count: int, hidden: int, name: str) -> Weights:
    """Learned position embeddings; every rank of the first stage holds all of them."""
    return linear(
        name, (count, hidden), component="embedding", sharding="replicated", place="embedding"
    )


def head(
    shape: DecoderShape,
    *,
    tied: bool,
    name: str = "lm_head",
    width: int = 0,
    bias: bool = False,
) -> Weights:
    """The output matrix, or nothing where it is the embedding's; a bias is there either way."""
    whole = linear(
        name,
        (shape.vocab, width or shape.hidden),
        component="lm_head",
        sharding="vocab",
        place="head",
        bias=bias,
    )
    return whole[1:] if tied else whole


def final_norm(hidden: int, name: str = "norm", *, bias: bool = False) -> Weights:
    """The normalization before the head."""
    return norm(name, hidden, place="head", bias=bias)


def layer_norms(
    shape: DecoderShape,
    names: tuple[str, ...] = ("input_layernorm", "post_attention_layernorm"),
    *,
    bias: bool = False,
) -> Weights:
    """The normalizations of every layer."""
    weights: Weights = ()
    for name in names:
        weights += norm(name, shape.hidden, layers=shape.every, bias=bias)
    return weights


def qk_norms(
    shape: DecoderShape,
    sizes: tuple[int, int],
    *,
    names: tuple[str, str] = ("self_attn.q_norm", "self_attn.k_norm"),
    bias: bool = False,
    layers: tuple[int, ...] | None = None,
) -> Weights:
    """Normalizations of queries and keys, counted as attention; every rank holds all of them."""
    at = shape.every if layers is None else layers
    weights: Weights = ()
    for name, size in zip(names, sizes, strict=True):
        weights += norm(name, size, layers=at, bias=bias, component="attention")
    return weights
