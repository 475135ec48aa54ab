"""Keys of a scenario by dotted path: ``tp``, ``options.max_num_seqs``, ``workload.concurrency``."""

from __future__ import annotations

from typing import Any

from kvplan.check_result import Place
from kvplan.scenario.keys import split_keys
from kvplan.scenario.layers import MergedDocument, merged_document
from kvplan.scenario.schema import Settings


def keys_of(path: str) -> tuple[str, ...]:
    """The keys of a dotted path.

    Raises:
        UnknownNameError, UsageError: see `kvplan.scenario.keys.split_keys`.
    """
    return split_keys(path, Settings.model_fields)


def with_value(
    document: MergedDocument, keys: tuple[str, ...], value: Any, place: Place
) -> MergedDocument:
    """The document with one key set, whose value then comes from ``place``."""
    data = _set(document.data, keys, value)
    origins = {
        path: origin for path, origin in document.origins.items() if path[: len(keys)] != keys
    }
    origins[keys] = place
    for length in range(1, len(keys)):
        origins.setdefault(keys[:length], place)
    return merged_document(data, origins)


def _set(node: dict[str, Any], keys: tuple[str, ...], value: Any) -> dict[str, Any]:
    first, *rest = keys
    if not rest:
        return {**node, first: value}
    inner = node.get(first)
    return {**node, first: _set(inner if isinstance(inner, dict) else {}, tuple(rest), value)}
