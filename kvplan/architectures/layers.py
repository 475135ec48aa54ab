"""Which layers keep everything and which only a window: patterns, as configurations state them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeVar

from kvplan.architectures.fields import MAX_LAYERS, MAX_POSITIONS, Fields
from kvplan.architectures.shapes import DecoderShape
from kvplan.errors import NotModelledError
from kvplan.models.caches import FullCache, LayerCache, WindowCache
from kvplan.models.spec import Layer

Key = TypeVar("Key", bound=Hashable)

FULL, SLIDING = "full_attention", "sliding_attention"

# Spellings of older files: transformers v5.24.0 src/transformers/configuration_utils.py
_OLD_SPELLING = {"attention": FULL}


def read_window(
    fields: Fields, name: str = "sliding_window", *, default: int | None = None
) -> int | None:
    """The window in tokens, or None if it is off.

    Some checkpoints write 0 for "off"; vLLM reads it so too (v0.33.0 vllm/config/model.py).
    """
    return fields.optional_integer(name, default=default, least=0, most=MAX_POSITIONS) or None


def same_layers(shape: DecoderShape, *, window: int | None) -> tuple[Layer, ...]:
    """All layers alike: windowed if there is a window, full otherwise."""
    return (_layer(shape, window),) * shape.layers


def typed_layers(
    fields: Fields, shape: DecoderShape, types: Sequence[str], *, window: int | None
) -> tuple[Layer, ...]:
    """One layer a type.

    Raises:
        InputError: a sliding layer, and no window stated.
    """
    return mixed_layers(fields, types, full=shape, sliding=shape, window=window)


def mixed_layers(
    fields: Fields,
    types: Sequence[str],
    *,
    full: DecoderShape,
    sliding: DecoderShape,
    window: int | None,
    value_dim: int | None = None,
) -> tuple[Layer, ...]:
    """One layer a type, where full and windowed layers may have other heads.

    Args:
        fields: For error messages.
        types: Full or sliding, layer by layer.
        full: Sizes of the full layers.
        sliding: Sizes of the windowed ones.
        window: Tokens of the window.
        value_dim: Elements of a head's value; None: as many as of its key.

    Raises:
        InputError: a sliding layer, and no window stated.
    """
    if window is None and SLIDING in types:
        raise fields.conflict("Some layers have a sliding window, but its size is not stated.")
    whole, windowed = _layer(full, None, value_dim), _layer(sliding, window, value_dim)
    return tuple(windowed if kind == SLIDING else whole for kind in types)


def read_layer_types(fields: Fields, layers: int) -> tuple[str, ...] | None:
    """The file's own list of layer types, or None.

    Raises:
        InputError: as many types as layers have to be given.
        NotModelledError: a type that the classes modelled here do not have.
    """
    stated = fields.texts("layer_types", most=MAX_LAYERS)
    if stated is None:
        return None
    if len(stated) != layers:
        raise fields.conflict(f"`layer_types` lists {len(stated)} layers of {layers}.")
    types = tuple(_OLD_SPELLING.get(kind, kind) for kind in stated)
    for kind in types:
        if kind not in (FULL, SLIDING):
            raise NotModelledError(
                f"Layers of type {kind[:40]!r} are not modelled for this family.",
                hint=f"Known are {FULL} and {SLIDING}.",
            )
    return types


def every_nth_full(layers: int, period: int) -> tuple[str, ...]:
    """Windows, with a full layer at the end of each ``period`` layers.

    >>> every_nth_full(4, 2)
    ('sliding_attention', 'full_attention', 'sliding_attention', 'full_attention')
    """
    return tuple(FULL if (layer + 1) % period == 0 else SLIDING for layer in range(layers))


def read_pattern(fields: Fields, layers: int, *, default: int) -> tuple[str, ...]:
    """Layer types from ``layer_types`` or ``sliding_window_pattern``.

    The pattern is a period, or letters L (local, a window) and G (global, full) that repeat.
    """
    types = read_layer_types(fields, layers)
    if types is not None:
        return types
    name = "sliding_window_pattern"
    stated = fields.raw(name)
    if isinstance(stated, str):
        letters = stated.upper()
        if not letters or set(letters) - {"L", "G"}:
            raise fields.error(name, stated, "a number of layers, or letters L and G")
        kinds = {"L": SLIDING, "G": FULL}
        return tuple(kinds[letters[layer % len(letters)]] for layer in range(layers))
    return every_nth_full(layers, fields.integer(name, default=default, most=MAX_LAYERS))


def grouped(keys: Sequence[Key]) -> dict[Key, tuple[int, ...]]:
    """The layers by what they have in common.

    >>> grouped(["a", "b", "a"])
    {'a': (0, 2), 'b': (1,)}
    """
    groups: dict[Key, list[int]] = defaultdict(list)
    for layer, key in enumerate(keys):
        groups[key].append(layer)
    return {key: tuple(layers) for key, layers in groups.items()}


def _layer(shape: DecoderShape, window: int | None, value_dim: int | None = None) -> Layer:
    heads, key, value = shape.kv_heads, shape.head_dim, value_dim or shape.head_dim
    cache: LayerCache
    if window is None:
        cache = FullCache(kv_heads=heads, head_dim=key, head_dim_v=value)
    else:
        cache = WindowCache(kv_heads=heads, head_dim=key, head_dim_v=value, window=window)
    return Layer(caches=(cache,))
