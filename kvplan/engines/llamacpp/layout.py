"""What lies on which device under one choice, whatever the length of the context.

A search tries a few choices with hundreds of lengths: all that goes through the layers is done
here, once a choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from kvplan.engines.llamacpp import compute
from kvplan.engines.llamacpp.caches import NOTHING, LayerStore, Stored, stored, stored_by
from kvplan.engines.llamacpp.context import Context
from kvplan.engines.llamacpp.placement import HOST, Placement
from kvplan.engines.llamacpp.settings import Settings
from kvplan.engines.llamacpp.weights import LoadedWeights, Part
from kvplan.models.spec import ModelSpec


@dataclass(frozen=True)
class Body:
    """A model as it is loaded: what it keeps, and its tensors.

    Attributes:
        file_layers: Layers of the file, modules for multi-token prediction included.
    """

    spec: ModelSpec
    stores: tuple[LayerStore, ...]
    weights: LoadedWeights
    file_layers: int

    def cells(self, context: Context, *, swa_full: bool) -> int:
        """Cells that a token may attend to, over all sizes of window."""
        firsts = (first for first, _ in self.stored.rows)
        return sum({first.cells(context, swa_full=swa_full) for first in firsts})

    @cached_property
    def stored(self) -> Stored:
        """What all layers keep."""
        return stored(self.stores)

    @cached_property
    def width(self) -> int:
        """Elements a token has at once inside a layer."""
        return compute.width_of(self.spec)


@dataclass(frozen=True)
class Home:
    """What one device has of a model.

    Attributes:
        body: The model.
        number: The device; `placement.HOST` is the host.
        layers: Layers of the file that lie there.
        weight_bytes: Bytes of tensors.
        stored: What its layers keep.
        computes: Whether layers are computed there, or the output.
        output: Whether that is where the output layer is.
        placed: Where all layers lie, and which have their experts on the host; None: here.
    """

    body: Body
    number: int
    layers: int
    weight_bytes: int
    stored: Stored
    computes: bool
    output: bool
    placed: Placed | None

    @cached_property
    def weights(self) -> Mapping[Part, int]:
        """Bytes of tensors by part: for a report, not for a search."""
        loaded = self.body.weights
        if self.placed is None:
            return loaded.drafting()
        on = loaded.on_devices(self.placed.placement, self.placed.experts_on_host)
        return on.get(self.number, {})

    @cached_property
    def stores(self) -> tuple[LayerStore, ...]:
        """What its layers keep, one by one."""
        if self.placed is None:
            return self.body.stores
        homes = zip(self.body.stores, self.placed.homes(self.body), strict=True)
        return tuple(store for store, home in homes if home == self.number)


@dataclass(frozen=True)
class Placed:
    """Where layers, experts and caches lie."""

    placement: Placement
    experts_on_host: frozenset[int]
    caches_on_host: bool

    def homes(self, body: Body) -> list[int]:
        """The device of each store."""
        layers, host = self.placement.layers, self.caches_on_host
        return [HOST if host else layers[store.layer] for store in body.stores]


@dataclass(frozen=True)
class Layout:
    """Where everything lies.

    Attributes:
        homes: By device; `placement.HOST` is the host.
        drafts: The same of what drafts tokens: one device has all of it.
        in_turns: Whether all layers and their caches lie on several GPUs.
    """

    placement: Placement
    experts_on_host: frozenset[int]
    homes: Mapping[int, Home]
    drafts: Mapping[int, Home]
    in_turns: bool


def lay_out(
    body: Body,
    draft: Body | None,
    *,
    gpus: int,
    settings: Settings,
    placement: Placement,
    experts_on_host: frozenset[int],
) -> Layout:
    """Lays out a model and its draft on so many GPUs and the host."""
    placed = Placed(placement, experts_on_host, settings.no_kv_offload)
    numbers = (*range(gpus), HOST)
    sizes = body.weights.bytes_on(placement, experts_on_host)
    kept = stored_by(body.stores, placed.homes(body))
    alone = HOST in placement.layers or placement.on_gpus == 0
    busy = {*placement.layers, placement.output} - {HOST} | ({HOST} if alone else set())
    return Layout(
        placement=placement,
        experts_on_host=experts_on_host,
        homes={
            number: Home(
                body=body,
                number=number,
                layers=placement.layers.count(number),
                weight_bytes=sizes.get(number, 0),
                stored=kept.get(number, NOTHING),
                computes=number in busy,
                output=placement.output == number,
                placed=placed,
            )
            for number in numbers
        },
        # A draft lies on the last GPU whole, or on the host where there is none.
        drafts={} if draft is None else {numbers[gpus - 1]: _drafting(draft, numbers[gpus - 1])},
        in_turns=_in_turns(placement, settings),
    )


def _in_turns(placement: Placement, settings: Settings) -> bool:
    devices = {*placement.layers, placement.output}
    return HOST not in devices and len(devices) > 1 and not settings.no_kv_offload


def _drafting(draft: Body, number: int) -> Home:
    return Home(
        body=draft,
        number=number,
        layers=draft.file_layers,
        weight_bytes=sum(draft.weights.drafting().values()),
        stored=draft.stored,
        computes=True,
        output=True,
        placed=None,
    )
