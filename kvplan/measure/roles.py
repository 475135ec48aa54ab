"""Which matrix of a layer does what, told by shapes and sharding, not by names.

Names differ from family to family; what goes in and out of a matrix does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvplan.measure.store import Matrix

# What belongs to a decoder's attention to its encoder: Whisper and BART, T5.
_CROSS = ("encoder_attn", "EncDecAttention", "cross_attn")


@dataclass(frozen=True, slots=True)
class Projections:
    """Matrices of one part of a layer.

    Attributes:
        inward: From the residual stream.
        middle: From and to something else: low-rank factors, time steps.
        outward: Back to the residual stream, or None.
    """

    inward: tuple[Matrix, ...] = ()
    middle: tuple[Matrix, ...] = ()
    outward: Matrix | None = None

    @property
    def inward_width(self) -> int:
        """Columns that the fused projection gives."""
        return sum(matrix.rows for matrix in self.inward)


@dataclass(frozen=True, slots=True)
class LayerRoles:
    """A layer by its parts; what it lacks is empty."""

    attention: Projections
    cross: Projections
    recurrent: Projections
    mlp: Projections
    experts: Projections
    shared_experts: Projections
    router: tuple[Matrix, ...]


def roles_of(matrices: Sequence[Matrix], hidden: int) -> LayerRoles:
    """Sorts the matrices of one layer."""
    every = [matrix for matrix in matrices if matrix.is_matrix]

    def of(*components: str, cross: bool = False) -> Projections:
        return _sorted(
            [m for m in every if m.component in components and _is_cross(m) is cross], hidden
        )

    return LayerRoles(
        attention=of("attention"),
        cross=of("attention", cross=True),
        recurrent=of("recurrent"),
        mlp=of("mlp"),
        experts=of("experts"),
        shared_experts=of("shared_experts"),
        router=tuple(m for m in every if m.component == "router" and m.columns == hidden),
    )


def _is_cross(matrix: Matrix) -> bool:
    return any(word in matrix.weight.name for word in _CROSS)


def _sorted(matrices: Sequence[Matrix], hidden: int) -> Projections:
    outward = next((m for m in matrices if _is_outward(m, hidden)), None)
    rest = [m for m in matrices if m is not outward]
    return Projections(
        inward=tuple(m for m in rest if m.columns == hidden and m.weight.sharding != "row"),
        middle=tuple(m for m in rest if m.columns != hidden or m.weight.sharding == "row"),
        outward=outward,
    )


def _is_outward(matrix: Matrix, hidden: int) -> bool:
    return matrix.rows == hidden and matrix.weight.sharding == "row"
