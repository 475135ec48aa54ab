"""The inventory of a model, and what is known of its files."""

from __future__ import annotations

import math
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights
from kvplan.architectures.coverage import gap_note
from kvplan.architectures.entries import Catalogue
from kvplan.architectures.headers import (
    bytes_by_dtype,
    exact_weights,
    sort_tensors,
    unknown_note,
)
from kvplan.models.facts import ModelFacts, TensorHeader
from kvplan.models.formats import NumberFormat
from kvplan.models.spec import Checkpoint
from kvplan.models.weights import Weight, stored_bytes

# Formula and files agree to the byte for most checkpoints; buffers and padded vocabularies make
# small differences. Beyond this share, something else is stored than the family's weights.
_TOLERANCE = 0.005


class Inventory(BaseModel):
    """The weights with their bytes, and where the bytes come from."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    weights: tuple[Weight, ...]
    checkpoint: Checkpoint | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """The bytes are those of the files' headers."""
        return self.checkpoint is not None and bool(self.checkpoint.bytes_by_dtype)


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
    checkpoint = _stated(facts, source)
    if facts.checkpoint_bytes is None:
        return Inventory(weights=weights, checkpoint=checkpoint, notes=_left_out(anatomy))
    computed = sum(stored_bytes(weights, plain).values())
    added = _remainder(anatomy, computed, facts.checkpoint_bytes, plain)
    return Inventory(
        weights=weights + added,
        checkpoint=checkpoint,
        notes=_counted_from_files(anatomy)
        if added
        else _left_out(anatomy) + _difference(computed, facts.checkpoint_bytes),
    )


def _stated(facts: ModelFacts, source: str) -> Checkpoint | None:
    """The figures of an index or a sourced spec, or None if there are none."""
    if facts.checkpoint_bytes is None and facts.checkpoint_parameters is None:
        return None
    return Checkpoint(
        total_bytes=facts.checkpoint_bytes,
        parameters=facts.checkpoint_parameters,
        source=source,
    )


def _from_headers(
    tensors: tuple[TensorHeader, ...], anatomy: Anatomy, weights: Weights, source: str
) -> Inventory:
    """The weights as the files hold them, or the formula's where those are not this model's."""
    catalogue = Catalogue(weights)
    found = sort_tensors(tensors, catalogue, layers=len(anatomy.layers), tied=anatomy.tied)
    total = sum(tensor.size for tensor in tensors) or None
    gap = gap_note(found, catalogue.entries)
    if gap is not None:
        checkpoint = Checkpoint(total_bytes=total, source=source)
        notes = (gap, *_left_out(anatomy))
        return Inventory(weights=weights, checkpoint=checkpoint, notes=notes)
    exact = exact_weights(found)
    checkpoint = Checkpoint(
        total_bytes=total,
        parameters=sum(weight.parameters for weight in exact) or None,
        bytes_by_dtype=bytes_by_dtype(tensors),
        source=source,
    )
    return Inventory(weights=exact, checkpoint=checkpoint, notes=unknown_note(found.unknown))


def _left_out(anatomy: Anatomy) -> tuple[str, ...]:
    if anatomy.uncounted is None:
        return ()
    return (f"The weights of the {anatomy.uncounted} are not counted: nothing states their size.",)


def _remainder(anatomy: Anatomy, computed: int, stored: int, plain: NumberFormat) -> Weights:
    """What the files hold beyond the weights that are known, where a part is not sized."""
    left = stored - computed
    # As much as the text model again, and more, is another number type and no tower.
    if anatomy.uncounted is None or not 0 < left < computed:
        return ()
    elements = left * 8 // plain.bits
    return (Weight(name="uncounted", component="other", shape=(elements,), place="tower"),)


def _counted_from_files(anatomy: Anatomy) -> tuple[str, ...]:
    sentence = (
        f"The weights of the {anatomy.uncounted} are what the files hold beyond the text model;"
        " every rank of the first stage is taken to hold all of them."
    )
    return (sentence,)


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
