"""From tensor headers to an exact weight inventory.

Each tensor is looked up in the family's own inventory by name: that says what it is part of and
how it shards, the header says how it is stored. What the inventory does not know is kept as
``other``, whole on every rank, and named in a note.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kvplan.architectures.blocks import Weights
from kvplan.architectures.tensor_names import TensorName, parse_name
from kvplan.models.facts import TensorHeader
from kvplan.models.formats import NumberFormat, ceil_div
from kvplan.models.weights import Component, Place, Sharding, Weight

# Packed and scaled kinds of AWQ and GPTQ are stored with the inputs as rows.
_INPUTS_FIRST = ("qweight", "qzeros", "scales")
_PACKED = ("qweight", "weight_packed", "W_q")
_FLAT = ("absmax", "nested_absmax")
# Some files keep both halves of a gated feed-forward in one tensor.
_GATE_UP = "gate_up_proj"
# A head that is the embedding may be stored all the same.
_HEADS = ("lm_head.weight", "proj_out.weight")
_EMBEDDING = "embed_tokens.weight"
_SHARED = "shared.weight"
_SHOWN = 5


class _Key(NamedTuple):
    """Tensors that differ in layer and expert only."""

    local: str
    kind: str
    place: Place
    component: Component
    dtype: str
    shape: tuple[int, ...]
    size: int


class Catalogue:
    """The family's inventory, ready to be looked up by tensor name."""

    def __init__(self, weights: Weights) -> None:
        self._entries: dict[tuple[bool, str], list[Weight]] = defaultdict(list)
        self._modules: dict[tuple[bool, str], list[Weight]] = defaultdict(list)
        for weight in _distinct(weights):
            tower = weight.place == "tower"
            name = weight.name.partition("[")[0]
            self._entries[tower, name].append(weight)
            if len(weight.shape) > 1:
                self._modules[tower, name.removesuffix(".weight")].append(weight)

    @property
    def shared(self) -> bool:
        """One embedding serves an encoder and a decoder: what each stack stores is a copy."""
        return (False, _SHARED) in self._entries

    def find(self, name: TensorName) -> tuple[Weight, ...]:
        """The entries that a tensor is, or whose scales it holds; several if it is fused."""
        local, module = name.local, name.module
        while True:
            entries = self._named(name.tower, local, module)
            if entries:
                return _of_layer(entries, name.layer)
            # Outside the layers what stands in front of a name differs from file to file.
            if name.layer is not None or "." not in local:
                return ()
            local, module = local.partition(".")[2], module.partition(".")[2]

    def _named(self, tower: bool, local: str, module: str) -> list[Weight]:  # noqa: FBT001 - a key
        found = self._entries.get((tower, local)) or self._modules.get((tower, module))
        if found is not None or _GATE_UP not in module:
            return found or []
        halves = (module.replace(_GATE_UP, half) for half in ("gate_proj", "up_proj"))
        return [entry for half in halves for entry in self._modules.get((tower, half), ())]


def _distinct(weights: Weights) -> Iterable[Weight]:
    """The entries; one that is quantized in some layers only is made one again."""
    distinct: dict[tuple[object, ...], Weight] = {}
    for weight in weights:
        if weight.component == "mtp":
            continue
        key: tuple[object, ...] = (weight.name, weight.component, weight.place == "tower")
        if weight.place == "layers":
            key = (*key, weight.shape, weight.heads)
        known = distinct.get(key)
        if known is not None:
            changes = {"layers": known.layers + weight.layers}
            distinct[key] = known.model_copy(update=changes)
        else:
            distinct[key] = weight
    return distinct.values()


def _of_layer(entries: list[Weight], layer: int | None) -> tuple[Weight, ...]:
    """Those of this layer: two kinds of layers may use one name for matrices that differ."""
    here = tuple(entry for entry in entries if layer in entry.layers)
    return here or tuple(entry for entry in entries if entry.layers == entries[0].layers)


def inventory_of(
    tensors: Iterable[TensorHeader], weights: Weights, *, layers: int, tied: bool
) -> tuple[Weights, tuple[str, ...]]:
    """The exact inventory, and the names of tensors that the family does not know.

    Args:
        tensors: All headers.
        weights: The family's own inventory, computed from the configuration.
        layers: Decoder layers; those beyond are multi-token prediction modules.
        tied: A head that is stored all the same is not loaded.
    """
    catalogue = Catalogue(weights)
    found: dict[_Key, tuple[Weight, ...]] = {}
    at: dict[_Key, Counter[int]] = defaultdict(Counter)
    unknown: list[str] = []
    for tensor in tensors:
        name = parse_name(tensor.name)
        if not name.loaded or not tensor.size or not math.prod(tensor.shape):
            continue
        if tied and name.local.endswith(_HEADS):
            continue
        if name.draft:
            name = name._replace(layer=layers + (name.layer or 0))
        matched = catalogue.find(name)
        if not matched and catalogue.shared and name.local.endswith(_EMBEDDING):
            continue
        key = _key(tensor, name, matched, layers)
        found[key] = matched
        at[key][-1 if name.layer is None else name.layer] += 1
        if not matched and key.component != "mtp":
            unknown.append(tensor.name)
    entries: Weights = ()
    for key, counts in at.items():
        entries += _entries(key, counts, found[key])
    return entries, tuple(unknown)


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


