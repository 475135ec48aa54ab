"""A recurrent mixer as far as memory goes: projections, convolution, gate. The scan is left out.

The scan itself works in registers and in the state; its chunks are the kernel's own business.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import silu

from kvplan.measure.attention import spans
from kvplan.measure.operands import Operands
from kvplan.measure.piece import Piece
from kvplan.measure.roles import Projections


def mix(piece: Piece, part: Projections, convolved: int, operands: Operands) -> Any:
    """(tokens, inner width of the last projection). Ends the piece.

    ``convolved`` is how many of the projected channels go through the convolution.
    """
    if part.outward is None:
        return piece.take()
    fused = operands.project(piece.take(), part.inward)
    piece.end()
    tokens, inner = fused.shape[0], part.outward.columns
    channels = operands.empty(tokens, min(convolved, fused.shape[1]) or inner)
    for first, last in spans(tokens):
        channels[first:last] = silu(fused[first:last, -channels.shape[1] :])
    for matrix in part.middle:
        if matrix.columns <= channels.shape[1]:
            step = operands.project(channels[:, : matrix.columns], (matrix,))
            del step
    output = operands.empty(tokens, inner)
    gated = torch.empty_like(output)
    for first, last in spans(tokens):
        output[first:last] = 0
        width = min(inner, fused.shape[1])
        gated[first:last] = output[first:last]
        gated[first:last, :width] *= silu(fused[first:last, :width])
    return gated
