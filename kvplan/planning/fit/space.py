"""What is searched: devices, engines, formats and parallel sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvplan.engines.base import Engine
from kvplan.hardware import GpuSpec
from kvplan.models.spec import ModelSpec
from kvplan.plan import Parallelism
from kvplan.planning.fit.layouts import Layout, is_distinct, layouts_of


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """An engine to try.

    Attributes:
        version: The pinned release, or None.
        weights: Formats of the weights, by name.
        kv_dtypes: Its own cache types.
        options: Its options, for all candidates.
    """

    engine: Engine
    version: str | None
    weights: tuple[str, ...]
    kv_dtypes: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Space:
    """Everything to be combined.

    Attributes:
        tensor, pipeline: Parallel sizes to try.
        max_gpus: Devices of a deployment at most.
    """

    gpus: tuple[GpuSpec, ...]
    engines: tuple[EngineChoice, ...]
    tensor: tuple[int, ...]
    pipeline: tuple[int, ...]
    max_gpus: int


@dataclass(frozen=True, slots=True)
class Shape:
    """A candidate but for the number of its replicas."""

    gpu: GpuSpec
    choice: EngineChoice
    weights: str
    kv_dtype: str
    layout: Layout
    tp: int
    pp: int

    @property
    def ranks(self) -> int:
        """Devices of one replica."""
        return self.tp * self.pp

    @property
    def options(self) -> dict[str, Any]:
        """The engine's options, those of the layout included."""
        return {**self.choice.options, **self.layout.options(self.tp)}

    def parallelism(self, replicas: int) -> Parallelism:
        """Parallel sizes with so many replicas."""
        return Parallelism(tp=self.tp, pp=self.pp, dp=replicas)


def shapes(
    space: Space, gpu: GpuSpec, choice: EngineChoice, weights: str, model: ModelSpec
) -> Iterator[Shape]:
    """All shapes of one device, engine and format of the weights; the smallest replicas first."""
    pairs = ((tp, pp) for tp in space.tensor for pp in space.pipeline if tp * pp <= space.max_gpus)
    sizes = sorted(pairs, key=lambda pair: (pair[0] * pair[1], -pair[0]))
    for kv_dtype in choice.kv_dtypes:
        for layout in layouts_of(choice.engine.name, model):
            for tp, pp in sizes:
                if is_distinct(layout, tp, choice.engine.name):
                    yield Shape(gpu, choice, weights, kv_dtype, layout, tp, pp)
