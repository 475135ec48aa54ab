"""How many cells a context has: the one place where llama.cpp rounds.

Source: ggml-org/llama.cpp@0c1e57098 src/llama-context.cpp (``llama_context``) and
src/llama-kv-cache-iswa.cpp.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.models.formats import round_up

STEP = 256


@dataclass(frozen=True, slots=True)
class Context:
    """A context as it is allocated.

    Attributes:
        n_ctx: Cells over all streams.
        n_ctx_seq: Cells of one stream: the longest sequence.
        streams: Caches side by side: one a sequence, or one for all.
        sequences: Sequences at once.
        n_ubatch: Tokens computed at once.
    """

    n_ctx: int
    n_ctx_seq: int
    streams: int
    sequences: int
    n_ubatch: int

    def window_cells(self, window: int) -> int:
        """Cells of a stream for layers that attend to the last ``window`` tokens."""
        shared_by = self.sequences if self.streams < self.sequences else 1
        # Sequences of one stream have a window each, and a batch is written before it is read.
        wanted = window * shared_by + self.n_ubatch
        return round_up(min(self.n_ctx_seq, wanted), STEP)


def context_of(
    requested: int, sequences: int, *, unified: bool, n_batch: int, n_ubatch: int
) -> Context:
    """The context that a request for ``requested`` cells comes to.

    Without a unified cache each sequence has its share, rounded up to 256 cells by itself: the
    whole may be more than was asked for.

    >>> context_of(1000, 7, unified=False, n_batch=2048, n_ubatch=512).n_ctx
    1792
    """
    batch = min(requested, n_batch)
    whole = round_up(requested, STEP)
    each = whole if unified else round_up(whole // sequences, STEP)
    streams = 1 if unified else sequences
    return Context(
        n_ctx=each * streams,
        n_ctx_seq=each,
        streams=streams,
        sequences=sequences,
        n_ubatch=min(batch, n_ubatch or batch),
    )
