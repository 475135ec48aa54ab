"""A rank's weights as tensors: every matrix in its own format, byte by byte."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from kvplan.measure.job import WEIGHTS, Job
from kvplan.models.formats import PLAIN, NumberFormat, ceil_div
from kvplan.models.weights import Component, Weight, instances_on

DTYPES: dict[str, Any] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass(frozen=True, slots=True)
class Matrix:
    """One weight of one layer, or of no layer, as it lies on the rank.

    Attributes:
        rows, columns: Of one copy on this rank.
        copies: Experts on this rank; 1 for everything else.
        parts: Its tensors: one of shape (copies, rows, columns) in the model's type, or codes and
            scales as bytes.
        plain: Whether it can be multiplied with as it is.
    """

    weight: Weight
    rows: int
    columns: int
    copies: int
    parts: tuple[Any, ...]
    plain: bool

    @property
    def component(self) -> Component:
        """What it belongs to."""
        return self.weight.component

    @property
    def is_matrix(self) -> bool:
        """Whether something is multiplied with it: not a bias, a norm or a convolution."""
        return len(self.weight.shape) == 2 and self.weight.elements != 0


@dataclass(frozen=True, slots=True)
class Weights:
    """All tensors of a rank.

    Attributes:
        layers: Matrices by layer.
        others: Matrices of no layer: embedding, head, towers.
        extra: What a loaded model holds beside them, by the ledger's names.
    """

    layers: dict[int, tuple[Matrix, ...]]
    others: tuple[Matrix, ...]
    extra: dict[str, tuple[Any, ...]]

    def bytes_by_line(self) -> dict[str, int]:
        """Bytes of the tensors by the ledger's names."""
        sizes: Counter[str] = Counter()
        for matrix in self._all():
            sizes[f"{WEIGHTS}{matrix.component}"] += _size(matrix.parts)
        for name, tensors in self.extra.items():
            sizes[name] += _size(tensors)
        return dict(sizes)

    def _all(self) -> Iterator[Matrix]:
        yield from self.others
        for matrices in self.layers.values():
            yield from matrices


def _size(tensors: Iterable[Any]) -> int:
    return sum(tensor.nbytes for tensor in tensors)


def allocate(job: Job, device: str) -> Weights:
    """Allocates every weight of the job's layers, uninitialised."""
    layers: dict[int, list[Matrix]] = {index: [] for index in job.layer_indices}
    others: list[Matrix] = []
    for weight in job.model.weights:
        if weight.place == "layers":
            for index in weight.layers:
                if index in layers:
                    layers[index].append(_matrix(weight, job, device, 1))
        else:
            held = instances_on(weight, job.layout, tied=job.model.tied_embeddings)
            others.extend(_matrix(weight, job, device, 1) for _ in range(held))
    return Weights(
        layers={index: tuple(matrices) for index, matrices in layers.items()},
        others=tuple(others),
        extra=_extra(job, device),
    )


def _matrix(weight: Weight, job: Job, device: str, copies: int) -> Matrix:
    layout = job.layout
    if weight.place == "layers":
        experts = weight.component == "experts"
        copies = ceil_div(weight.copies, layout.ep) if experts else weight.copies
    rows, columns = weight.rank_shape(
        tp=layout.tp_of(weight.component), vocab_multiple=layout.vocab_multiple
    )
    plain = weight.format is None or weight.format == PLAIN[job.dtype]
    if plain:
        shape = (copies, rows, columns)
        parts: tuple[Any, ...] = (torch.empty(shape, dtype=DTYPES[job.dtype], device=device),)
    else:
        parts = tuple(_packed(weight.format or PLAIN[job.dtype], copies, rows, columns, device))
    return Matrix(weight, rows, columns, copies, parts, plain)


def _packed(
    stored: NumberFormat, copies: int, rows: int, columns: int, device: str
) -> Iterator[Any]:
    """Codes, scales, zero points and the rest, each a tensor of its own."""
    down = ceil_div(rows, stored.block_rows or rows)
    across = ceil_div(columns, stored.block_columns or columns)
    spans = ceil_div(rows * columns, stored.span_elements or 1)
    shapes = (
        (ceil_div(rows * columns * stored.bits, 8),),
        (down, across, stored.scale_bytes),
        (across, ceil_div(down * stored.zero_bits, 8)),
        (columns, stored.column_bytes),
        (spans, stored.span_bytes),
        (stored.tensor_bytes,),
    )
    for shape in shapes:
        if math.prod(shape):
            yield torch.empty((copies, *shape), dtype=torch.uint8, device=device)


def _extra(job: Job, device: str) -> dict[str, tuple[Any, ...]]:
    """Tables of positions by their shapes; the rest in as many bytes as the ledger says."""
    extra: dict[str, tuple[Any, ...]] = {}
    known = {f"{WEIGHTS}{weight.component}" for weight in job.model.weights}
    for line in job.ledger:
        if line.name == "weights.rotary":
            extra[line.name] = tuple(
                torch.empty((table.rows, table.width), dtype=DTYPES[job.dtype], device=device)
                for table in job.model.rotary
            )
        elif line.name.startswith(WEIGHTS) and line.name not in known and not job.scaled:
            extra[line.name] = (torch.empty(line.bytes, dtype=torch.uint8, device=device),)
    return extra
