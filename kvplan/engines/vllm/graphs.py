"""How many CUDA graphs vLLM captures.

Source: vLLM 0.33.0, vllm/config/vllm.py _set_cudagraph_sizes: 1, 2, 4, then every 8 up to 256, then
every 16 up to twice max_num_seqs, at most 512 and at most a batch.
"""

from __future__ import annotations

from functools import cache

from kvplan.engines.vllm.settings import Settings

_MOST = 512
_FINE = 256
# Modes with one graph a size; the default, FULL_AND_PIECEWISE, has two.
_ONE_EACH = ("PIECEWISE", "FULL", "FULL_DECODE_ONLY")
NO_GRAPHS = "NONE"


def captured(settings: Settings, cases: int = 1) -> int:
    """Graphs in all; 0 where they are switched off.

    Args:
        settings: Of the engine.
        cases: How often each is captured: 2 where adapters may run or not.
    """
    if settings.enforce_eager or settings.cudagraph_mode == NO_GRAPHS:
        return 0
    each = 1 if settings.cudagraph_mode in _ONE_EACH else 2
    return cases * each * sizes(settings)


def sizes(settings: Settings) -> int:
    """Batch sizes that graphs are captured for."""
    if settings.cudagraph_capture_sizes is not None:
        return len(settings.cudagraph_capture_sizes)
    most = settings.max_cudagraph_capture_size
    if most is None:
        most = min(2 * settings.max_num_seqs, _MOST)
    return sum(size <= min(most, settings.max_num_batched_tokens) for size in _ladder(most))


@cache
def _ladder(most: int) -> tuple[int, ...]:
    return (1, 2, 4, *range(8, _FINE, 8), *range(_FINE, most + 1, 16))
