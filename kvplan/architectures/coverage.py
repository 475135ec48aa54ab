"""Whether a model's files hold what its configuration describes.

A folder may hold some of the shards, or files of another model. The bytes of such files are no
weights of this model. What the family's inventory lacks, or what a file stores in another form
(packed, stacked, fused under a name of its own), is no gap.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kvplan.architectures.entries import base_name
from kvplan.architectures.headers import FLOATS, NO_LAYER, Group, Key, Sorted
from kvplan.models.weights import Weight

# Vectors that a formula knows and a file leaves out, or the other way round, are this small.
_SMALL = 0.005
# Towers have tables of positions and the like that configurations do not size.
_SMALL_IN_TOWERS = 0.05
# Vocabularies are padded, and extended by fine-tunes, without a word in the configuration.
_VOCABULARY = 0.1
_FOREIGN = 0.01
_TOWER = -2

_Slot = tuple[int, int]
"""An entry, by its identity, and a layer (`NO_LAYER` outside of them, or the towers)."""


class _Held(NamedTuple):
    """Elements that the files hold of each entry, and of what is not known, by layer."""

    entries: dict[_Slot, int]
    spare: Counter[int]


class _Room(NamedTuple):
    """What one layer, the towers or the rest ought to hold, and lack."""

    expected: int
    missing: int
    absent: tuple[Weight, ...]


def gap_note(found: Sorted, entries: tuple[Weight, ...]) -> str | None:
    """What speaks against taking the weights from the files, as a sentence, or None.

    Args:
        found: The files' tensors.
        entries: The inventory that the configuration gives.
    """
    return _foreign(found.groups, entries) or _incomplete(found, entries)


def _foreign(groups: tuple[Group, ...], entries: tuple[Weight, ...]) -> str | None:
    """The sentence about tensors whose shapes contradict the configuration."""
    whole = sum(entry.parameters for entry in entries)
    contrary = [group for group in groups if _contradicts(group)]
    share = sum(_elements(group) * sum(group.at.values()) for group in contrary)
    if share <= _FOREIGN * whole:
        return None
    key, matched, _ = max(contrary, key=_elements)
    shapes = [_shown(key.shape), _shown(_together(matched))]
    return (
        f"The files do not fit the configuration: {key.local} has the shape {shapes[0]} and not"
        f" {shapes[1]}; weights are computed from the configuration."
    )


def _shown(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape[:4])) or "of one number"


def _together(matched: tuple[Weight, ...]) -> tuple[int, ...]:
    return (sum(entry.shape[0] for entry in matched), *matched[0].shape[1:])


def _contradicts(group: Group) -> bool:
    key, matched, _ = group
    if key.dtype not in FLOATS or key.place == "tower" or key.component == "mtp":
        return False
    if not _is_named(key, matched[0]):
        return False
    expected = _elements(group)
    difference = abs(math.prod(key.shape) - expected)
    tolerance = _VOCABULARY if matched[0].sharding == "vocab" else 0
    return difference > tolerance * expected


def _is_named(key: Key, entry: Weight) -> bool:
    return key.kind == "weight" or f".{key.local}".endswith(f".{base_name(entry)}")


def _elements(group: Group) -> int:
    """Elements that one tensor of the group has by the configuration."""
    one = sum(map(_of_one, group.matched))
    copies = group.matched[0].copies
    return one * (copies if copies > 1 and group.key.shape[:1] == (copies,) else 1)


def _of_one(entry: Weight) -> int:
    return math.prod(entry.shape) if entry.elements is None else entry.elements


def _incomplete(found: Sorted, entries: tuple[Weight, ...]) -> str | None:
    """The sentence about layers or tensors that the files lack."""
    held = _held(found, entries)
    rooms = _rooms(entries, held.entries)
    layers = sum(layer >= 0 for layer in rooms)
    # Drafts of one layer name it otherwise, and without a number.
    anywhere = held.spare[NO_LAYER] if layers == 1 else 0
    gaps = {
        layer: room
        for layer, room in rooms.items()
        if _is_gap(layer, room, filled=held.spare[layer] + anywhere)
    }
    return _gap_sentence(gaps, layers) if gaps else None


def _is_gap(layer: int, room: _Room, *, filled: int) -> bool:
    missing = room.missing - filled
    if layer == _TOWER:
        return missing > _SMALL_IN_TOWERS * room.expected
    matrices = any(len(entry.shape) > 1 for entry in room.absent)
    return missing > 0 and (matrices or missing > _SMALL * room.expected)


def _gap_sentence(gaps: dict[int, _Room], layers: int) -> str:
    empty = sum(layer >= 0 and room.missing == room.expected for layer, room in gaps.items())
    if empty:
        what = f"hold {layers - empty} of {layers} layers"
    else:
        layer, room = next(iter(gaps.items()))
        where = f" of layer {layer}" if layer >= 0 else ""
        lacking = f"all of {base_name(room.absent[0])}" if room.absent else "some of the weights"
        what = f"lack {lacking}{where}" if layer != _TOWER else "lack some of the tower's weights"
    return f"The files {what}; weights are computed from the configuration."


def _rooms(entries: tuple[Weight, ...], held: dict[_Slot, int]) -> dict[int, _Room]:
    expected: Counter[int] = Counter()
    missing: Counter[int] = Counter()
    absent: defaultdict[int, list[Weight]] = defaultdict(list)
    for entry in entries:
        for layer, elements in _expected(entry):
            found = held.get((id(entry), layer), 0)
            expected[layer] += elements
            if entry.sharding != "vocab" or found < (1 - _VOCABULARY) * elements:
                missing[layer] += max(0, elements - found)
            if elements and not found:
                absent[layer].append(entry)
    return {
        layer: _Room(expected[layer], missing[layer], tuple(absent[layer])) for layer in expected
    }


def _expected(entry: Weight) -> Iterator[tuple[int, int]]:
    """Each layer that has the entry, and the elements there."""
    if entry.place != "layers":
        yield _home(entry), entry.parameters
        return
    elements = entry.parameters // len(entry.layers) if entry.layers else 0
    for layer in entry.layers:
        yield layer, elements


def _home(entry: Weight) -> int:
    return _TOWER if entry.place == "tower" else NO_LAYER


def _held(found: Sorted, entries: tuple[Weight, ...]) -> _Held:
    expected = {(id(entry), layer) for entry in entries for layer, _ in _expected(entry)}
    held: Counter[_Slot] = Counter()
    spare: Counter[int] = Counter()
    for group in found.groups:
        if group.key.component == "mtp":
            continue
        parts = _parts(group)
        for layer, count in _by_room(group):
            for entry, elements in parts:
                home = layer if entry.place == "layers" else _home(entry)
                if (id(entry), home) in expected:
                    held[id(entry), home] += elements * count
                else:
                    spare[layer] += elements * count
    for loose, (elements, size) in found.loose.items():
        # Of an unknown type no more is known than that an element takes a bit.
        most = elements if loose.dtype in FLOATS else 8 * size
        if loose.component != "mtp":
            spare[_TOWER if loose.place == "tower" else loose.layer] += most
    return _Held(held, spare)


def _by_room(group: Group) -> Iterable[tuple[int, int]]:
    if group.key.place == "tower":
        return ((_TOWER, sum(group.at.values())),)
    return (
        group.at.items() if group.key.place == "layers" else ((NO_LAYER, sum(group.at.values())),)
    )


def _parts(group: Group) -> tuple[tuple[Weight, int], ...]:
    """The elements that one tensor holds of each entry it belongs to."""
    key = group.key
    plain = key.dtype in FLOATS
    expected = _elements(group)
    if plain:
        found = math.prod(key.shape) if _is_named(key, group.matched[0]) else 0
    else:
        # Of what is packed, nothing but elements takes a bit an element: scales take less.
        found = expected if 8 * key.size >= expected else 0
    whole = sum(map(_of_one, group.matched)) or 1
    return tuple((entry, found * _of_one(entry) // whole) for entry in group.matched)
