"""Keys of a scenario by dotted path: ``tp``, ``options.max_num_seqs``, ``workload.concurrency``."""

from __future__ import annotations

from typing import Any

from kvplan.check_result import Place
from kvplan.errors import UnknownNameError, UsageError, nearest, shown
from kvplan.scenario.layers import MergedDocument, merged_document
from kvplan.scenario.schema import Settings

_NOT_SET = frozenset(("expect",))
_OPEN = frozenset(("options", "workload", "prices"))


def keys_of(path: str) -> tuple[str, ...]:
    """The keys of a dotted path.

    Raises:
        UnknownNameError: a scenario has no such key.
        UsageError: a path into a key that holds a single value, or to `expect`.
    """
    keys = tuple(path.strip().split("."))
    known = [name for name in Settings.model_fields if name not in _NOT_SET]
    if keys[0] not in known:
        raise UnknownNameError(
            f"A scenario has no key {shown(keys[0])} that can be varied.",
            hint=nearest(keys[0], known) or f"It has {', '.join(known)}.",
        )
    if not all(keys) or (len(keys) > 1 and keys[0] not in _OPEN):
        raise UsageError(
            f"{shown(path)} is no key of a scenario.", hint="Write tp or options.max_num_seqs."
        )
    return keys


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
