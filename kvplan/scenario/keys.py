"""Dotted paths of keys that a matrix or ``--set`` may vary."""

from __future__ import annotations

from collections.abc import Collection

from kvplan.errors import UnknownNameError, UsageError, nearest, shown

_NOT_SET = frozenset(("expect",))
_OPEN = frozenset(("options", "workload", "prices"))


def split_keys(path: str, known: Collection[str]) -> tuple[str, ...]:
    """The keys of a dotted path.

    Args:
        path: ``tp``, ``options.max_num_seqs``, ``workload.sessions.ttl``.
        known: The keys of a scenario.

    Raises:
        UnknownNameError: a scenario has no such key.
        UsageError: a path into a key that holds a single value, or to `expect`.
    """
    keys = tuple(path.strip().split("."))
    varied = [name for name in known if name not in _NOT_SET]
    if keys[0] not in varied:
        raise UnknownNameError(
            f"A scenario has no key {shown(keys[0])} that can be varied.",
            hint=nearest(keys[0], varied) or f"It has {', '.join(varied)}.",
        )
    if not all(keys) or (len(keys) > 1 and keys[0] not in _OPEN):
        raise UsageError(
            f"{shown(path)} is no key of a scenario.", hint="Write tp or options.max_num_seqs."
        )
    return keys
