"""Counts the bytes of tensors as they come and go: torch's own statistics where it keeps none.

Every storage counts once, whoever views it, from the operation that made it until the last
reference is gone. What a kernel takes for itself inside is not seen.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Tracker(TorchDispatchMode):
    """Counts while it is entered.

    Attributes:
        live: Bytes of the storages that exist now.
        peak: The most there were since `reset_peak`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.live: int = 0
        self.peak: int = 0
        self._known: set[int] = set()

    def reset_peak(self) -> None:
        """Starts the peak anew from what exists."""
        self.peak = self.live

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Runs the operation and counts the storages of what it returns."""
        result = operation(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self._count(leaf.untyped_storage())
        return result

    def _count(self, storage: Any) -> None:
        # torch keeps one Python object a storage, so its end is the storage's end.
        key = storage._cdata  # noqa: SLF001 - torch has no other name for a storage's identity
        if key in self._known:
            return
        size = int(storage.nbytes())
        self._known.add(key)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._gone, key, size)

    def _gone(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.live -= size
