"""OpenELM: heads and feed-forwards that grow from layer to layer."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy, Ends, decoder
from kvplan.architectures.blocks import (
    Weights,
    attention,
    gated_mlp,
    layer_norms,
    plain_mlp,
    qk_norms,
)
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.layers import grouped, same_layers
from kvplan.architectures.shapes import DecoderShape, checked
from kvplan.models.spec import Layer

_MLP = ("ffn.proj_1", "ffn.proj_2")
_MOST_HEADS = 2**16
_MOST_MULTIPLE = 1024
_ROUNDED_OFF_TOO_MUCH = 0.9


def openelm(fields: Fields) -> Anatomy:
    """OpenELM 270M to 3B. The files list heads and multiples for every layer."""
    shape = _shape(fields)
    heads = _listed(fields, "num_query_heads", shape.layers)
    kv_heads = _listed(fields, "num_kv_heads", shape.layers)
    widths = _widths(fields, shape)
    body: Weights = layer_norms(shape, ("attn_norm", "ffn_norm"))
    if fields.flag("normalize_qk_projections", default=False):
        names = ("attn.q_norm", "attn.k_norm")
        body += qk_norms(shape, (shape.head_dim, shape.head_dim), names=names)
    caches: dict[int, Layer] = {}
    for pair, layers in grouped(tuple(zip(heads, kv_heads, strict=True))).items():
        update = {"heads": pair[0], "kv_heads": pair[1]}
        part = checked(fields, shape.model_copy(update=update))
        body += attention(part, qkv="attn.qkv_proj", out="attn.out_proj", layers=layers)
        caches.setdefault(pair[1], same_layers(part, window=None)[0])
    gated = fields.flag("ffn_with_glu", default=True)
    for width, layers in grouped(widths).items():
        body += (
            gated_mlp(shape.hidden, width, layers=layers, names=_MLP)
            if gated
            else plain_mlp(shape.hidden, width, layers=layers, names=_MLP, bias=False)
        )
    return decoder(
        shape.model_copy(update={"heads": max(heads)}),
        body,
        layers=tuple(caches[count] for count in kv_heads),
        intermediate=max(widths),
        tied=fields.flag("share_input_output_layers", "tie_word_embeddings", default=True),
        ends=Ends(embed="token_embeddings"),
    )


def _shape(fields: Fields) -> DecoderShape:
    return DecoderShape(
        layers=fields.integer("num_transformer_layers", "num_hidden_layers", most=MAX_LAYERS),
        hidden=fields.integer("model_dim", "hidden_size"),
        heads=1,
        kv_heads=1,
        head_dim=fields.integer("head_dim", default=128),
        vocab=fields.integer("vocab_size"),
    )


def _listed(fields: Fields, name: str, layers: int) -> tuple[int, ...]:
    stated = fields.integers(name, least=1, most=_MOST_HEADS)
    if stated is None or len(stated) != layers:
        raise fields.conflict(f"`{name}` has to list the heads of each of {layers} layers.")
    return stated


def _widths(fields: Fields, shape: DecoderShape) -> tuple[int, ...]:
    name = "ffn_multipliers"
    stated = fields.raw(name)
    divisor = fields.integer("ffn_dim_divisor", default=256)
    multiples = list(stated) if isinstance(stated, list | tuple) else [stated] * shape.layers
    if len(multiples) != shape.layers:
        raise fields.conflict(f"`{name}` lists {len(multiples)} layers of {shape.layers}.")
    for multiple in multiples:
        if isinstance(multiple, bool) or not isinstance(multiple, int | float):
            raise fields.error(name, stated, "a number for each layer")
        if not 0 < multiple <= _MOST_MULTIPLE:
            raise fields.error(name, stated, f"numbers up to {_MOST_MULTIPLE}")
    return tuple(_divisible(multiple * shape.hidden, divisor) for multiple in multiples)


def _divisible(size: float, divisor: int) -> int:
    """Rounded to a multiple, but not down by more than a tenth.

    ``ml-explore/mlx-lm@269906bf:mlx_lm/models/openelm.py`` make_divisible.
    """
    rounded = max(divisor, int(size + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < _ROUNDED_OFF_TOO_MUCH * size else rounded
