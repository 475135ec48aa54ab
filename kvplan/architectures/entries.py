"""Catalogue: a family's own inventory, ready to be looked up by a tensor's name."""

from __future__ import annotations

from collections import defaultdict

from kvplan.architectures.blocks import Weights
from kvplan.architectures.tensor_names import TensorName
from kvplan.models.weights import Weight

# Some files keep both halves of a gated feed-forward in one tensor.
_GATE_UP = "gate_up_proj"
_SHARED = "shared.weight"


class Catalogue:
    """The inventory by name, without modules for multi-token prediction."""

    def __init__(self, weights: Weights) -> None:
        self.entries: tuple[Weight, ...] = _distinct(weights)
        self._named: dict[tuple[bool, str], list[Weight]] = defaultdict(list)
        self._modules: dict[tuple[bool, str], list[Weight]] = defaultdict(list)
        # By identity: comparing entries, or walking through their layers, is slow.
        self._layers = {id(entry): frozenset(entry.layers) for entry in self.entries}
        for entry in self.entries:
            tower = entry.place == "tower"
            name = base_name(entry)
            self._named[tower, name].append(entry)
            if len(entry.shape) > 1:
                self._modules[tower, name.removesuffix(".weight")].append(entry)

    @property
    def shared(self) -> bool:
        """One embedding serves an encoder and a decoder: what each stack stores is a copy."""
        return (False, _SHARED) in self._named

    def find(self, name: TensorName) -> tuple[Weight, ...]:
        """The entries that a tensor is, or whose scales it holds; several if it is fused."""
        local, module = name.local, name.module
        while True:
            entries = self._look_up(name.tower, local, module)
            if entries:
                return self._of_layer(entries, name.layer)
            # Outside the layers what stands in front of a name differs from file to file.
            if name.layer is not None or "." not in local:
                return ()
            local, module = local.partition(".")[2], module.partition(".")[2]

    def _look_up(self, tower: bool, local: str, module: str) -> list[Weight]:  # noqa: FBT001 - a key
        found = self._named.get((tower, local)) or self._modules.get((tower, module))
        if found is not None or _GATE_UP not in module:
            return found or []
        halves = (module.replace(_GATE_UP, half) for half in ("gate_proj", "up_proj"))
        return [entry for half in halves for entry in self._modules.get((tower, half), ())]

    def _of_layer(self, entries: list[Weight], layer: int | None) -> tuple[Weight, ...]:
        """Those of this layer: two kinds of layers may use one name for matrices that differ."""
        here = tuple(entry for entry in entries if layer in self._layers[id(entry)])
        return here or tuple(
            entry for entry in entries if self._layers[id(entry)] == self._layers[id(entries[0])]
        )


def base_name(entry: Weight) -> str:
    """The tensor's name, without the part of it that a fused entry is."""
    return entry.name.partition("[")[0]


def _distinct(weights: Weights) -> tuple[Weight, ...]:
    """The entries; one that is quantized in some layers only is made one again."""
    distinct: dict[tuple[object, ...], list[Weight]] = defaultdict(list)
    for weight in weights:
        if weight.component == "mtp":
            continue
        key: tuple[object, ...] = (weight.name, weight.component, weight.place == "tower")
        if weight.place == "layers":
            key = (*key, weight.shape, weight.heads)
        distinct[key].append(weight)
    return tuple(_joined(same) for same in distinct.values())


def _joined(same: list[Weight]) -> Weight:
    if len(same) == 1:
        return same[0]
    layers = tuple(layer for weight in same for layer in weight.layers)
    return same[0].model_copy(update={"layers": layers})
