"""What one start allocates, device by device: weights, caches, compute buffers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from kvplan.engines.llamacpp import compute
from kvplan.engines.llamacpp.caches import LayerStore
from kvplan.engines.llamacpp.context import Context
from kvplan.engines.llamacpp.devices import Device, Machine
from kvplan.engines.llamacpp.layout import Body, Home, Layout
from kvplan.engines.llamacpp.placement import HOST, Placement
from kvplan.engines.llamacpp.settings import Settings
from kvplan.engines.llamacpp.weights import Part
from kvplan.formula import compile_formula

End = Literal["likely", "low", "high"]
"""Of the room for caches: what is likely, or the ends of its range."""


@dataclass(frozen=True)
class Share:
    """What one model has on one device.

    Attributes:
        home: What lies there.
        inputs: Those of the ``formula`` of compute buffers; None: nothing is computed there.
    """

    home: Home
    inputs: Mapping[str, int | float] | None
    formula: str = compute.FORMULA

    @property
    def weights(self) -> Mapping[Part, int]:
        """Bytes of tensors."""
        return self.home.weights

    @property
    def stores(self) -> tuple[LayerStore, ...]:
        """What its layers keep."""
        return self.home.stores


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
        return sum(share.home.weight_bytes for share in self.shares)

    @cached_property
    def cache_bytes(self) -> int:
        """Bytes of keys, values and states."""
        return sum(
            share.home.stored.bytes(self.context, swa_full=self.swa_full) for share in self.shares
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
    layout: Layout,
    n_outputs: int,
    budget: tuple[int, ...] | None = None,
) -> Allocation:
    """Lays out one start."""
    gpus = len(machine.gpus)
    partial = gpus > 0 and (
        bool(layout.experts_on_host) or layout.placement.on_gpus <= body.file_layers
    )
    batch = _Batch(body, context, settings, layout.in_turns, n_outputs)
    drafted = draft and _Batch(
        draft, context, settings, in_turns=False, n_outputs=context.sequences
    )
    loads: list[Load] = []
    for index, device in enumerate(machine.devices):
        number = HOST if device is machine.host else index
        low, high = compute.spread(device.backend, partial=partial, beside_gpus=gpus > 0)
        drafting = layout.drafts.get(number)
        loads.append(
            Load(
                device=device,
                context=context,
                swa_full=settings.swa_full,
                layers=layout.homes[number].layers,
                model=batch.share(layout.homes[number], hands_on=number == HOST),
                draft=drafted.share(drafting, hands_on=False) if drafted and drafting else None,
                low=low,
                high=high,
                budget=_given(budget, number, gpus),
            )
        )
    return Allocation(context, layout.placement, layout.experts_on_host, tuple(loads))


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch of one model; of ``n_outputs`` tokens there is room for logits."""

    body: Body
    context: Context
    settings: Settings
    in_turns: bool
    n_outputs: int

    def share(self, home: Home, *, hands_on: bool) -> Share:
        """What one device has of the model.

        Args:
            home: What lies there.
            hands_on: Whether it hands inputs on where it computes nothing.
        """
        if not (home.computes or hands_on):
            return Share(home, None)
        inputs = compute.compute_inputs(
            self.body.spec,
            self.context,
            cells=self.body.cells(self.context, swa_full=self.settings.swa_full),
            n_outputs=self.n_outputs if home.output else 0,
            flash_attn=self.settings.flash_attn,
            in_turns=self.in_turns,
            width=self.body.width,
        )
        return Share(home, inputs, compute.FORMULA if home.computes else compute.HANDED_ON)


def _given(budget: tuple[int, ...] | None, number: int, gpus: int) -> int | None:
    if budget is None or (number == HOST and gpus):
        return None
    return budget[0] if len(budget) == 1 or number == HOST else budget[number]
