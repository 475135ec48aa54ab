"""Which layer goes to which device.

Layers are filled from the back: of ``n_gpu_layers`` the last is the output layer, the others the
last layers of the model; what is left stays on the host. GPUs share them in consecutive runs.
Source: ggml-org/llama.cpp@0c1e57098 src/llama-model.cpp (``load_tensors``).
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

HOST = -1


@dataclass(frozen=True, slots=True)
class Placement:
    """Devices by layer.

    Attributes:
        layers: The index of each layer's GPU, or `HOST`; modules for multi-token prediction that
            the file holds come last.
        output: Where the output layer is.
    """

    layers: tuple[int, ...]
    output: int

    @property
    def on_gpus(self) -> int:
        """What n_gpu_layers counts: layers on GPUs, the output layer among them."""
        return len(self.layers) - self.layers.count(HOST) + (self.output != HOST)


def place(layers: int, n_gpu_layers: int, shares: Sequence[float]) -> Placement:
    """Places ``layers`` layers and the output layer.

    Args:
        layers: All layers of the file.
        n_gpu_layers: How many go to GPUs, the output layer counted.
        shares: What each GPU takes, in any unit; empty: there are none.
    """
    on_gpus = max(0, min(n_gpu_layers, layers + 1)) if shares else 0
    points, last = _split_points(shares), len(shares) - 1
    gpus = [min(bisect_right(points, before), last) for before in _shares(on_gpus)]
    *homes, output = [HOST] * (layers + 1 - on_gpus) + gpus
    return Placement(tuple(homes), output)


@lru_cache(maxsize=1024)
def _shares(count: int) -> list[float]:
    """What lies before each of so many layers, as a share of them."""
    return [_single(before / count) for before in range(count)]


def _split_points(shares: Sequence[float]) -> list[float]:
    """Cumulative shares of one, in single precision as there."""
    points: list[float] = []
    total = 0.0
    for share in shares:
        total = _single(total + _single(share))
        points.append(total)
    return [_single(point / total) for point in points]


def _single(number: float) -> float:
    """The nearest number of single precision."""
    return float(struct.unpack("f", struct.pack("f", number))[0])
