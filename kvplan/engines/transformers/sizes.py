"""Bytes of the cached tensors after a prompt and some steps, and of the storage they keep alive.

Sources: transformers 5.24.0, src/transformers/cache_utils.py: DynamicLayer,
DynamicSlidingWindowLayer, StaticLayer, StaticSlidingWindowLayer, LinearAttentionLayer. The few
scalars beside the tensors (lengths, windows, scales of whole tensors) are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kvplan.engines.transformers.kept import Kept, Rows
from kvplan.engines.transformers.quantized import Scheme, quantized_bytes


@dataclass(frozen=True, slots=True)
class Moment:
    """A point of a generation.

    Attributes:
        batch: Sequences.
        prompt: Tokens of the prompt, all in one forward pass.
        steps: Passes of one token after it.
    """

    batch: int
    prompt: int
    steps: int = 0

    @property
    def tokens(self) -> int:
        """Tokens of each sequence."""
        return self.prompt + self.steps


@dataclass(frozen=True, slots=True)
class Layout:
    """How a cache keeps rows.

    Attributes:
        static_len: Tokens for which tensors are allocated at once; None: they grow.
        scheme: How keys and values are packed, or None.
        element_bytes: Bytes of an element that is not packed.
    """

    element_bytes: int
    static_len: int | None = None
    scheme: Scheme | None = None


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes of tensors, and of the storage behind them: a view keeps what it was cut from."""

    tensor: int
    storage: int


def cache_size(kept: Iterable[Kept], layout: Layout, moment: Moment) -> Size:
    """All layers together."""
    tensor = storage = 0
    for part in kept:
        size = layer_size(part, layout, moment)
        tensor += size.tensor * len(part.layers)
        storage += size.storage * len(part.layers)
    return Size(tensor, storage)


def layer_size(part: Kept, layout: Layout, moment: Moment) -> Size:
    """One layer."""
    if part.rows is None:
        state = part.state_bytes * moment.batch
        return Size(state, state)
    if layout.scheme is not None:
        packed = quantized_bytes(
            part.rows, layout.scheme, moment.batch, moment.prompt, moment.steps
        )
        return Size(packed, packed)
    tokens, behind = held(part.rows, layout.static_len, moment)
    row = part.rows.elements * layout.element_bytes * moment.batch
    return Size(tokens * row, behind * row)


def held(rows: Rows, static_len: int | None, moment: Moment) -> tuple[int, int]:
    """Tokens whose rows the tensors hold, and tokens whose rows their storage holds."""
    if rows.source is not None:
        source = rows.source or moment.prompt
        return source, source
    if static_len is not None:
        tokens = min(static_len, rows.window or static_len)
        return tokens, tokens
    return _growing(rows.window, moment)


def _growing(window: int | None, moment: Moment) -> tuple[int, int]:
    """Rows that grow by concatenation.

    A window keeps one token fewer than it is wide: the next token is the last of the window. What
    it keeps of a prompt is a view of the whole until the next step makes new tensors. A window of
    one token slices from the start (``-1 + 1``) and so keeps everything.
    """
    tokens = moment.tokens
    if window is None or window == 1:
        return tokens, tokens
    behind = min(tokens, window) if moment.steps else tokens
    return min(tokens, window - 1), behind
