"""The weight inventory: which matrices a model has, how each is stored and how each shards."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from kvplan.models.formats import NumberFormat, ceil_div, round_up
from kvplan.models.identity import ById

Component = Literal[
    "embedding",
    "attention",
    "mlp",
    "experts",
    "shared_experts",
    "router",
    "recurrent",
    "norms",
    "lm_head",
    "vision",
    "audio",
    "mtp",
    "other",
]

Sharding = Literal["replicated", "column", "row", "kv_heads", "vocab"]
"""How tensor parallelism cuts a matrix of shape (out, in):

replicated  every rank holds all of it: norms, routers, MLA down-projections, row biases
column      the output dimension is split
row         the input dimension is split (a vector, i.e. a bias, is then replicated)
kv_heads    the output dimension is split by whole KV heads, replicated beyond their count
vocab       the rows are padded to the engine's multiple, then split
"""

Place = Literal["embedding", "layers", "head", "tower"]
"""Which pipeline stage holds it: the first, the layer's own, the last, the first."""


class Weight(BaseModel):
    """One matrix or vector of the model, with all its copies.

    Attributes:
        name: As in the checkpoint, without layer numbers: ``self_attn.q_proj.weight``.
        shape: (out, in) of a matrix, (n,) of a vector; of one copy, before any sharding.
        layers: The layers that have it (place ``layers`` only).
        copies: How many a layer has: routed experts. 1 for everything else.
        active_copies: How many of the copies one token goes through.
        heads: KV heads in the output dimension (sharding ``kv_heads`` only).
        format: How it is stored; None means the model's own type.
        elements: Elements of one copy where the shape counts something else: containers of a
            packed matrix, or scales, which are no parameters (0). None: what the shape says.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    name: str
    component: Component
    shape: Annotated[tuple[Annotated[int, Field(gt=0)], ...], Field(min_length=1)]
    place: Place = "layers"
    layers: tuple[int, ...] = ()
    copies: Annotated[int, Field(gt=0)] = 1
    active_copies: Annotated[int, Field(ge=0)] = 1
    sharding: Sharding = "replicated"
    heads: Annotated[int, Field(gt=0)] = 1
    format: NumberFormat | None = None
    elements: Annotated[int, Field(ge=0)] | None = None

    @property
    def instances(self) -> int:
        """How often the matrix occurs in the whole model."""
        return self.copies * (len(self.layers) if self.place == "layers" else 1)

    @property
    def parameters(self) -> int:
        """Elements over all instances."""
        elements = math.prod(self.shape) if self.elements is None else self.elements
        return elements * self.instances

    def stored_bytes(self, default: NumberFormat) -> int:
        """Bytes of all instances in the checkpoint, unsharded."""
        rows, columns = _matrix(self.shape)
        return (self.format or default).tensor_size(rows, columns) * self.instances

    def rank_shape(self, *, tp: int, vocab_multiple: int) -> tuple[int, int]:
        """(rows, columns) of one instance on the fullest tensor-parallel rank."""
        rows, columns = _matrix(self.shape)
        match self.sharding:
            case "column":
                rows = ceil_div(rows, tp)
            case "kv_heads":
                # Rows of scales may be fewer than heads: a started one is whole.
                rows = ceil_div(ceil_div(self.heads, tp) * rows, self.heads)
            case "vocab":
                rows = ceil_div(round_up(rows, vocab_multiple), tp)
            case "row" if len(self.shape) > 1:
                columns = ceil_div(columns, tp)
            case _:
                pass
        return rows, columns


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    return shape[0], math.prod(shape[1:])


class RankLayout(BaseModel):
    """Which part of the model one rank holds.

    Attributes:
        tp: Tensor parallel size.
        ep: Expert parallel size; above 1 every rank holds whole experts, a share of them.
        expert_tp: Ranks that split each expert where ep is 1; None: as many as ``tp``.
        layers: First and one past the last layer of this pipeline stage.
        first, last: Whether it is the first and the last stage.
        vocab_multiple: The engine pads the vocabulary to a multiple of this.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    tp: int = 1
    ep: int = 1
    expert_tp: int | None = None
    layers: tuple[int, int]
    first: bool = True
    last: bool = True
    vocab_multiple: int = 64

    def tp_of(self, component: Component) -> int:
        """Ranks that split a matrix of ``component``."""
        if component != "experts":
            return self.tp
        if self.ep > 1:
            return 1
        return self.expert_tp or self.tp


