"""Tokens a block: the backends' common size, then what aligns unlike pages.

A recurrent state has one size whatever the block's; vLLM enlarges attention's blocks until a page
of them covers the state, and pads the state to it. Layers that keep another type of cache than the
rest are reconciled in the same way.

Source: vLLM 0.33.0, vllm/platforms/interface.py update_block_size_for_backend,
_align_hybrid_block_size and _align_heterogeneous_kv_block_size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kvplan.engines.vllm.backends import DEFAULT_BLOCK, TURBOQUANT_BACKEND, Backend
from kvplan.engines.vllm.cells import Cell
from kvplan.errors import EngineRefusesError
from kvplan.models.formats import ceil_div, round_up

# MLA's decode kernels want blocks of 128 tokens beside recurrent layers.
_LATENT_ALIGNMENT = 128


def common_block(backends: Sequence[Backend], asked: int | None) -> int:
    """The user's size if every backend takes it, else 16, else the smallest they share.

    Raises:
        EngineRefusesError: a backend does not take the asked size.
    """
    if asked is not None:
        for backend in backends:
            _check_asked(backend, asked)
        return asked
    base = math.lcm(*(backend.base for backend in backends))
    return DEFAULT_BLOCK if DEFAULT_BLOCK % base == 0 else base


def _check_asked(backend: Backend, asked: int) -> None:
    if asked < 1 or asked % backend.base:
        raise EngineRefusesError(
            f"{backend.name} takes blocks in multiples of {backend.base} tokens, not {asked}.",
            hint=f"Use -o block_size={backend.base} or leave it out.",
        )


def block_beside_states(
    cells: Sequence[Cell],
    state_bytes: int,
    *,
    token_bytes: int,
    block: int,
    checkpoint_grid: int | None,
) -> int:
    """The block whose page of attention covers a recurrent state.

    Args:
        cells: Those of the attention layers, in order.
        state_bytes: Bytes of the largest state.
        token_bytes: What `token_bytes_beside_states` says of the cells.
        block: Tokens so far.
        checkpoint_grid: Tokens that checkpoints are aligned to, or None.
    """
    kernel = max(cells[0].backend.base, block)
    if any(cell.kind == "latent" for cell in cells):
        kernel = max(kernel, _LATENT_ALIGNMENT)
    kernel = math.lcm(kernel, checkpoint_grid or 1)
    aligned = kernel * ceil_div(state_bytes, kernel * token_bytes)
    return max(block, round_up(aligned, math.lcm(*(cell.backend.base for cell in cells))))


def token_bytes_beside_states(cells: Sequence[Cell], skipped: Sequence[bool]) -> int:
    """Bytes of a token that attention's pages are counted with where states are aligned.

    Args:
        cells: Those of the attention layers, in order.
        skipped: Which of them are left out of the cache's quantization.
    """
    packed, plain = _packed_and_plain(cells, skipped)
    if packed.backend == TURBOQUANT_BACKEND:
        # Beside plain layers: a page that holds whole tokens of both.
        return math.lcm(packed.token_bytes, plain.token_bytes)
    return _counted(packed, cells)


def _packed_and_plain(cells: Sequence[Cell], skipped: Sequence[bool]) -> tuple[Cell, Cell]:
    """The first cell of the cache's type and the first that is left out, or the other twice."""
    packed = next((c for c, left_out in zip(cells, skipped, strict=True) if not left_out), None)
    plain = next((c for c, left_out in zip(cells, skipped, strict=True) if left_out), None)
    return packed or plain or cells[0], plain or packed or cells[0]


def _counted(packed: Cell, cells: Sequence[Cell]) -> int:
    # The first layer's backend counts the page; another's packing is unknown to it.
    known = cells[0].backend == packed.backend
    return packed.token_bytes if known else packed.unpacked_bytes


def block_beside_unquantized(
    cells: Sequence[Cell], skipped: Sequence[bool], *, block: int, state_page: int
) -> tuple[int, int | None]:
    """The block for layers that are left out of the cache's quantization.

    Args:
        cells: Those of the attention layers, in order.
        skipped: Which of them are left out.
        block: Tokens so far.
        state_page: Bytes of a recurrent state's page, or 0.

    Returns:
        Tokens of a block, and the page that windows are padded to (None: no padding).
    """
    packed, plain = _packed_and_plain(cells, skipped)
    first, primary = cells[0].backend, _counted(packed, cells)
    if plain.token_bytes == primary:
        return block, None
    step = max(first.base, block)
    required = max(plain.token_bytes * first.base, state_page)
    block = max(block, step * ceil_div(required, step * primary))
    return block, block * primary
