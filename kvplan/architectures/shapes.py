"""DecoderShape: the handful of sizes that every decoder has, read and checked together."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.fields import MAX_LAYERS, Fields

_NO_DEFAULTS: Mapping[str, int] = MappingProxyType({})


class DecoderShape(BaseModel):
    """Sizes of a decoder.

    Attributes:
        layers: Decoder layers.
        hidden: Width of the residual stream.
        heads: Query heads of a layer.
        kv_heads: Key and value heads of a layer, before any replication.
        head_dim: Elements of one head's query, key and value.
        vocab: Rows of the embedding, unpadded.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int

    @property
    def every(self) -> tuple[int, ...]:
        """The indices of all layers."""
        return tuple(range(self.layers))


def read_shape(
    fields: Fields,
    *,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    defaults: Mapping[str, int] = _NO_DEFAULTS,
    layer_names: tuple[str, ...] = ("num_hidden_layers",),
) -> DecoderShape:
    """Reads the sizes under the names that most classes use.

    Args:
        fields: The configuration of the decoder.
        kv_heads: The class default of ``num_key_value_heads``; None: as many as query heads.
        head_dim: The class default; None: hidden size over heads.
        defaults: Class defaults of the other sizes, where real files leave them out.
        layer_names: Names of the number of layers, in the class's order of preference.

    Raises:
        InputError: a size is missing, no size, or does not go with the others.
    """
    heads = fields.integer("num_attention_heads", default=defaults.get("num_attention_heads"))
    hidden = fields.integer("hidden_size", default=defaults.get("hidden_size"))
    shape = DecoderShape(
        layers=fields.integer(
            *layer_names, default=defaults.get("num_hidden_layers"), most=MAX_LAYERS
        ),
        hidden=hidden,
        heads=heads,
        kv_heads=_kv_heads(fields, heads, kv_heads),
        head_dim=_head_dim(fields, hidden, heads, head_dim),
        vocab=fields.integer("vocab_size", default=defaults.get("vocab_size")),
    )
    return checked(fields, shape)


def checked(fields: Fields, shape: DecoderShape) -> DecoderShape:
    """The shape itself, if query heads can share the KV heads evenly.

    Raises:
        InputError: they can't.
    """
    if shape.heads % shape.kv_heads:
        raise fields.conflict(
            f"{shape.heads} attention heads can't share {shape.kv_heads} KV heads evenly."
        )
    return shape


def split_evenly(fields: Fields, hidden: int, heads: int) -> int:
    """The head size of classes that always cut the hidden size into heads.

    Raises:
        InputError: it does not come out even.
    """
    if hidden % heads:
        raise fields.conflict(f"The hidden size {hidden} is not a multiple of {heads} heads.")
    return hidden // heads


def _kv_heads(fields: Fields, heads: int, default: int | None) -> int:
    stated = fields.optional_integer("num_key_value_heads", default=default)
    if stated is None:
        fields.fill("num_key_value_heads", heads)
        return heads
    return stated


def _head_dim(fields: Fields, hidden: int, heads: int, default: int | None) -> int:
    # Null and absent differ: a class default fills in the absent one only.
    stated = fields.optional_integer("head_dim", default=default)
    if stated is None:
        stated = split_evenly(fields, hidden, heads)
        fields.fill("head_dim", stated)
    return stated
