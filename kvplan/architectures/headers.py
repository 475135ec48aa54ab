"""From tensor headers to an exact weight inventory.

Each tensor is looked up in the family's own inventory by name: that says what it is part of and
how it shards, the header says how it is stored. What the inventory does not know is kept as
``other``, whole on every rank, and named in a note.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from kvplan.architectures.blocks import Weights
from kvplan.architectures.entries import Catalogue
from kvplan.architectures.tensor_names import TensorName, parse_name
from kvplan.models.facts import TensorHeader
from kvplan.models.formats import NumberFormat, ceil_div
from kvplan.models.weights import Component, Place, Sharding, Weight

# Packed and scaled kinds of AWQ and GPTQ are stored with the inputs as rows.
_INPUTS_FIRST = ("qweight", "qzeros", "scales")
_PACKED = ("qweight", "weight_packed", "W_q")
_FLAT = ("absmax", "nested_absmax")
# A head that is the embedding may be stored all the same.
_HEADS = ("lm_head.weight", "proj_out.weight")
_EMBEDDING = "embed_tokens.weight"
_SHOWN = 5
NO_LAYER = -1
# Models of many kinds of layers have some thousands. What comes after them is counted as a whole.
_MOST_GROUPS = 10_000
FLOATS = frozenset(
    ("BF16", "F16", "F32", "F64", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ")
)
"""Types whose tensors hold one element a place; others may pack several in one."""


class Key(NamedTuple):
    """Tensors that differ in layer and expert only."""

    local: str
    kind: str
    place: Place
    component: Component
    dtype: str
    shape: tuple[int, ...]
    size: int


class Group(NamedTuple):
    """Tensors that differ in layer and expert only.

    Attributes:
        key: What they have in common.
        matched: The family's entries that they are, or whose scales they hold.
        at: How many there are by layer; those outside the layers under `NO_LAYER`.
    """

    key: Key
    matched: tuple[Weight, ...]
    at: dict[int, int]


class Loose(NamedTuple):
    """What tensors that the family does not know are counted by."""

    component: Component
    place: Place
    layer: int
    dtype: str


class Sorted(NamedTuple):
    """A checkpoint's tensors, each in its place.

    Attributes:
        groups: Those that the family knows.
        loose: Elements (as the shapes say) and bytes of all others.
        unknown: The names of the others, but for those of draft modules.
    """

    groups: tuple[Group, ...]
    loose: dict[Loose, tuple[int, int]]
    unknown: tuple[str, ...]


class _Spot(NamedTuple):
    """What a tensor's name says, however the tensor is stored."""

    name: TensorName
    local: str
    matched: tuple[Weight, ...]
    place: Place
    component: Component


class _Sorter:
    """Finds each name's spot once: experts have as many tensors of one name as there are."""

    def __init__(self, catalogue: Catalogue, *, layers: int, tied: bool) -> None:
        self._catalogue = catalogue
        self._layers = layers
        self._tied = tied
        self._spots: dict[TensorName, _Spot | None] = {}

    def spot(self, tensor_name: str) -> _Spot | None:
        """The spot, or None if an engine does not load such a tensor."""
        name = parse_name(tensor_name)
        try:
            return self._spots[name]
        except KeyError:
            spot = self._find(name)
            if spot is None or spot.matched:
                self._spots[name] = spot
            return spot

    def _find(self, name: TensorName) -> _Spot | None:
        local = name.local
        if not name.loaded or (self._tied and local.endswith(_HEADS)):
            return None
        if name.draft:
            name = name._replace(layer=self._layers + (name.layer or 0))
        matched = self._catalogue.find(name)
        if not matched and self._catalogue.shared and local.endswith(_EMBEDDING):
            return None
        component = _component(name, matched, self._layers)
        return _Spot(name, local, matched, _place(name, matched), component)


