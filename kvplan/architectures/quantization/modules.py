"""Modules: which parts of a model a quantization config names.

Configs name modules in several ways: full paths (``model.layers.0.mlp.gate``), parts of paths
(``lm_head``, ``model.vision_tower``), paths with ``*``, and regular expressions after ``re:``.
The last are a stranger's programs: only simple ones are understood, and those become globs,
which can't run away.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Iterable

from kvplan.errors import NotModelledError

_LAYER = re.compile(r"(?:^|\.)layers\.(\d{1,5})(\.|\*|$)", re.ASCII)
_PREFIXES = ("", "model.", "language_model.", "language_model.model.", "model.language_model.")
_GROUP = re.compile(r"\(([\w.|\\-]*)\)", re.ASCII)
_MAX_ALTERNATIVES = 64
_MAX_GROUPS = 6
_MAX_LENGTH = 256


class Modules:
    """A set of modules, given as a config names them.

    Args:
        entries: The names and patterns.

    Raises:
        NotModelledError: a regular expression beyond the simple ones.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self._exact: set[str] = set()
        self._anywhere: list[re.Pattern[str]] = []
        self._in_layer: dict[int, list[re.Pattern[str]]] = {}
        for entry in entries:
            if len(entry) > _MAX_LENGTH:
                raise _not_understood(entry)
            if entry.startswith("re:"):
                for glob in _globs(entry.removeprefix("re:")):
                    self._add(glob)
            elif "*" in entry:
                self._add(entry)
                self._add(f"{entry}.*")  # everything inside the module, too
            else:
                self._exact.add(_core(entry))
        # How many parts names have: no other pieces of a path need be looked up.
        self._lengths = tuple({name.count(".") + 1 for name in self._exact})

    def cover(self, module: str) -> bool:
        """Whether a module, or one that it is part of, is in the set.

        Args:
            module: Without what stands before the layers: ``layers.3.mlp.gate``, ``lm_head``.
        """
        if not (self._exact or self._anywhere or self._in_layer):
            return False
        if self._exact and self._names_part_of(module):
            return True
        patterns = self._anywhere
        layer = _LAYER.search(module)
        if layer is not None:
            patterns = patterns + self._in_layer.get(int(layer[1]), [])
        return any(pattern.match(prefix + module) for pattern in patterns for prefix in _PREFIXES)

    def _names_part_of(self, module: str) -> bool:
        """Whether some parts of the path in a row are a name of the set."""
        parts = module.split(".")
        for length in self._lengths:
            for start in range(len(parts) - length + 1):
                if ".".join(parts[start : start + length]) in self._exact:
                    return True
        return False

    def _add(self, glob: str) -> None:
        pattern = re.compile(fnmatch.translate(glob))
        layer = _LAYER.search(glob)
        # "layers.1*" also means layers 10 to 19, so it belongs to no single layer.
        if layer is None or layer[2] == "*":
            self._anywhere.append(pattern)
        else:
            self._in_layer.setdefault(int(layer[1]), []).append(pattern)


def _core(path: str) -> str:
    layer = _LAYER.search(path)
    if layer is not None:
        return path[layer.start() :].removeprefix(".")
    for prefix in reversed(_PREFIXES):
        if prefix and path.startswith(prefix):
            return path.removeprefix(prefix)
    return path


def _globs(pattern: str) -> tuple[str, ...]:
    """The globs that together mean a regular expression with groups of alternatives."""
    pieces: list[tuple[str, ...]] = []
    end = 0
    for group in _GROUP.finditer(pattern):
        pieces += [(pattern[end : group.start()],), tuple(group[1].split("|"))]
        end = group.end()
    if len(pieces) > 2 * _MAX_GROUPS:
        raise _not_understood(pattern)
    combinations = itertools.product(*pieces, (pattern[end:],))
    chosen = tuple(itertools.islice(combinations, _MAX_ALTERNATIVES + 1))
    if len(chosen) > _MAX_ALTERNATIVES:
        raise _not_understood(pattern)
    return tuple(_glob(pattern, "".join(parts)) for parts in chosen)


def _glob(pattern: str, expression: str) -> str:
    body = expression.removeprefix("^").removesuffix("$")
    for many in (".*", r"\d+", "[0-9]+"):
        body = body.replace(many, "\0")
    body = body.replace(r"\.", ".")
    if re.search(r"[\\^$+?(){}\[\]|*]", body):
        raise _not_understood(pattern)
    # `re.match` is anchored in front only, so without "$" anything may follow.
    return body.replace("\0", "*") + ("" if expression.endswith("$") else "*")


def _not_understood(pattern: str) -> NotModelledError:
    return NotModelledError(
        f"The quantization config selects modules by {pattern[:60]!r}, which is not understood.",
        hint="Plain names, `*` and simple regular expressions are.",
    )