def _key(tensor: TensorHeader, name: TensorName, matched: tuple[Weight, ...], layers: int) -> _Key:
    return _Key(
        local=name.local,
        kind=name.kind,
        place=_place(name, matched),
        component=_component(name, matched, layers),
        dtype=tensor.dtype,
        shape=tensor.shape,
        size=tensor.size,
    )


def _place(name: TensorName, matched: tuple[Weight, ...]) -> Place:
    if name.tower:
        return "tower"
    if name.layer is not None:
        return "layers"
    # A name within the layers that has lost its number would belong to none of them.
    known = matched[0].place if matched else "embedding"
    return "embedding" if known == "layers" else known


def _entries(key: _Key, counts: Mapping[int, int], matched: tuple[Weight, ...]) -> Weights:
    """One entry for each number of copies (experts) that layers have."""
    by_copies: dict[int, list[int]] = defaultdict(list)
    if key.place == "layers":
        for layer, copies in counts.items():
            by_copies[copies].append(layer)
    else:
        by_copies[sum(counts.values())] = []
    result: Weights = ()
    for copies, layers in by_copies.items():
        result += _stored(key, matched, copies=copies, layers=tuple(sorted(layers)))
    return result


def _stored(
    key: _Key, matched: tuple[Weight, ...], *, copies: int, layers: tuple[int, ...]
) -> Weights:
    shape, size = key.shape or (1,), key.size
    if matched and copies == 1 and shape[0] == matched[0].copies > 1:
        # All experts in one tensor.
        copies, size, shape = shape[0], size // shape[0], shape[1:] or (1,)
    shape = _outputs_first(key, shape, matched)
    whole = Weight(
        name=key.local,
        component=key.component,
        shape=shape,
        place=key.place,
        layers=layers,
        copies=copies,
        active_copies=_active(matched, copies),
        format=_format(key.dtype, shape, size),
    )
    if not matched:
        return (whole,)
    parts = _split(shape[0], matched)
    return tuple(_part(whole, key, entry, (rows, *shape[1:])) for entry, rows in parts)


def _part(whole: Weight, key: _Key, entry: Weight, shape: tuple[int, ...]) -> Weight:
    changes = {
        "shape": shape,
        "sharding": _sharding(key, entry, shape),
        "heads": entry.heads,
        "elements": _elements(key, entry, shape),
    }
    return whole.model_copy(update=changes)


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
    key: _Key, shape: tuple[int, ...], matched: tuple[Weight, ...]
) -> tuple[int, ...]:
    if len(shape) != 2:
        return shape
    if key.kind in _INPUTS_FIRST:
        return shape[::-1]
    whole = (sum(entry.shape[0] for entry in matched), *matched[0].shape[1:]) if matched else ()
    return shape[::-1] if whole == shape[::-1] else shape


def _format(dtype: str, shape: tuple[int, ...], size: int) -> NumberFormat:
    bits, rest = divmod(8 * size, math.prod(shape))
    # What does not come out in whole bits an element is carried by the tensor as a whole.
    return NumberFormat(
        name=dtype.lower(),
        bits=bits,
        tensor_bytes=size - ceil_div(math.prod(shape) * bits, 8) if rest else 0,
        source="the tensors' headers",
    )


def _split(rows: int, matched: tuple[Weight, ...]) -> list[tuple[Weight, int]]:
    """The rows of each part of a fused tensor, or all rows under the first entry."""
    total = sum(entry.shape[0] for entry in matched)
    if len(matched) > 1 and all(rows * entry.shape[0] % total == 0 for entry in matched):
        return [(entry, rows * entry.shape[0] // total) for entry in matched]
    return [(matched[0], rows)]


def _sharding(key: _Key, entry: Weight, shape: tuple[int, ...]) -> Sharding:
    if key.kind in _FLAT or (len(shape) == 2 and shape[1] == 1 < entry.shape[-1]):
        # Elements one after another, or their scales: cut with the matrix, whichever way that is.
        return "replicated" if entry.sharding == "replicated" else "column"
    if len(shape) == 1 and shape[0] != entry.shape[0]:
        return "replicated"
    if entry.sharding == "kv_heads" and shape[0] % entry.heads:
        return "replicated"
    return entry.sharding


def _elements(key: _Key, entry: Weight, shape: tuple[int, ...]) -> int | None:
    if key.kind in _PACKED:
        return math.prod(entry.shape)
    if key.kind == "bias":
        return None
    if key.kind != "weight" and not f".{key.local}".endswith(f".{entry.name}"):
        return 0
    # A "weight" with fewer containers than the matrix has elements is packed.
    packed = len(shape) > 1 and math.prod(shape) < math.prod(entry.shape)
    return math.prod(entry.shape) if packed else None