def sort_tensors(
    tensors: Iterable[TensorHeader], catalogue: Catalogue, *, layers: int, tied: bool
) -> Sorted:
    """Puts each tensor in its place in the model.

    Args:
        tensors: All headers.
        catalogue: The family's own inventory, computed from the configuration.
        layers: Decoder layers; those beyond are multi-token prediction modules.
        tied: A head that is stored all the same is not loaded.
    """
    sorter = _Sorter(catalogue, layers=layers, tied=tied)
    groups: dict[Key, Group] = {}
    loose: dict[Loose, tuple[int, int]] = {}
    unknown: list[str] = []
    for tensor in tensors:
        spot = sorter.spot(tensor.name)
        if spot is None or not tensor.size or not math.prod(tensor.shape):
            continue
        if spot.matched and len(groups) < _MOST_GROUPS:
            _add(groups, spot, tensor)
            continue
        _add_loose(loose, spot, tensor)
        if spot.component != "mtp":
            unknown.append(tensor.name)
    return Sorted(tuple(groups.values()), loose, tuple(unknown))


def _add(groups: dict[Key, Group], spot: _Spot, tensor: TensorHeader) -> None:
    key = Key(
        spot.local,
        spot.name.kind,
        spot.place,
        spot.component,
        tensor.dtype,
        tensor.shape,
        tensor.size,
    )
    group = groups.get(key)
    if group is None:
        group = groups[key] = Group(key, spot.matched, {})
    layer = _layer(spot)
    group.at[layer] = group.at.get(layer, 0) + 1


def _add_loose(loose: dict[Loose, tuple[int, int]], spot: _Spot, tensor: TensorHeader) -> None:
    layer = _layer(spot) if spot.place == "layers" else NO_LAYER
    key = Loose(spot.component, spot.place, layer, tensor.dtype)
    elements, size = loose.get(key, (0, 0))
    loose[key] = (elements + math.prod(tensor.shape), size + tensor.size)


def _layer(spot: _Spot) -> int:
    return NO_LAYER if spot.name.layer is None else spot.name.layer


def exact_weights(found: Sorted) -> Weights:
    """The inventory as the files hold it."""
    known = (entry for group in found.groups for entry in _entries(group))
    return (*known, *_loose_entries(found.loose))


def _loose_entries(loose: Mapping[Loose, tuple[int, int]]) -> Iterator[Weight]:
    """One entry for layers that have as much of a type."""
    layers: dict[tuple[Loose, int, int], list[int]] = {}
    for key, (elements, size) in loose.items():
        layers.setdefault((key._replace(layer=NO_LAYER), elements, size), []).append(key.layer)
    for (key, elements, size), at in layers.items():
        yield Weight(
            name="other",
            component=key.component,
            shape=(elements,),
            place=key.place,
            layers=tuple(sorted(at)) if key.place == "layers" else (),
            format=_format(key.dtype, elements, size),
        )


def bytes_by_dtype(tensors: Iterable[TensorHeader]) -> dict[str, int]:
    """Tensor bytes by the header's type name."""
    sizes: Counter[str] = Counter()
    for tensor in tensors:
        sizes[tensor.dtype] += tensor.size
    return dict(sizes)


def unknown_note(unknown: tuple[str, ...]) -> tuple[str, ...]:
    """The sentence about tensors that the family does not know."""
    if not unknown:
        return ()
    shown = ", ".join(name[:80] for name in unknown[:_SHOWN])
    more = f" and {len(unknown) - _SHOWN:,} more" if len(unknown) > _SHOWN else ""
    return (f"Tensors of unknown purpose are counted on every rank: {shown}{more}.",)


def _place(name: TensorName, matched: tuple[Weight, ...]) -> Place:
    if name.tower:
        return "tower"
    if name.layer is not None:
        return "layers"
    # A name within the layers that has lost its number would belong to none of them.
    known = matched[0].place if matched else "embedding"
    return "embedding" if known == "layers" else known


def _entries(group: Group) -> Iterator[Weight]:
    """One entry for each number of copies (experts) that layers have."""
    by_copies: dict[int, list[int]] = {}
    if group.key.place == "layers":
        for layer, copies in group.at.items():
            by_copies.setdefault(copies, []).append(layer)
    else:
        by_copies[sum(group.at.values())] = []
    for copies, layers in by_copies.items():
        yield from _stored(group.key, group.matched, copies=copies, layers=tuple(sorted(layers)))


