"""A comparison made by hand from the sample plans: one that holds most, one less, two refusals."""

from __future__ import annotations

from sample_plans import does_not_fit, fits_unasked, refused

from kvplan.engine_comparison import EngineComparison
from kvplan.errors import UsageError
from kvplan.plan import Plan
from kvplan.planning.compare import Asked, compare


def other_engine(plan: Plan, name: str, **options: object) -> Plan:
    """The plan as if another engine had made it: requests are larger, runtime takes more."""
    ledger = tuple(
        line.model_copy(update={"bytes": line.bytes + shift, "high": line.high + shift,
                                "low": line.low + shift})
        if (shift := _SHIFTS.get(line.name, 0)) else line
        for line in plan.ledger
    )  # fmt: skip
    assert plan.kv is not None
    assert plan.capacity is not None
    return plan.model_copy(
        update={
            "engine": plan.engine.model_copy(
                update={"name": name, "version": "1.2", "options": dict(options)}
            ),
            "ledger": ledger,
            "kv": plan.kv.model_copy(
                update={"bytes_per_request": 2 * plan.kv.bytes_per_request, "dtype": "float32"}
            ),
            "capacity": plan.capacity.model_copy(
                update={"requests": plan.capacity.requests // 2, "tokens": 1000}
            ),
        }
    )


_SHIFTS = {"runtime.activations": 3 * 2**30, "kv.pool": -3 * 2**30}


def asked() -> tuple[Asked, ...]:
    """What came of asking four engines."""
    plan = fits_unasked()
    limited = other_engine(
        plan, "sglang", mem_fraction_static=0.88, max_running_requests=plan.capacity.requests // 2
        if plan.capacity else 0,
    )  # fmt: skip
    refuses = refused()
    return (
        Asked("vllm", "0.33.0", plan),
        Asked("sglang", "1.2", limited),
        Asked(
            "llama.cpp",
            "b1",
            refuses.model_copy(
                update={"engine": refuses.engine.model_copy(update={"name": "llama.cpp"})}
            ),
        ),
        Asked("tensorrt-llm", "1.0", UsageError("It has no cache type fp5.")),
    )


def comparison(entries: tuple[Asked, ...] | None = None) -> EngineComparison:
    """Those engines side by side."""
    plan = does_not_fit()
    return compare(
        asked() if entries is None else entries,
        model="org/model",
        gpu="H100-SXM-80GB",
        parallelism=plan.parallelism,
        workload=plan.workload,
    )
