"""What one start allocates, device by device: weights, caches, compute buffers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from kvplan.engines.llamacpp import compute
from kvplan.engines.llamacpp.caches import LayerStore
from kvplan.engines.llamacpp.context import Context
from kvplan.engines.llamacpp.devices import Device, Machine
from kvplan.engines.llamacpp.placement import HOST, Placement
from kvplan.engines.llamacpp.settings import Settings
from kvplan.engines.llamacpp.weights import LoadedWeights, Part
from kvplan.formula import compile_formula
from kvplan.models.spec import ModelSpec

End = Literal["likely", "low", "high"]
"""Of the room for caches: what is likely, or the ends of its range."""


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
        return sum({store.cells(context, swa_full=swa_full) for store in self.stores})


@dataclass(frozen=True)
class Share:
    """What one model has on one device.

    Attributes:
        compute: Inputs of `compute.FORMULA`; None: nothing is computed there.
    """

    weights: Mapping[Part, int]
    stores: tuple[LayerStore, ...]
    inputs: Mapping[str, int | float] | None
    formula: str = compute.FORMULA


@dataclass(frozen=True)
class Load:
    """One device with everything on it.

    Attributes:
        layers: Layers of the file that lie on it.
        model, draft: The shares of the model, and of what drafts tokens for it.
        low, high: What the compute buffers may be off by.
        budget: Bytes for the caches if they were given.
    """

    device: Device
    context: Context
    swa_full: bool
    layers: int
    model: Share
    draft: Share | None
    low: float
    high: float
    budget: int | None = None

    @property
    def shares(self) -> tuple[Share, ...]:
        """The model's, then the draft's."""
        return (self.model, self.draft) if self.draft else (self.model,)

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes of tensors."""
        return sum(sum(share.weights.values()) for share in self.shares)

    @cached_property
    def cache_bytes(self) -> int:
        """Bytes of keys, values and states."""
        return sum(
            store.bytes(self.context, swa_full=self.swa_full)
            for share in self.shares
            for store in share.stores
        )

    @cached_property
    def compute_bytes(self) -> int:
        """Likely bytes of compute buffers."""
        return self._compute(1.0)

    def _compute(self, spread: float) -> int:
        return sum(
            compile_formula(share.formula).evaluate_bytes({**share.inputs, "spread": spread})
            for share in self.shares
            if share.inputs is not None
        )

    @property
    def left(self) -> int | None:
        """Likely bytes that stay free; negative: missing. None: the memory is not known."""
        if self.budget is not None:
            return self.budget - self.cache_bytes
        memory = self.device.memory
        return None if memory is None else memory.total - self.spent - self.cache_bytes

    @property
    def spent(self) -> int:
        """Likely bytes beside the caches."""
        taken = self.device.runtime[0] + self.device.in_use
        return self.weight_bytes + self.compute_bytes + taken

    def room(self, end: End = "likely") -> int | None:
        """Bytes for the caches: ``likely``, or at the ``low`` or ``high`` end."""
        if self.budget is not None:
            return self.budget
        memory = self.device.memory
        if memory is None:
            return None
        runtime, fixed = self.device.runtime, self.weight_bytes + self.device.in_use
        if end == "low":
            return memory.low - fixed - self._compute(self.high) - runtime[2]
        if end == "high":
            return memory.high - fixed - self._compute(self.low) - runtime[1]
        return memory.total - self.spent


@dataclass(frozen=True)
class Allocation:
    """One start.

    Attributes:
        loads: By device: the GPUs in order, then the host.
    """

    context: Context
    placement: Placement
    experts_on_host: frozenset[int]
    loads: tuple[Load, ...]

    @cached_property
    def fits(self) -> bool:
        """Whether it fits on each device, by the likely figures."""
        return all(load.left is None or load.left >= 0 for load in self.loads)

    def fits_at(self, end: End) -> bool:
        """Whether it does with every range at one end: at the low end there is least room."""
        if end == "likely":
            return self.fits
        rooms = [(load.room(end), load.cache_bytes) for load in self.loads]
        return all(room is None or room >= held for room, held in rooms)

    @property
    def surely_fits(self) -> bool:
        """Whether it does with every range at its worse end."""
        return self.fits_at("low")

    @property
    def on_unknown_host(self) -> bool:
        """Whether layers, experts or caches lie on a host whose memory nobody stated."""
        host = self.loads[-1]
        return host.left is None and bool(host.layers or host.cache_bytes or self.experts_on_host)

    @cached_property
    def fullest(self) -> Load:
        """The device with the least left; the host only where there is no GPU."""
        used = [load for load in self.loads[:-1] if load.weight_bytes or load.cache_bytes]
        candidates = used or list(self.loads[:-1]) or list(self.loads)
        host = self.loads[-1]
        if host.left is not None and host.left < 0:
            candidates = [*candidates, host]
        return min(candidates, key=lambda load: 0 if load.left is None else load.left)


