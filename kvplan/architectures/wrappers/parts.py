"""What wrappers share: nested parts, and the projectors that many classes have."""

from __future__ import annotations

from typing import NamedTuple

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.origin import class_source
from kvplan.architectures.towers.parts import tower_linear


class Beside(NamedTuple):
    """What a wrapper puts beside its text model.

    Attributes:
        weights: Towers and projectors.
        uncounted: A part that the configuration does not size, by name, or None.
        notes: What is not exact, as sentences.
    """

    weights: Weights
    uncounted: str | None = None
    notes: tuple[str, ...] = ()


def part(fields: Fields, name: str, folder: str) -> Fields:
    """A nested part, read with the defaults of the class in ``folder`` of transformers.

    Raises:
        InputError: the part is missing.
    """
    found = fields.section(name, source=class_source(folder))
    if found is None:
        raise fields.error(name, None, "an object")
    return found


def two_linears(out: int, inputs: int, *, bias: bool) -> Weights:
    """The projector of LLaVA and its heirs: two matrices."""
    return tower_linear("linear_1", (out, inputs), bias=bias) + tower_linear(
        "linear_2", (out, out), bias=bias
    )


def chosen_layers(fields: Fields, default: int) -> int:
    """How many layers of the tower are put side by side for the projector."""
    stated = fields.raw("vision_feature_layer")
    if stated is None:
        return default
    return len(stated) if isinstance(stated, list) and stated else 1
