"""Feed-forwards: dense ones, and experts with the workspaces that vLLM's Triton kernels take.

Source of the workspaces: vLLM 0.33.0, TritonExperts.workspace_shapes in
vllm/model_executor/layers/fused_moe/experts/triton_moe.py, allocated as one buffer that is kept
(get_simultaneous in vllm/v1/worker/workspace.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import silu

from kvplan.measure.attention import spans
from kvplan.measure.operands import Operands
from kvplan.measure.piece import Piece
from kvplan.measure.roles import Projections
from kvplan.measure.store import Matrix
from kvplan.models.formats import ceil_div, round_up

# Rows of one expert that are gathered at a time: our kernels copy them, the engine's do not.
_GATHERED = 256
_ALIGNED = 256
_PAIR = 2


@dataclass(frozen=True, slots=True)
class ExpertSizes:
    """Widths of a rank's experts.

    Attributes:
        chosen: Experts a token goes through.
        inward: Elements that the first product gives; gate and up together.
        inner: Elements that the activation leaves.
        hidden: Width of the residual stream.
    """

    chosen: int
    inward: int
    inner: int
    hidden: int

    def workspace_elements(self, tokens: int) -> tuple[int, int]:
        """Elements of the two workspaces, each rounded up to 256 bytes of a two-byte type."""
        rows = tokens * self.chosen
        first = rows * max(self.inner, self.hidden)
        second = rows * max(self.inward, self.hidden)
        return round_up(first, _ALIGNED // 2), round_up(second, _ALIGNED // 2)


def feed_forward(piece: Piece, part: Projections, operands: Operands) -> Any:
    """A dense feed-forward: (tokens, hidden) in and out. Takes the piece's input."""
    if part.outward is None:
        return piece.take()
    wide = operands.project(piece.take(), part.inward)
    inner = _activated(wide, part.outward.columns)
    del wide
    return operands.project(inner, (part.outward,))


def _activated(wide: Any, inner: int) -> Any:
    """silu(gate) × up into one new buffer, or silu alone where there is no gate."""
    result = silu(wide[:, :inner])
    if wide.shape[1] >= _PAIR * inner:
        result.mul_(wide[:, inner : _PAIR * inner])
    return result


def route(
    inputs: Any, router: Sequence[Matrix], chosen: int, operands: Operands
) -> tuple[Any, ...]:
    """Router logits, weights and ids of the chosen experts, and the order of the rows."""
    logits = operands.project(inputs, tuple(router))
    scores, ids = torch.topk(logits.float().softmax(-1), chosen)
    order = torch.argsort(ids.flatten().int()).int()
    return logits, scores, ids.int(), order


def run_experts(
    inputs: Any, part: Projections, sizes: ExpertSizes, workspace: Any, operands: Operands
) -> Any:
    """All experts over an even spread of rows, through the workspace: (tokens, hidden).

    Which rows an expert gets changes no size, so they are dealt out evenly: the sizes then are
    known before anything is computed.
    """
    if part.outward is None:
        return torch.empty_like(inputs)
    tokens = inputs.shape[0]
    rows = tokens * sizes.chosen
    first, _ = sizes.workspace_elements(tokens)
    activated = workspace[: rows * sizes.inner].view(rows, sizes.inner)
    wide = workspace[first : first + rows * sizes.inward].view(rows, sizes.inward)
    product = workspace[first : first + rows * sizes.hidden].view(rows, sizes.hidden)
    # Few rows go to few experts.
    experts = min(part.outward.copies, ceil_div(rows, _GATHERED))
    bounds = [rows * expert // experts for expert in range(experts + 1)]
    for expert in range(experts):
        _inward(inputs, part.inward, expert, (bounds[expert], bounds[expert + 1]), wide, operands)
    for start, stop in spans(rows, _GATHERED):
        activated[start:stop] = _activated(wide[start:stop], sizes.inner)
    for expert in range(experts):
        start, stop = bounds[expert], bounds[expert + 1]
        down = operands.of(part.outward, expert).T
        torch.mm(activated[start:stop], down, out=product[start:stop])
    result = operands.empty(tokens, sizes.hidden)
    for start, stop in spans(tokens, _GATHERED):
        each = product[start * sizes.chosen : stop * sizes.chosen]
        result[start:stop] = each.unflatten(0, (stop - start, sizes.chosen)).sum(1)
    return result


def _inward(  # noqa: PLR0917 - one expert's rows of one product
    inputs: Any,
    matrices: Sequence[Matrix],
    expert: int,
    bounds: tuple[int, int],
    wide: Any,
    operands: Operands,
) -> None:
    tokens = inputs.shape[0]
    for start, stop in spans(bounds[1] - bounds[0], _GATHERED):
        rows = torch.arange(bounds[0] + start, bounds[0] + stop, device=operands.device).remainder(
            tokens
        )
        gathered = inputs.index_select(0, rows)
        column = 0
        for matrix in matrices:
            into = wide[bounds[0] + start : bounds[0] + stop, column : column + matrix.rows]
            torch.mm(gathered, operands.of(matrix, expert).T, out=into)
            column += matrix.rows
