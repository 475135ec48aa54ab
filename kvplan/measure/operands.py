"""Matrices to multiply with. Where torch has no kernel for a format, one of the same shape."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from kvplan.measure.store import DTYPES, Matrix
from kvplan.models.formats import Dtype


class Operands:
    """Gives each matrix a tensor in the model's type.

    Packed matrices share one stand-in, as large as the largest of them: their own bytes are
    allocated beside it, and no kernel that unpacks them is at hand.

    Attributes:
        stand_in_bytes: Bytes of the stand-in; 0 where nothing is packed.
    """

    def __init__(self, matrices: Iterable[Matrix], dtype: Dtype, device: str) -> None:
        packed = [m.rows * m.columns for m in matrices if m.is_matrix and not m.plain]
        self.dtype: Any = DTYPES[dtype]
        self.device = device
        self._stand_in = torch.zeros(max(packed, default=0), dtype=self.dtype, device=device)
        self.stand_in_bytes: int = int(self._stand_in.nbytes)

    def of(self, matrix: Matrix, copy: int = 0) -> Any:
        """A (rows, columns) tensor of one copy."""
        if matrix.plain:
            return matrix.parts[0][copy]
        return self._stand_in[: matrix.rows * matrix.columns].view(matrix.rows, matrix.columns)

    def project(self, inputs: Any, matrices: Sequence[Matrix]) -> Any:
        """Several projections of the same input side by side, as engines fuse them.

        ``inputs`` is (tokens, columns); the result (tokens, sum of rows).
        """
        if len(matrices) == 1:
            return inputs @ self.of(matrices[0]).T
        width = sum(matrix.rows for matrix in matrices)
        result = self.empty(inputs.shape[0], width)
        start = 0
        for matrix in matrices:
            torch.mm(inputs, self.of(matrix).T, out=result[:, start : start + matrix.rows])
            start += matrix.rows
        return result

    def empty(self, *shape: int) -> Any:
        """An uninitialised tensor in the model's type."""
        return torch.empty(shape, dtype=self.dtype, device=self.device)