def total_parameters(weights: tuple[Weight, ...]) -> int:
    """All elements: tied tensors once, vocabulary unpadded, without draft modules (MTP)."""
    return sum(weight.parameters for weight in weights if weight.component != "mtp")


def active_parameters(weights: tuple[Weight, ...]) -> int:
    """The elements one token is multiplied with: of the routed experts only the chosen ones."""
    return sum(
        weight.parameters // weight.copies * weight.active_copies
        for weight in weights
        if weight.component != "mtp"
    )


def stored_bytes(weights: tuple[Weight, ...], default: NumberFormat) -> dict[Component, int]:
    """Checkpoint bytes by component."""
    sizes: Counter[Component] = Counter()
    for weight in weights:
        sizes[weight.component] += weight.stored_bytes(default)
    return dict(sizes)


class RankPart(BaseModel):
    """The weights of one component in one number format on one rank.

    Attributes:
        bytes_per_element: For formats without scales a whole number, else None.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    component: Component
    format: str
    elements: int
    bytes: int
    bytes_per_element: int | None


def rank_parts(
    weights: tuple[Weight, ...], default: NumberFormat, layout: RankLayout, *, tied: bool
) -> tuple[RankPart, ...]:
    """The fullest tensor-parallel rank of one pipeline stage, by component and format.

    ``tied`` models keep the embedding once where first and last stage are the same, and once
    on each where they are not. Searches ask for the same few ranks again and again: cached.
    """
    return _rank_parts(ById(weights), default, layout, tied)


@lru_cache(maxsize=4096)
def _rank_parts(
    weights: ById[tuple[Weight, ...]],
    default: NumberFormat,
    layout: RankLayout,
    tied: bool,  # noqa: FBT001 - a key of the cache, never called by hand
) -> tuple[RankPart, ...]:
    elements: Counter[tuple[Component, NumberFormat]] = Counter()
    sizes: Counter[tuple[Component, NumberFormat]] = Counter()
    for weight in weights.value:
        instances = instances_on(weight, layout, tied=tied)
        if not instances:
            continue
        rows, columns = weight.rank_shape(
            tp=layout.tp_of(weight.component), vocab_multiple=layout.vocab_multiple
        )
        stored = weight.format or default
        elements[weight.component, stored] += rows * columns * instances
        sizes[weight.component, stored] += stored.tensor_size(rows, columns) * instances
    return tuple(
        RankPart(
            component=component,
            format=stored.name,
            elements=elements[component, stored],
            bytes=size,
            bytes_per_element=stored.plain_bytes,
        )
        for (component, stored), size in sizes.items()
    )


def rank_bytes(
    weights: tuple[Weight, ...], default: NumberFormat, layout: RankLayout, *, tied: bool
) -> dict[Component, int]:
    """Bytes by component on the fullest tensor-parallel rank of one pipeline stage."""
    sizes: Counter[Component] = Counter()
    for part in rank_parts(weights, default, layout, tied=tied):
        sizes[part.component] += part.bytes
    return dict(sizes)


def instances_on(weight: Weight, layout: RankLayout, *, tied: bool) -> int:
    """How often a rank holds the matrix, over its layers and copies."""
    copies = weight.copies
    if weight.component == "experts":
        copies = ceil_div(copies, layout.ep)
    match weight.place:
        case "layers":
            start, stop = layout.layers
            return copies * sum(start <= layer < stop for layer in weight.layers)
        case "embedding":
            # The head reads the vocabulary's matrix; positions and norms stay on the first stage.
            again = tied and layout.last and weight.sharding == "vocab"
            return copies if layout.first or again else 0
        case "head":
            return copies if layout.last else 0
        case "tower":
            return copies if layout.first else 0
