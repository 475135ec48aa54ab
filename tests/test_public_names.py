"""The names a library user has, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kvplan
from kvplan.errors import KvplanError as DefinedThere

PUBLIC = {
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
}


def run(code: str) -> str:
    """What ``code`` prints in an interpreter of its own."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_public_names_are_these() -> None:
    assert set(kvplan.__all__) == PUBLIC
    assert dir(kvplan) == sorted(PUBLIC)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(kvplan, name) is not None


def test_every_name_is_where_it_says() -> None:
    assert kvplan.KvplanError is DefinedThere
    homes = {name: getattr(kvplan, name).__module__ for name in PUBLIC - {"__version__"}}
    assert homes == {
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


def test_there_are_no_other_names() -> None:
    with pytest.raises(AttributeError, match="module 'kvplan' has no attribute 'sise'"):
        _ = kvplan.sise  # type: ignore[attr-defined]


def test_a_star_import_gives_the_public_names() -> None:
    names = run("from kvplan import *; print(sorted(n for n in dir() if n != '__builtins__' "
                "and (n == '__version__' or not n.startswith('__'))))")  # fmt: skip
    assert names == str(sorted(PUBLIC))


@pytest.mark.parametrize(
    "code", ["import kvplan", "import kvplan; kvplan.__version__; dir(kvplan)"]
)
def test_importing_the_package_loads_nothing_else(code: str) -> None:
    heavy = ("pydantic", "yaml", "typer", "rich", "huggingface_hub", "pynvml", "numpy", "torch")
    loaded = run(f"import sys; {code}; print([n for n in {heavy!r} if n in sys.modules])")
    assert loaded == "[]"
    ours = run(f"import sys; {code}; print(sorted(n for n in sys.modules if 'kvplan' in n))")
    assert ours == "['kvplan', 'kvplan._version']"


def test_reading_a_type_does_not_load_the_outside_world() -> None:
    loaded = run(
        "import kvplan, sys; kvplan.Plan; kvplan.ModelSpec; kvplan.GpuSpec; kvplan.KvplanError; "
        "print([n for n in sys.modules if n.split('.')[0] in ('yaml', 'rich', 'typer', "
        "'huggingface_hub', 'pynvml') or n.startswith(('kvplan.sources', 'kvplan.engines'))])"
    )
    assert loaded == "[]"
