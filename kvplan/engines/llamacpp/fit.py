"""What ``--fit`` chooses: how many layers, whose experts, how much context.

It measures a start without loading anything and keeps some memory free on each GPU. Dense layers
fill the GPUs from the back; where all of them fit, routed experts follow as far as there is room.
Of a last layer it may move single tensors, which is not modelled; and it knows the compute buffers
exactly, which kvplan does not: near a boundary it may choose a layer more or less.
Source: ggml-org/llama.cpp@0c1e57098 common/fit.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kvplan.engines.llamacpp.allocation import Allocation
from kvplan.engines.llamacpp.context import STEP

SMALLEST_CONTEXT = 4096


@dataclass(frozen=True, slots=True)
class Choice:
    """Layers on the GPUs, by GPU and in all, and layers whose experts stay on the host."""

    n_gpu_layers: int
    tensor_split: tuple[float, ...]
    experts_on_host: frozenset[int] = frozenset()


Try = Callable[[Choice], Allocation]


def choose(try_: Try, *, layers: int, gpus: int, margin: int, experts: Sequence[int]) -> Choice:
    """The choice for a context that is settled.

    Args:
        try_: The start under a choice.
        layers: Layers of the file; with the output layer there is one more.
        gpus: How many GPUs there are.
        margin: Bytes to keep free on each.
        experts: Layers that have routed experts.
    """
    everything = Choice(layers + 1, ())
    if _within(try_(everything), range(gpus), margin):
        return everything
    dense = frozenset(experts)
    counts = [0] * gpus
    for gpu in reversed(range(gpus)):
        spare = layers + 1 - sum(counts)
        counts[gpu] = _most(
            spare,
            lambda count, gpu=gpu: _within(  # type: ignore[misc]
                try_(_choice(_with(counts, gpu, count), dense)), [gpu], margin
            ),
        )
    if not experts or sum(counts) <= layers:
        return _choice(counts, dense)
    return _with_experts(try_, counts, experts, margin)


def _with_experts(try_: Try, counts: Sequence[int], experts: Sequence[int], margin: int) -> Choice:
    """All dense layers fit: as many layers as possible get their experts, from the front."""

    def choice(full: int) -> Choice:
        return _choice(counts, frozenset(experts[full:]))

    return choice(
        _most(len(experts), lambda full: _within(try_(choice(full)), range(len(counts)), margin))
    )


def shrunk_context(used: Callable[[int], int], *, most: int, streams: int, target: int) -> int:
    """The context that ``--fit`` settles on where none is given and the whole does not fit.

    It interpolates between the smallest context and the whole one.

    Args:
        used: Bytes over all GPUs under a context.
        most: The whole context.
        streams: Caches side by side.
        target: Bytes that may be used over all GPUs.
    """
    least = SMALLEST_CONTEXT * streams
    if most <= least:
        return most
    low, high = used(least), used(most)
    if target <= low or high <= low:
        return least
    context = least + (most - least) * (target - low) // (high - low)
    return max(least, min(most, context) // (STEP * streams) * STEP * streams)


def _most(most: int, holds: Callable[[int], bool]) -> int:
    """The largest count that holds, or 0; more never holds where less does not."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _within(start: Allocation, gpus: Sequence[int], margin: int) -> bool:
    lefts = [start.loads[gpu].left for gpu in gpus]
    return all(left is None or left >= margin for left in lefts)


def _with(counts: Sequence[int], gpu: int, count: int) -> list[int]:
    changed = list(counts)
    changed[gpu] = count
    return changed


def _choice(counts: Sequence[int], experts_on_host: frozenset[int]) -> Choice:
    split = tuple(map(float, counts)) if len(counts) > 1 and any(counts) else ()
    return Choice(sum(counts), split, experts_on_host)