def _stored(
    key: Key, matched: tuple[Weight, ...], *, copies: int, layers: tuple[int, ...]
) -> Iterator[Weight]:
    shape, size = key.shape or (1,), key.size
    if copies == 1 and shape[0] == matched[0].copies > 1:
        # All experts in one tensor.
        copies, size, shape = shape[0], size // shape[0], shape[1:] or (1,)
    shape = _outputs_first(key, shape, matched)
    stored = _format(key.dtype, math.prod(shape), size)
    active = _active(matched, copies)
    for entry, rows in _split(shape[0], matched):
        part = (rows, *shape[1:])
        yield Weight(
            name=key.local,
            component=key.component,
            shape=part,
            place=key.place,
            layers=layers,
            copies=copies,
            active_copies=active,
            sharding=_sharding(key, entry, part),
            heads=entry.heads,
            format=stored,
            elements=_elements(key, entry, part),
        )


def _active(matched: tuple[Weight, ...], copies: int) -> int:
    routed = matched and matched[0].component == "experts"
    return min(matched[0].active_copies, copies) if routed else copies


def _component(name: TensorName, matched: tuple[Weight, ...], layers: int) -> Component:
    if name.layer is not None and not name.tower and name.layer >= layers:
        return "mtp"
    if matched:
        return matched[0].component
    return "vision" if name.tower else "other"


def _outputs_first(
    key: Key, shape: tuple[int, ...], matched: tuple[Weight, ...]
) -> tuple[int, ...]:
    if len(shape) != 2:
        return shape
    if key.kind in _INPUTS_FIRST:
        return shape[::-1]
    whole = (sum(entry.shape[0] for entry in matched), *matched[0].shape[1:]) if matched else ()
    return shape[::-1] if whole == shape[::-1] else shape


def _format(dtype: str, elements: int, size: int) -> NumberFormat:
    bits, rest = divmod(8 * size, elements)
    # What does not come out in whole bits an element is carried by the tensor as a whole.
    carried = size - ceil_div(elements * bits, 8) if rest else 0
    return _number_format(dtype.lower(), bits, carried)


@lru_cache(maxsize=1024)
def _number_format(name: str, bits: int, carried: int) -> NumberFormat:
    source = "the tensors' headers"
    return NumberFormat(name=name, bits=bits, tensor_bytes=carried, source=source)


def _split(rows: int, matched: tuple[Weight, ...]) -> list[tuple[Weight, int]]:
    """The rows of each part of a fused tensor, or all rows under the first entry."""
    total = sum(entry.shape[0] for entry in matched)
    if len(matched) > 1 and all(rows * entry.shape[0] % total == 0 for entry in matched):
        return [(entry, rows * entry.shape[0] // total) for entry in matched]
    return [(matched[0], rows)]


def _sharding(key: Key, entry: Weight, shape: tuple[int, ...]) -> Sharding:
    if key.kind in _FLAT or (len(shape) == 2 and shape[1] == 1 < entry.shape[-1]):
        # Elements one after another, or their scales: cut with the matrix, whichever way that is.
        return "replicated" if entry.sharding == "replicated" else "column"
    if len(shape) == 1 and shape[0] != entry.shape[0]:
        return "replicated"
    if entry.sharding == "kv_heads" and shape[0] % entry.heads:
        return "replicated"
    return entry.sharding


def _elements(key: Key, entry: Weight, shape: tuple[int, ...]) -> int | None:
    if key.kind in _PACKED:
        return math.prod(entry.shape)
    if key.kind == "bias":
        return None
    if key.kind != "weight" and not f".{key.local}".endswith(f".{entry.name}"):
        return 0
    # A "weight" with fewer containers than the matrix has elements is packed.
    packed = (
        key.dtype not in FLOATS and len(shape) > 1 and math.prod(shape) < math.prod(entry.shape)
    )
    return math.prod(entry.shape) if packed else None
