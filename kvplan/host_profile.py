"""HostProfile: how one machine's starts differ from fitted figures, learned from its own logs."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

# The ledger lines that each part of a profile corrects; the weights' lines begin with `weights.`.
ACTIVATION = ("activation_peak", "expert_buffers", "multimodal_profile", "compilation")
NON_TORCH = ("non_torch",)
GRAPHS = ("cuda_graphs",)

# Memory of a device that a profile may speak of.
MOST_GIB = 1024.0

_Factor = Annotated[float, Field(gt=0, le=10)]
_Gib = Annotated[float, Field(ge=-MOST_GIB, le=MOST_GIB)]
_Starts = Annotated[int, Field(ge=0)]
_Name = Annotated[str, Field(min_length=1, max_length=200)]


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False
    )


class Factor(_Part):
    """What a fitted figure is multiplied by.

    Attributes:
        value: The factor, drawn towards 1 by how few starts it rests on.
        starts: How many it rests on; 0 leaves the figure as it is.
    """

    value: _Factor = 1.0
    starts: _Starts = 0


class Offset(_Part):
    """What is added to a fitted figure.

    Attributes:
        gib: The offset, drawn towards 0 by how few starts it rests on.
        starts: How many it rests on; 0 leaves the figure as it is.
    """

    gib: _Gib = 0.0
    starts: _Starts = 0


class HostProfile(_Part):
    """What was measured on one machine.

    Attributes:
        name: Where it came from; ledger lines name it as their source.
        engine: The engine whose starts they were.
        versions: Its releases.
        gpus: Ids of the devices; a plan for another one takes nothing from the profile.
        starts: Records that it was fitted on.
        weights: Of the weights as loaded.
        activation: Of everything at the profile run's peak.
        non_torch: Of memory past torch's allocator.
        graphs: Of CUDA graphs.
    """

    name: _Name = "host profile"
    engine: _Name
    versions: tuple[_Name, ...] = ()
    gpus: Annotated[tuple[_Name, ...], Field(min_length=1)]
    starts: Annotated[int, Field(ge=1)]
    weights: Factor = Factor()
    activation: Factor = Factor()
    non_torch: Offset = Offset()
    graphs: Factor = Factor()

    def is_for(self, engine: str, gpu: str) -> bool:
        """Whether the machine that it was measured on is the one that is planned for."""
        return self.engine == engine and gpu in self.gpus
