"""An advice's change as the flags that make it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any


def change_flags(change: Mapping[str, Any]) -> tuple[str, ...]:
    """The flags of `kvplan size` for a change of its arguments, each with its value.

    >>> change_flags({"tp": 8, "kv_dtype": "fp8", "engine_options": {"max_num_seqs": 64}})
    ('--tp 8', '--kv-dtype fp8', '-o max_num_seqs=64')
    """
    return tuple(
        shlex.join(words) for name, value in change.items() for words in _words(name, value)
    )


def _words(name: str, value: Any) -> list[list[str]]:
    if name == "engine_options" and isinstance(value, Mapping):
        return [["-o", f"{option}={_literal(setting)}"] for option, setting in value.items()]
    if name == "model":
        return [[str(value)]]
    flag = "--" + name.replace("_", "-")
    if value is None or value is False:
        return []
    return [[flag] if value is True else [flag, str(value)]]


def _literal(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
