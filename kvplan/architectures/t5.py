"""T5, mT5 and UMT5: relative positions, no biases, one embedding for everything."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights, embedding, linear, norm
from kvplan.architectures.encoder_decoder import Spot, cross_layers
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.shapes import DecoderShape
from kvplan.architectures.towers.parts import repeated
from kvplan.models.weights import Sharding

_PROJECTIONS: tuple[tuple[str, Sharding], ...] = (
    ("q", "column"),
    ("k", "column"),
    ("v", "column"),
    ("o", "row"),
)
_OWN_HEAD = (
    "The file keeps a head apart from the embedding, but the class has tied both since"
    " transformers v5 (v5.24.0 src/transformers/models/t5/configuration_t5.py): it is not counted."
)


def t5(fields: Fields) -> Anatomy:
    """T5, T5 1.1, Flan-T5: the first layer's position biases serve all. Defaults: T5Config."""
    return _t5(fields, gated_by_default=False, every_layer=False)


def mt5(fields: Fields) -> Anatomy:
    """mT5. Defaults: MT5Config."""
    return _t5(fields, gated_by_default=True, every_layer=False)


def umt5(fields: Fields) -> Anatomy:
    """UMT5: position biases of its own in every layer. Defaults: UMT5Config."""
    return _t5(fields, gated_by_default=True, every_layer=True)


def _t5(fields: Fields, *, gated_by_default: bool, every_layer: bool) -> Anatomy:
    shape, encoder_layers = _shape(fields)
    width = fields.integer("d_ff")
    gated = _gated(fields, default=gated_by_default)
    buckets = fields.integer("relative_attention_num_buckets", default=32)
    one = _layer(shape, width, Spot(place="tower"), gated=gated, cross=False)
    inside = Spot(place="layers", layers=shape.every)
    biased = encoder_layers if every_layer else 1
    weights = embedding(shape, "shared") + repeated(one, encoder_layers)
    weights += repeated(_bias(shape, buckets, Spot(place="tower")), biased)
    weights += norm("final_layer_norm", shape.hidden, place="tower")
    weights += _layer(shape, width, inside, gated=gated, cross=True)
    first = inside if every_layer else Spot(place="layers", layers=(0,))
    weights += _bias(shape, buckets, first)
    own_head = fields.raw("tie_word_embeddings") is False
    return Anatomy(
        hidden_size=shape.hidden,
        vocab_size=shape.vocab,
        intermediate_size=width,
        attention_heads=shape.heads,
        layers=cross_layers(shape, fields.optional_integer("n_positions")),
        tied=True,
        weights=weights + norm("final_layer_norm", shape.hidden, place="head"),
        notes=(_OWN_HEAD,) if own_head else (),
    )


def _shape(fields: Fields) -> tuple[DecoderShape, int]:
    layers = fields.integer("num_layers", most=MAX_LAYERS)
    heads = fields.integer("num_heads")
    shape = DecoderShape(
        layers=fields.integer("num_decoder_layers", default=layers, most=MAX_LAYERS),
        hidden=fields.integer("d_model"),
        heads=heads,
        kv_heads=heads,
        head_dim=fields.integer("d_kv", default=64),
        vocab=fields.integer("vocab_size"),
    )
    return shape, layers


def _gated(fields: Fields, *, default: bool) -> bool:
    stated = fields.optional_text("feed_forward_proj")
    if stated is None:
        fields.fill("feed_forward_proj", "gated-gelu" if default else "relu")
        return default
    return stated.startswith("gated-")


def _layer(shape: DecoderShape, width: int, spot: Spot, *, gated: bool, cross: bool) -> Weights:
    weights = _attention(shape, "layer.0.SelfAttention", spot)
    if cross:
        weights += _attention(shape, "layer.1.EncDecAttention", spot)
    last = f"layer.{1 + cross}"
    for name in ("wi_0", "wi_1") if gated else ("wi",):
        weights += linear(
            f"{last}.DenseReluDense.{name}",
            (width, shape.hidden),
            component="mlp",
            sharding="column",
            layers=spot.layers,
            place=spot.place,
        )
    weights += linear(
        f"{last}.DenseReluDense.wo",
        (shape.hidden, width),
        component="mlp",
        sharding="row",
        layers=spot.layers,
        place=spot.place,
    )
    for number in range(2 + cross):
        weights += norm(
            f"layer.{number}.layer_norm", shape.hidden, layers=spot.layers, place=spot.place
        )
    return weights


def _attention(shape: DecoderShape, name: str, spot: Spot) -> Weights:
    inner = shape.heads * shape.head_dim
    weights: Weights = ()
    for projection, sharding in _PROJECTIONS:
        out = projection == "o"
        weights += linear(
            f"{name}.{projection}",
            (shape.hidden, inner) if out else (inner, shape.hidden),
            component="attention",
            sharding=sharding,
            layers=spot.layers,
            place=spot.place,
        )
    return weights


def _bias(shape: DecoderShape, buckets: int, spot: Spot) -> Weights:
    return linear(
        "layer.0.SelfAttention.relative_attention_bias",
        (buckets, shape.heads),
        component="attention",
        sharding="replicated",
        layers=spot.layers,
        place=spot.place,
    )
