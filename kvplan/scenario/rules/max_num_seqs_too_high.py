"""KV106: more requests admitted than the cache holds, or than there are blocks for states."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.plan import Capacity
from kvplan.scenario.rules.base import Hit, Rule, Shown
from kvplan.sources.yaml_document import KeyPath

_OPTIONS = ("max_num_seqs", "max_running_requests", "max_batch_size")
_STATES = ("recurrent", "mamba")


def _check(shown: Shown) -> Iterator[Hit]:
    plan = shown.plan
    if plan is None or plan.capacity is None:
        return
    for name in _OPTIONS:
        asked = plan.engine.options.get(name)
        # What kvplan filled in is the engine's own default, and nobody's decision.
        if isinstance(asked, int) and shown.written(name) is not None:
            path = ("options", shown.written(name) or name)
            held = _held(shown, plan.capacity)
            yield from _too_high(name, asked, plan.capacity, held=held, path=path)


def _held(shown: Shown, capacity: Capacity) -> int:
    """Requests that one replica holds: of traffic at its risk, else of the planned length."""
    if shown.traffic is None or shown.plan is None:
        return int(capacity.max_concurrency)
    return shown.traffic.plan.held.requests // shown.plan.parallelism.dp


def _too_high(
    name: str, asked: int, capacity: Capacity, *, held: int, path: KeyPath
) -> Iterator[Hit]:
    states = any(group.kind.startswith(_STATES) for group in capacity.groups)
    if states and asked > capacity.blocks:
        yield Hit(
            f"{name} is {asked:,}, and there are {capacity.blocks:,} blocks: each request needs"
            " one for its recurrent state.",
            f"Write {name}: {max(1, capacity.blocks)} or less.",
            path,
        )
        return
    if 1 <= held < asked:
        yield Hit(
            f"{name} is {asked:,}, but the cache holds {held:,} requests of what is planned for:"
            " the others are preempted and computed again.",
            f"Write {name}: {held}, or plan for shorter requests.",
            path,
        )


RULE = Rule(
    "KV106",
    "max-num-seqs-too-high",
    "warning",
    "The engine admits more requests than its cache holds.",
    _check,
)
