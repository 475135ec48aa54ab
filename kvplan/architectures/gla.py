"""Gated linear attention (GLA) in the form of flash-linear-attention."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, decoder
from kvplan.architectures.blocks import Weights, gated_mlp, layer_norms, linear, norm
from kvplan.architectures.fields import MAX_DIMENSION, MAX_LAYERS, Fields, describe
from kvplan.architectures.recurrent import conv_state, convolution, only, read_taps
from kvplan.architectures.shapes import DecoderShape, checked, split_evenly
from kvplan.errors import NotModelledError
from kvplan.models.caches import StateTensor
from kvplan.models.formats import round_up
from kvplan.models.spec import Layer
from kvplan.models.weights import Sharding

_GATE_RANK = 16  # of the forget gate: no field states it
_STEP = 256  # the feed-forward is a multiple of it


def gla(fields: Fields) -> Anatomy:
    """Weights and state: fla/layers/gla.py and fla/models/gla/modeling_gla.py."""
    if fields.has("attn"):
        raise NotModelledError(
            "GLA with attention layers is not modelled.",
            hint="Plain GLA does not state `attn`.",
        )
    shape = _shape(fields)
    keys, values = (
        _expanded(fields, shape, "expand_k", 0.5),
        _expanded(fields, shape, "expand_v", 1),
    )
    groups = shape.heads // shape.kv_heads
    widths = {"q": keys, "k": keys // groups, "v": values // groups}
    ratio = fields.integer("hidden_ratio", default=4, most=1024)
    stated = fields.optional_integer("intermediate_size")
    width = stated or round_up(shape.hidden * ratio * 2 // 3, _STEP)
    state = StateTensor(
        name="recurrent",
        shape=(shape.heads, keys // shape.heads, values // shape.heads),
        dtype="float32",
    )
    taps = _taps(fields)
    states = (state, *(conv_state(size, taps) for size in widths.values() if taps))
    return decoder(
        shape,
        _mixer(fields, shape, widths, values, taps)
        + gated_mlp(shape.hidden, width, layers=shape.every)
        + layer_norms(shape, ("attn_norm", "mlp_norm")),
        layers=(Layer(caches=(only(*states),)),) * shape.layers,
        intermediate=width,
        tied=fields.flag("tie_word_embeddings", default=False),
    )


def _mixer(
    fields: Fields, shape: DecoderShape, widths: dict[str, int], values: int, taps: int
) -> Weights:
    weights: Weights = ()
    for name, size in widths.items():
        weights += _linear(f"attn.{name}_proj", (size, shape.hidden), shape)
        if taps:
            weights += convolution(
                f"attn.{name}_conv1d", size, taps, layers=shape.every, bias=False
            )
    if fields.flag("use_output_gate", default=True):
        weights += _linear("attn.g_proj", (values, shape.hidden), shape)
    weights += _linear("attn.gk_proj.0", (_GATE_RANK, shape.hidden), shape, "replicated")
    weights += linear(
        "attn.gk_proj.1",
        (widths["k"], _GATE_RANK),
        component="recurrent",
        sharding="column",
        layers=shape.every,
        bias=True,
    )
    weights += _linear("attn.o_proj", (shape.hidden, values), shape, "row")
    if fields.flag("elementwise_affine", default=True):
        size = values // shape.heads
        weights += norm("attn.g_norm", size, layers=shape.every, component="recurrent")
    return weights


def _linear(
    name: str, size: tuple[int, int], shape: DecoderShape, sharding: Sharding = "column"
) -> Weights:
    return linear(name, size, component="recurrent", sharding=sharding, layers=shape.every)


def _taps(fields: Fields) -> int:
    if not fields.flag("use_short_conv", default=False):
        return 0
    return read_taps(fields, "conv_size", default=4)


def _expanded(fields: Fields, shape: DecoderShape, name: str, default: float) -> int:
    factor = fields.number(name)
    if factor is None:
        fields.fill(name, default)
        factor = default
    size = int(shape.hidden * factor)
    if not 0 < size <= MAX_DIMENSION:
        raise fields.conflict(f"`{name}` makes {describe(size)} channels.")
    split_evenly(fields, size, shape.heads)
    return size


def _shape(fields: Fields) -> DecoderShape:
    heads = fields.integer("num_heads", default=4)
    shape = DecoderShape(
        layers=fields.integer("num_hidden_layers", default=24, most=MAX_LAYERS),
        hidden=fields.integer("hidden_size", default=2048),
        heads=heads,
        kv_heads=fields.optional_integer("num_kv_heads") or heads,
        head_dim=1,
        vocab=fields.integer("vocab_size", default=32_000),
    )
    return checked(fields, shape)