def allocate(
    body: Body,
    draft: Body | None,
    *,
    machine: Machine,
    settings: Settings,
    context: Context,
    placement: Placement,
    experts_on_host: frozenset[int],
    n_outputs: int,
    budget: tuple[int, ...] | None = None,
) -> Allocation:
    """Lays out one start."""
    on = body.weights.on_devices(placement, experts_on_host)
    gpus = bool(machine.gpus)
    partial = gpus and (bool(experts_on_host) or placement.on_gpus <= body.file_layers)
    loads: list[Load] = []
    for index, device in enumerate(machine.devices):
        number = HOST if device is machine.host else index
        low, high = compute.spread(device.backend, partial=partial, beside_gpus=gpus)
        loads.append(
            Load(
                device=device,
                context=context,
                swa_full=settings.swa_full,
                layers=placement.layers.count(number),
                model=_share(body, on, number, placement, settings, context, n_outputs),
                draft=_drafting(draft, number, machine, settings, context),
                low=low,
                high=high,
                budget=_given(budget, number, len(machine.gpus)),
            )
        )
    return Allocation(context, placement, experts_on_host, tuple(loads))


def _share(  # noqa: PLR0917 - what one device has of one model
    body: Body,
    on: Mapping[int, Counter[Part]],
    number: int,
    placement: Placement,
    settings: Settings,
    context: Context,
    n_outputs: int,
) -> Share:
    stores = tuple(
        store
        for store in body.stores
        if number == (HOST if settings.no_kv_offload else placement.layers[store.layer])
    )
    host_alone = HOST in placement.layers or placement.on_gpus == 0
    layers_here = host_alone if number == HOST else number in (*placement.layers, placement.output)
    inputs = compute.compute_inputs(
        body.spec,
        context,
        cells=body.cells(context, swa_full=settings.swa_full),
        n_outputs=n_outputs if placement.output == number else 0,
        flash_attn=settings.flash_attn,
        in_turns=_in_turns(placement, settings),
    )
    if number == HOST and not layers_here:
        return Share(on.get(number, {}), stores, inputs, compute.HANDED_ON)
    return Share(on.get(number, {}), stores, inputs if layers_here else None)


def _in_turns(placement: Placement, settings: Settings) -> bool:
    """Whether all layers and their caches lie on several GPUs."""
    devices = {*placement.layers, placement.output}
    return HOST not in devices and len(devices) > 1 and not settings.no_kv_offload


def _drafting(
    draft: Body | None, number: int, machine: Machine, settings: Settings, context: Context
) -> Share | None:
    """A draft lies on the last GPU whole, or on the host where there is none."""
    if draft is None or number != (len(machine.gpus) - 1 if machine.gpus else HOST):
        return None
    weights: Counter[Part] = Counter()
    for part in (draft.weights.output, draft.weights.tied, *draft.weights.layers):
        weights.update(part)
    for part in draft.weights.experts:
        weights.update(part)
    inputs = compute.compute_inputs(
        draft.spec,
        context,
        cells=draft.cells(context, swa_full=settings.swa_full),
        n_outputs=context.sequences,
        flash_attn=settings.flash_attn,
        in_turns=False,
    )
    return Share(weights, draft.stores, inputs)


def _given(budget: tuple[int, ...] | None, number: int, gpus: int) -> int | None:
    if budget is None or (number == HOST and gpus):
        return None
    return budget[0] if len(budget) == 1 or number == HOST else budget[number]
