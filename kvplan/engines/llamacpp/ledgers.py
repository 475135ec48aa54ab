"""One device's memory as ledger lines. All lines sum to the device."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace

from kvplan.engines import occupied
from kvplan.engines.llamacpp import compute, history
from kvplan.engines.llamacpp.allocation import Load, Share
from kvplan.engines.llamacpp.caches import LayerStore
from kvplan.engines.llamacpp.devices import RUNTIME_SOURCE
from kvplan.ledger import Draft, LedgerLine

_CACHE_SOURCE = f"{history.SOURCE} src/llama-kv-cache.cpp, src/llama-memory-recurrent.cpp"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9_]+")


def ledger_of(load: Load) -> tuple[LedgerLine, ...]:
    """All lines of one device; of a given budget the caches alone."""
    caches = _caches(load)
    if load.budget is not None:
        return _lines((*caches, _rest("kv_budget", load.budget, caches)))
    others = occupied.lines(load.device.in_use, "outside")
    drafts = (*_weights(load), *_compute(load), *caches, _runtime(load), *others)
    total = load.device.memory.total if load.device.memory else sum(d.value() for d in drafts)
    return _lines((*drafts, _rest("total_bytes", total, drafts)))


def _lines(drafts: Iterable[Draft]) -> tuple[LedgerLine, ...]:
    return tuple(draft.line() for draft in drafts)


def _rest(name: str, total: int, drafts: Iterable[Draft]) -> Draft:
    spent = {identifier(draft.name): draft.value() for draft in drafts}
    return Draft(
        "unused",
        "free",
        " - ".join((name, *spent)),
        {name: total, **spent},
        source="what is not allocated; --fit keeps 1024 MiB of it",
        confidence="derived",
    )


def _weights(load: Load) -> Iterable[Draft]:
    for prefix, share in _named(load):
        by_component: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for (component, stored), size in share.weights.items():
            by_component[component][f"{identifier(stored)}_bytes"] += size
        for component, sizes in by_component.items():
            yield Draft(
                f"weights.{prefix}{component}",
                "budget",
                " + ".join(sizes),
                dict(sizes),
                source="sizes of the file's tensors, placed as src/llama-model.cpp does",
                confidence="exact",
            )


def _compute(load: Load) -> Iterable[Draft]:
    for prefix, share in _named(load):
        if share.inputs is not None:
            yield Draft(
                f"{prefix}compute_buffer",
                "budget",
                share.formula,
                share.inputs,
                source=compute.SOURCE,
                confidence="calibrated",
                low={"spread": load.low},
                high={"spread": load.high},
            )


def _caches(load: Load) -> tuple[Draft, ...]:
    return tuple(
        _states(load, prefix, stores)
        if stores[0].kind == "recurrent"
        else _cells(load, prefix, stores)
        for prefix, share in _named(load)
        for stores in _by_kind(share.stores)
    )


def _cells(load: Load, prefix: str, stores: tuple[LayerStore, ...]) -> Draft:
    first, context = stores[0], load.context
    layers, (keys, values) = _times(tuple((store.k_row, store.v_row) for store in stores))
    window = f"_{first.window}" if first.window else ""
    return Draft(
        f"{prefix}kv_cache.{first.kind}{window}",
        "pool",
        "layers * streams * cells * (k_bytes + v_bytes)",
        {
            "layers": layers,
            "streams": context.streams,
            "cells": first.cells(context, swa_full=load.swa_full),
            "k_bytes": keys,
            "v_bytes": values,
        },
        source=_CACHE_SOURCE,
        confidence="exact",
    )


def _states(load: Load, prefix: str, stores: tuple[LayerStore, ...]) -> Draft:
    layers, (inputs, state) = _times(tuple((store.inputs, store.state) for store in stores))
    return Draft(
        f"{prefix}recurrent_state",
        "pool",
        "layers * sequences * (input_bytes + state_bytes)",
        {
            "layers": layers,
            "sequences": load.context.sequences,
            "input_bytes": inputs,
            "state_bytes": state,
        },
        source=_CACHE_SOURCE,
        confidence="exact",
    )


def _times(sizes: tuple[tuple[int, int], ...]) -> tuple[int, tuple[int, int]]:
    """How many layers times which sizes; layers that differ are summed and count as one."""
    if len(set(sizes)) == 1:
        return len(sizes), sizes[0]
    return 1, (sum(first for first, _ in sizes), sum(second for _, second in sizes))


def _by_kind(stores: Iterable[LayerStore]) -> tuple[tuple[LayerStore, ...], ...]:
    groups: dict[tuple[str, int | None], list[LayerStore]] = {}
    for store in stores:
        groups.setdefault((store.kind, store.window), []).append(store)
    return tuple(map(tuple, groups.values()))


def _runtime(load: Load) -> Draft:
    likely, low, high = load.device.runtime
    return Draft(
        "process",
        "outside",
        "process_bytes",
        {"process_bytes": likely},
        source=RUNTIME_SOURCE,
        confidence="calibrated",
        low={"process_bytes": low},
        high={"process_bytes": high},
    )


def alike(stores: Iterable[LayerStore]) -> tuple[tuple[LayerStore, ...], ...]:
    """Layers that keep the same, together, in order of their first."""
    groups: dict[LayerStore, list[LayerStore]] = {}
    for store in stores:
        groups.setdefault(replace(store, layer=0), []).append(store)
    return tuple(map(tuple, groups.values()))


def _named(load: Load) -> tuple[tuple[str, Share], ...]:
    return tuple(zip(("", "draft_"), load.shares, strict=False))


def identifier(name: str) -> str:
    """A name that a formula may use."""
    return _NOT_IN_NAMES.sub("_", name.lower())
