"""Where each tensor is loaded: by its layer, the embedding on the host, the head with the output.

Source: ggml-org/llama.cpp@0c1e57098 src/llama-arch.cpp (``LLM_TENSOR_INFOS``) and
src/llama-model.cpp (``load_tensors``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from kvplan.engines.llamacpp.placement import HOST, Placement
from kvplan.models.formats import PLAIN, NumberFormat
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import Weight

Part = tuple[str, str]
"""Component, and the format it is stored in."""

Sizes = Mapping[Part, int]


@dataclass(frozen=True)
class LoadedWeights:
    """Bytes of tensors by where they belong.

    Attributes:
        input: Embeddings: always on the host.
        output: The head, and what belongs to no layer.
        tied: The embedding once more, where the output layer is on a GPU and has no matrix of its
            own.
        layers: By layer; modules for multi-token prediction come last and are empty.
        experts: Routed experts by layer, which may stay on the host.
    """

    input: Sizes
    output: Sizes
    tied: Sizes
    layers: tuple[Sizes, ...]
    experts: tuple[Sizes, ...]

    @property
    def total(self) -> int:
        """Bytes of all, nothing twice."""
        parts = (self.input, self.output, *self.layers, *self.experts)
        return sum(sum(part.values()) for part in parts)

    def drafting(self) -> dict[Part, int]:
        """What is loaded to draft tokens: all but the embeddings."""
        found: dict[Part, int] = {}
        for sizes in (self.output, self.tied, *self.layers, *self.experts):
            _add(found, sizes)
        return found

    def bytes_on(self, placement: Placement, experts_on_host: frozenset[int]) -> dict[int, int]:
        """Bytes by device, of all parts together: see `on_devices`."""
        outside, layers, experts = self._bytes
        found = {HOST: outside[0]}
        output = placement.output
        found[output] = found.get(output, 0) + outside[1] + (outside[2] if output != HOST else 0)
        for layer, (device, size) in enumerate(zip(placement.layers, layers, strict=False)):
            found[device] = found.get(device, 0) + size
            home = HOST if layer in experts_on_host else device
            found[home] = found.get(home, 0) + experts[layer]
        return found

    @cached_property
    def _bytes(self) -> tuple[tuple[int, int, int], list[int], list[int]]:
        """Bytes of the input, the output and what is tied; of layers; and of their experts."""
        outside = (
            sum(self.input.values()),
            sum(self.output.values()),
            sum(self.tied.values()),
        )
        layers = [sum(sizes.values()) for sizes in self.layers]
        return outside, layers, [sum(sizes.values()) for sizes in self.experts]

    def on_devices(
        self, placement: Placement, experts_on_host: frozenset[int]
    ) -> dict[int, dict[Part, int]]:
        """Bytes by device (`placement.HOST` is the host)."""
        found: defaultdict[int, dict[Part, int]] = defaultdict(dict)
        _add(found[HOST], self.input)
        _add(found[placement.output], self.output)
        if placement.output != HOST:
            _add(found[placement.output], self.tied)
        for layer, device in enumerate(placement.layers[: len(self.layers)]):
            _add(found[device], self.layers[layer])
            home = HOST if layer in experts_on_host else device
            _add(found[home], self.experts[layer])
        return dict(found)


def _add(sums: dict[Part, int], sizes: Sizes) -> None:
    # A counter's own update takes several times as long, and searches place models often.
    for part, size in sizes.items():
        sums[part] = sums.get(part, 0) + size


def loaded_weights(spec: ModelSpec, layers: int) -> LoadedWeights:
    """The tensors that a model of ``layers`` layers loads.

    Towers are files of their own, and modules for multi-token prediction are skipped unless they
    draft.
    """
    default = PLAIN[spec.dtype]
    at = {name: Counter[Part]() for name in ("input", "output", "tied")}
    by_layer = [Counter[Part]() for _ in range(layers)]
    experts = [Counter[Part]() for _ in range(layers)]
    for weight in spec.weights:
        if weight.place == "tower" or (weight.component == "mtp" and spec.draft is None):
            continue
        part, size = _part(weight, default), _size(weight, default)
        if weight.place == "layers":
            home = experts if weight.component == "experts" else by_layer
            for layer in _within(weight.layers, layers):
                home[layer][part] += size
        else:
            at[_home(weight)][part] += size
            if spec.tied_embeddings and _is_vocabulary(weight):
                at["tied"][("lm_head", part[1])] += size
    return LoadedWeights(
        input=at["input"],
        output=at["output"],
        tied=at["tied"],
        layers=tuple(by_layer),
        experts=tuple(experts),
    )


def stored_layers(spec: ModelSpec) -> int:
    """Layers of the file: the decoder's, and modules for multi-token prediction after them."""
    last = [weight.layers[-1] for weight in spec.weights if weight.layers]
    return max(len(spec.layers), 1 + max(last, default=0))


def _within(layers: Iterable[int], count: int) -> Iterable[int]:
    return (min(layer, count - 1) for layer in layers)


def _part(weight: Weight, default: NumberFormat) -> Part:
    return weight.component, (weight.format or default).name


def _size(weight: Weight, default: NumberFormat) -> int:
    """Bytes in one layer, or of the one matrix outside the layers."""
    return weight.stored_bytes(default) // max(1, len(weight.layers))


def _home(weight: Weight) -> str:
    return "input" if weight.component == "embedding" else "output"


def _is_vocabulary(weight: Weight) -> bool:
    return (
        weight.component == "embedding"
        and not weight.name.startswith(
            ("per_layer", "position", "token_types", "wpe", "embed_positions")
        )
        and weight.sharding == "vocab"
    )
