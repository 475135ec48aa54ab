"""Tables of lengths: for each window of time, how likely a request has so many tokens.

The form of ServeGen's datasets (github.com/alibaba/ServeGen, ``*-dataset.json``): one JSON object
``{window: {"input_tokens": "{108: 0.3, …}", "output_tokens": "{…}"}}``; of multimodal workloads
the prompt is the sum of text, image, audio and video tokens. A window without requests is empty.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvplan.errors import InputError, UsageError
from kvplan.units import MAX_TOKENS
from kvplan.workloads.distributions import Histogram, histogram
from kvplan.workloads.lengths import Kind, Lengths

_LARGEST, _FIRST_LINE = 64 * 2**20, 64
_PROMPTS = (("input_tokens",), ("text_tokens", "image_tokens", "audio_tokens", "video_tokens"))
_OUTPUT = "output_tokens"
_MOST = 1_000_000
_HINT = 'Write {"0": {"input_tokens": "{100: 0.5, 200: 0.5}", "output_tokens": "{30: 1.0}"}}.'


def length_table(path: str) -> Lengths | None:
    """The lengths of such a table, each window alike; None where the file is something else.

    Raises:
        InputError: it begins like one and is wrong, or no window has a request.
    """
    windows = _windows(path)
    if windows is None:
        return None
    kinds = []
    for name, window in windows.items():
        prompt, output = _prompt(window, f"{path}, window {name}"), _law(window, _OUTPUT, path)
        if prompt is not None and output is not None:
            kinds.append(Kind(1.0, prompt, output))
    if not kinds:
        raise InputError("No window of the table has a request.", hint=_HINT, location=path)
    return Lengths(tuple(kinds), MAX_TOKENS)


def _windows(path: str) -> Mapping[str, Mapping[str, Any]] | None:
    """The object, if the file is one over several lines whose windows are objects."""
    file = Path(path)
    try:
        # A pipe can be read only once, and not by this.
        if not file.is_file() or file.stat().st_size > _LARGEST:
            return None
        with file.open("rb") as stream:
            if stream.readline(_FIRST_LINE).strip() != b"{":
                return None
        found = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        return None
    return found if any(_OUTPUT in window for window in found.values()) else None


def _prompt(window: Mapping[str, Any], location: str) -> Histogram | None:
    for fields in _PROMPTS:
        if fields[0] in window:
            sums: dict[int, float] = {0: 1.0}
            for field in fields:
                part = _shares(window, field, location)
                if not part:
                    return None
                sums = _added(sums, part, location)
            return _filled(sums)
    raise InputError("A window says nothing of its prompts.", hint=_HINT, location=location)


def _added(
    first: Mapping[int, float], second: Mapping[int, float], location: str
) -> dict[int, float]:
    """The distribution of the sum of two that know nothing of each other."""
    if len(first) * len(second) > _MOST:
        raise InputError("The table has too many lengths.", hint=_HINT, location=location)
    sums: dict[int, float] = {}
    for tokens, share in first.items():
        for more, part in second.items():
            sums[tokens + more] = sums.get(tokens + more, 0.0) + share * part
    return sums


def _law(window: Mapping[str, Any], field: str, location: str) -> Histogram | None:
    return _filled(_shares(window, field, location))


def _filled(shares: Mapping[int, float]) -> Histogram | None:
    """The distribution without requests of no token, which are none."""
    left = [(tokens, share) for tokens, share in shares.items() if tokens and share]
    return histogram(left) if left else None


def _shares(window: Mapping[str, Any], field: str, location: str) -> dict[int, float]:
    """``"{108: 0.3}"`` or ``{"108": 0.3}``."""
    value = window.get(field, {})
    try:
        found = ast.literal_eval(value) if isinstance(value, str) else value
        shares = {int(tokens): float(share) for tokens, share in found.items()}
    except (AttributeError, ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        shares = {-1: 0.0}
    if any(not 0 <= t <= MAX_TOKENS or not 0 <= s < math.inf for t, s in shares.items()):
        raise InputError(f"The {field} are no lengths with shares.", hint=_HINT, location=location)
    return shares


def check_not_table(path: str) -> None:
    """Raises where a trace is needed and the file is a table.

    Raises:
        UsageError: it is one.
    """
    if path != "-" and length_table(path) is not None:
        raise UsageError(
            "The file is a table of lengths, not a trace: nobody knows when requests come.",
            hint="Use it with kvplan traffic, or give --lengths and --rate.",
            location=path,
        )
