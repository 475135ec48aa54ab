"""kvplan: how many requests fit in memory, what runs out first, and what to change.

Nothing is imported until it is used: `import kvplan` costs what Python itself costs.
"""

from __future__ import annotations

from kvplan._version import __version__

TYPE_CHECKING = False  # as type checkers know it; `typing` itself would have to be imported
if TYPE_CHECKING:
    from typing import Any

    from kvplan.api import size
    from kvplan.engine_comparison import EngineComparison
    from kvplan.errors import KvplanError
    from kvplan.hardware import GpuSpec
    from kvplan.models.spec import ModelSpec
    from kvplan.plan import Plan
    from kvplan.side_by_side import compare

__all__ = [
    "EngineComparison",
    "GpuSpec",
    "KvplanError",
    "ModelSpec",
    "Plan",
    "__version__",
    "compare",
    "size",
]

_HOMES = {
    "EngineComparison": "kvplan.engine_comparison",
    "GpuSpec": "kvplan.hardware",
    "KvplanError": "kvplan.errors",
    "ModelSpec": "kvplan.models.spec",
    "Plan": "kvplan.plan",
    "compare": "kvplan.side_by_side",
    "size": "kvplan.api",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kvplan' has no attribute {name!r}")
    import importlib  # noqa: PLC0415

    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
