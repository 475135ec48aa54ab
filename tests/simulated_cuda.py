"""A GPU that torch believes in: its tensors lie in the machine's memory, its figures are counted.

Every function of ``torch.cuda`` that is called takes its arguments by the signature of the real
one, so that a call which torch would refuse is refused here too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from kvplan.measure.tracker import Tracker

MIB = 2**20
_SEGMENT = 2 * MIB


@dataclass
class SimulatedCuda:
    """One card, and what torch and the driver say of it.

    Attributes:
        total: All its memory.
        others: What other programs hold.
        context: What a context takes.
        libraries: What is taken past torch once something is multiplied.
        fails: What the first product raises.
    """

    total: int
    others: int = 0
    context: int = 400 * MIB
    libraries: int = 120 * MIB
    fails: RuntimeError | None = None
    name: str = "Simulated 4GB"
    tracker: Tracker = field(default_factory=Tracker)
    calls: list[str] = field(default_factory=list)
    started: bool = False
    multiplied: bool = False
    held: int = 0
    peak_base: int = 0

    def taken(self) -> int:
        """What the driver calls used."""
        own = (self.context + self.reserved()) if self.started else 0
        return self.others + own + self.libraries * self.multiplied

    def reserved(self) -> int:
        """Whole segments; what is free again is kept until the cache is emptied."""
        self.held = max(self.held, self.tracker.live)
        return -(-self.held // _SEGMENT) * _SEGMENT

    def free(self) -> int:
        """What nobody holds."""
        return self.total - self.taken()

    def room(self, size: int) -> None:
        """Raises what torch raises if there is none."""
        unused = self.reserved() - self.tracker.live
        if size > self.free() + unused:
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size} bytes.")

    def empty_cache(self) -> None:
        """Gives back what is kept."""
        self.held = self.tracker.live

    def reset_peak_memory_stats(self, device: Any = None) -> None:  # noqa: ARG002
        """Starts the peak anew."""
        self.tracker.reset_peak()


def _functions(card: SimulatedCuda) -> dict[str, Callable[..., Any]]:
    properties = SimpleNamespace(name=card.name, total_memory=card.total)
    return {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "get_device_properties": lambda device=None: properties,  # noqa: ARG005
        "set_device": lambda device: None,  # noqa: ARG005
        "synchronize": lambda device=None: None,  # noqa: ARG005
        "mem_get_info": lambda device=None: (card.free(), card.total),  # noqa: ARG005
        "memory_allocated": lambda device=None: card.tracker.live,  # noqa: ARG005
        "memory_reserved": lambda device=None: card.reserved(),  # noqa: ARG005
        "max_memory_allocated": lambda device=None: card.tracker.peak,  # noqa: ARG005
        "empty_cache": card.empty_cache,
        "reset_peak_memory_stats": card.reset_peak_memory_stats,
    }


class _OnTheCpu(TorchFunctionMode):
    """Makes tensors of ``cuda:0`` on the CPU, if the card has room for them."""

    def __init__(self, card: SimulatedCuda) -> None:
        super().__init__()
        self._card = card

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Counts the context, products and sizes on the way."""
        kwargs, card = dict(kwargs or {}), self._card
        name = getattr(function, "__name__", "")
        if str(kwargs.get("device", "")).startswith("cuda"):
            kwargs["device"] = "cpu"
            card.started = True
            if name in ("empty", "zeros"):
                shape = args[0] if isinstance(args[0], (tuple, list)) else args
                size = torch.empty(tuple(shape), dtype=kwargs.get("dtype"), device="meta").nbytes
                card.room(size)
        if name in ("mm", "bmm", "matmul", "__matmul__"):
            if card.fails is not None:
                raise card.fails
            card.multiplied = True
        return function(*args, **kwargs)


@contextmanager
def simulated(card: SimulatedCuda, patch: pytest.MonkeyPatch) -> Iterator[SimulatedCuda]:
    """Torch with that card as its only GPU."""
    for name, stand_in in _functions(card).items():
        signature = inspect.signature(getattr(torch.cuda, name))

        def called(
            *args: Any,
            _name: str = name,
            _signature: inspect.Signature = signature,
            _stand_in: Callable[..., Any] = stand_in,
            **kwargs: Any,
        ) -> Any:
            _signature.bind(*args, **kwargs)
            card.calls.append(_name)
            return _stand_in(*args, **kwargs)

        patch.setattr(torch.cuda, name, called)
    with card.tracker, _OnTheCpu(card):
        yield card
