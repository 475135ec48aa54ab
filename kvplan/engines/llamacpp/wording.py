"""What llama-server's settings are called by whoever starts it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kvplan.plan import Reason


@dataclass(frozen=True, slots=True)
class Wording:
    """Names for reports and hints: llama.cpp's own, or those of an engine that starts it.

    Attributes:
        sequences, context: Options.
        cache_type: What asks for a smaller cache.
        notes: Reasons of the outer engine.
        options: Options to report instead of llama.cpp's own; empty: those.
        assumed: Of them, those that nobody gave.
    """

    name: str = "llama.cpp"
    sequences: str = "n_seq_max"
    context: str = "n_ctx"
    cache_type: str = "-o cache_type_k=q8_0 -o cache_type_v=q8_0"
    notes: tuple[Reason, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()


OWN = Wording()
