"""The names that an expectation may use: short ones, and every field of the plan by its path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from kvplan.errors import UnknownNameError, nearest
from kvplan.plan import Plan
from kvplan.scenario.kinds import Kind
from kvplan.traffic_plan import TrafficPlan

# What is computed from a plan and the scenario, and is no field of the plan.
COMPUTED: Mapping[str, Kind] = {
    "headroom": "share",
    "uncertainty": "share",
    "requests_with_prefixes": "count",
    "requests_with_sessions": "count",
    "sessions_kept": "count",
    "overload_risk": "share",
    "replicas": "count",
    "concurrency": "count",
    "cost_per_hour": "money",
    "cost_per_request": "money",
    "weights_bytes": "bytes",
}
# Short names of fields, and where the plan has them.
SHORT: Mapping[str, str] = {
    "requests": "capacity.requests",
    "blocks": "capacity.blocks",
    "tokens": "capacity.tokens",
    "tokens_low": "capacity.tokens_low",
    "tokens_high": "capacity.tokens_high",
    "max_context": "capacity.max_context",
    "max_concurrency": "capacity.max_concurrency",
    "kv.tokens": "capacity.tokens",
    "kv.tokens_low": "capacity.tokens_low",
    "kv.tokens_high": "capacity.tokens_high",
    "gpus": "gpu.count",
    "context": "workload.context",
    "held_requests": "traffic.held.requests",
    "peak_requests": "traffic.load.peak_concurrent",
    "most_rate": "traffic.load.most_rate_per_s",
    "tokens_p99": "traffic.total.p99",
}
TRAFFIC = "traffic."
_OPTION = "engine.options."
_LEDGER = "ledger."
_TOKENS = frozenset(("tokens", "tokens_low", "tokens_high", "max_context", "context"))
_BYTES = frozenset(("bytes_per_token", "bytes_per_request", "bytes_per_block"))
_ENDS = ("_bytes", "bytes_saved", "budget_low", "budget_high")
# Lists, and what says which plan this is rather than what it found.
_LEFT_OUT = frozenset(
    (
        *("schema_", "reasons", "ledger", "advice", "devices", "groups", "assumed"),
        *("fits", "pools", "hours", "kvplan_version"),
    )
)
# What a traffic's answer repeats of the plan.
_OF_PLAN = ("model.", "gpu.", "engine.", "parallelism.")
# What no scenario asks of traffic.
_NOT_ASKED = ("disaggregated.", "policy.", "tiers.", "held.simulated.", "held.offered")
_SHARES = frozenset(("risk", "peak_risk", "left_out", "hit_rate", "found", "running_share"))
_LENGTHS = frozenset(("mean", "p50", "p90", "p95", "p99", "max"))


def kind_of(name: str) -> Kind:
    """The kind of value that a name stands for.

    Raises:
        UnknownNameError: nothing is called that; the nearest name is the hint.
    """
    path = SHORT.get(name, name)
    if path in COMPUTED:
        return COMPUTED[path]
    if path.startswith(_OPTION) and len(path) > len(_OPTION):
        return "any"
    if path.startswith(_LEDGER) and len(path) > len(_LEDGER):
        return "bytes"
    found = fields().get(path)
    if found is None:
        known = (*SHORT, *COMPUTED, *fields())
        raise UnknownNameError(
            f"{name!r} is nothing that a plan states.",
            hint=nearest(name, known) or "docs/scenarios.md lists the names.",
        )
    return found


@lru_cache(maxsize=1)
def fields() -> Mapping[str, Kind]:
    """Every single value of a plan, and of what traffic does to it, by its dotted path."""
    traffic = {
        f"{TRAFFIC}{path}": kind
        for path, kind in _walk(TrafficPlan, "")
        if not path.startswith((*_OF_PLAN, *_NOT_ASKED))
    }
    return {**dict(_walk(Plan, "")), **traffic}


def _walk(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, Kind]]:
    for name, field in model.model_fields.items():
        if name in _LEFT_OUT:
            continue
        for kind in _members(field.annotation):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from _walk(kind, f"{prefix}{name}.")
            elif get_origin(kind) not in (dict, tuple):
                yield f"{prefix}{name}", _kind(name, kind)


def _members(annotation: Any) -> list[Any]:
    if get_origin(annotation) in (Literal, dict, tuple) or isinstance(annotation, type):
        return [annotation]
    return [each for each in get_args(annotation) if each is not type(None)]


def _kind(name: str, annotation: Any) -> Kind:
    if annotation is str or get_origin(annotation) is Literal:
        return "text"
    if name in _TOKENS or name in _LENGTHS:
        return "tokens"
    if name in _SHARES:
        return "share"
    if name in _BYTES or name.endswith(_ENDS):
        return "bytes"
    return "count" if annotation is int else "number"


def words_of(name: str) -> tuple[str, ...]:
    """The words that a field may be, empty where it may be any."""
    if name not in ("verdict", f"{TRAFFIC}verdict"):
        return ()
    return get_args(Plan.model_fields["verdict"].annotation)


def of_plan(plan: Plan, name: str) -> Any:
    """A field of a plan by its name or path; None where the plan does not state it."""
    path = SHORT.get(name, name)
    if path.startswith(_LEDGER):
        return _of_ledger(plan, path.removeprefix(_LEDGER))
    if path.startswith(_OPTION):
        return plan.engine.options.get(path.removeprefix(_OPTION))
    return _at(plan, path)


def of_traffic(plan: TrafficPlan, name: str) -> Any:
    """A field of a traffic's answer by its name or path; None where it does not state it."""
    return _at(plan, SHORT.get(name, name).removeprefix(TRAFFIC))


def is_of_traffic(name: str) -> bool:
    """Whether a figure needs requests that come and go."""
    return name in _NEED_TRAFFIC or SHORT.get(name, name).startswith(TRAFFIC)


_NEED_TRAFFIC = frozenset(("overload_risk", "replicas"))


def _at(plan: BaseModel, path: str) -> Any:
    found: Any = plan.model_dump(mode="python", include={path.split(".", maxsplit=1)[0]})
    for part in path.split("."):
        if found is None:
            return None
        found = found[part]
    return found


def _of_ledger(plan: Plan, name: str) -> int | None:
    lines = [
        line.bytes for line in plan.ledger if line.name == name or line.name.startswith(f"{name}.")
    ]
    return sum(lines) if lines else None
