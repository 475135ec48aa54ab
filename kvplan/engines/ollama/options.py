"""Ollama's option names: those of a Modelfile or request, and of its environment.

Source: ollama/ollama@fb307609 api/types.go (``Runner``) and envconfig/config.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from kvplan.engines.llamacpp import values
from kvplan.errors import UnknownNameError, UsageError, nearest, shown


def _layers(name: str, value: Any) -> int:
    return values.integer(name, value, -1)


READERS: Mapping[str, Callable[[str, Any], Any]] = MappingProxyType(
    {
        "num_ctx": values.count,
        "num_parallel": values.count,
        "kv_cache_type": values.cache_type,
        "num_batch": values.count,
        "num_gpu": _layers,
        "flash_attention": values.attention,
    }
)
ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "ollama_context_length": "num_ctx",
        "context_length": "num_ctx",
        "ollama_num_parallel": "num_parallel",
        "ollama_kv_cache_type": "kv_cache_type",
        "ollama_flash_attention": "flash_attention",
    }
)


def read_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Checks names and types.

    Raises:
        UnknownNameError: Ollama has no such option; the nearest name is the hint.
        UsageError: a value of the wrong type or out of range, or a name given twice.
    """
    read: dict[str, Any] = {}
    for written, value in options.items():
        name = written.strip().lstrip("-").replace("-", "_").lower()
        own = ALIASES.get(name, name)
        if own in read:
            raise UsageError(f"{own} is given twice.", hint="Keep one of the two.")
        if own not in READERS:
            raise UnknownNameError(
                f"Ollama has no option {shown(name)} that kvplan knows.",
                hint=nearest(name, (*READERS, *ALIASES)) or f"It knows {', '.join(READERS)}.",
            )
        read[own] = READERS[own](name, value)
    return read
