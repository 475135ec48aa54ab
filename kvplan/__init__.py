"""kvplan: how many requests fit in memory, what runs out first, and what to change.

Nothing is imported until it is used: `import kvplan` costs what Python itself costs.
"""

from __future__ import annotations

from kvplan._version import __version__

TYPE_CHECKING = False  # as type checkers know it; `typing` itself would have to be imported
if TYPE_CHECKING:
    from typing import Any

    from kvplan.api import size
    from kvplan.check_result import CheckResult
    from kvplan.checking.files import check
    from kvplan.engine_comparison import EngineComparison
    from kvplan.errors import KvplanError
    from kvplan.fit_result import FitResult
    from kvplan.fitting import fit
    from kvplan.hardware import GpuSpec
    from kvplan.library import simulate, traffic
    from kvplan.models.spec import ModelSpec
    from kvplan.plan import Plan
    from kvplan.plan_files import export
    from kvplan.side_by_side import compare
    from kvplan.simulation import Simulation
    from kvplan.sweep_result import Sweep
    from kvplan.sweeper import sweep
    from kvplan.traffic_plan import TrafficPlan
    from kvplan.workload import Workload

__all__ = [
    "CheckResult",
    "EngineComparison",
    "FitResult",
    "GpuSpec",
    "KvplanError",
    "ModelSpec",
    "Plan",
    "Simulation",
    "Sweep",
    "TrafficPlan",
    "Workload",
    "__version__",
    "check",
    "compare",
    "export",
    "fit",
    "simulate",
    "size",
    "sweep",
    "traffic",
]

_HOMES = {
    "CheckResult": "kvplan.check_result",
    "EngineComparison": "kvplan.engine_comparison",
    "FitResult": "kvplan.fit_result",
    "GpuSpec": "kvplan.hardware",
    "KvplanError": "kvplan.errors",
    "ModelSpec": "kvplan.models.spec",
    "Plan": "kvplan.plan",
    "Simulation": "kvplan.simulation",
    "Sweep": "kvplan.sweep_result",
    "TrafficPlan": "kvplan.traffic_plan",
    "Workload": "kvplan.workload",
    "check": "kvplan.checking.files",
    "compare": "kvplan.side_by_side",
    "export": "kvplan.plan_files",
    "fit": "kvplan.fitting",
    "simulate": "kvplan.library",
    "size": "kvplan.api",
    "sweep": "kvplan.sweeper",
    "traffic": "kvplan.library",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kvplan' has no attribute {name!r}")
    import importlib  # noqa: PLC0415

    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
