"""The inventory of a model, and what is known of its files."""

from __future__ import annotations

import math

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights
from kvplan.architectures.headers import bytes_by_dtype, inventory_of, unknown_note
from kvplan.models.facts import ModelFacts, TensorHeader
from kvplan.models.formats import NumberFormat
from kvplan.models.spec import Checkpoint
from kvplan.models.weights import Weight, stored_bytes

# Formula and files agree to the byte for most checkpoints; buffers and padded vocabularies make
# small differences. Beyond this share, something else is stored than the family's weights.
_TOLERANCE = 0.005


class Inventory(BaseModel):
    """The weights with their bytes, and where the bytes come from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    weights: tuple[Weight, ...]
    checkpoint: Checkpoint | None = None
    notes: tuple[str, ...] = ()


def take_inventory(
    facts: ModelFacts, anatomy: Anatomy, weights: Weights, plain: NumberFormat
) -> Inventory:
    """Exact weights from headers where there are some, else the formula's, checked for size.

    Args:
        facts: What the sources know.
        anatomy: What the family found.
        weights: The formula's inventory with its formats.
        plain: Format of weights without one.
    """
    source = facts.checkpoint_source or facts.source
    if facts.tensors:
        return _from_headers(facts.tensors, anatomy, weights, source)
    if facts.checkpoint_bytes is None:
        return Inventory(weights=weights)
    checkpoint = Checkpoint(
        total_bytes=facts.checkpoint_bytes,
        parameters=facts.checkpoint_parameters,
        source=source,
    )
    return Inventory(
        weights=weights,
        checkpoint=checkpoint,
        notes=_difference(sum(stored_bytes(weights, plain).values()), facts.checkpoint_bytes),
    )


def _from_headers(
    tensors: tuple[TensorHeader, ...], anatomy: Anatomy, weights: Weights, source: str
) -> Inventory:
    exact, unknown = inventory_of(tensors, weights, layers=len(anatomy.layers), tied=anatomy.tied)
    total = sum(tensor.size for tensor in tensors)
    parameters = sum(weight.parameters for weight in exact)
    checkpoint = Checkpoint(
        total_bytes=total or None,
        parameters=parameters or None,
        bytes_by_dtype=bytes_by_dtype(tensors),
        source=source,
    )
    return Inventory(weights=exact, checkpoint=checkpoint, notes=unknown_note(unknown))


def _difference(computed: int, stored: int) -> tuple[str, ...]:
    if stored <= 0 or math.isclose(computed, stored, rel_tol=_TOLERANCE):
        return ()
    share = abs(computed - stored) / stored
    direction = "less" if computed < stored else "more"
    sentence = (
        f"The weights computed from the configuration are {share:.1%} {direction} than the files"
        f" hold ({stored:,} bytes); the files may hold another type or more than this model."
    )
    return (sentence,)
