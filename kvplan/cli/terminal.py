"""What the reader's terminal can show. Only stdout is asked: reports go there."""

from __future__ import annotations

import codecs
import os
import shutil
import sys
from dataclasses import dataclass

# Pipes and CI logs have no width; tables narrower than 80 columns would break their numbers (a
# plan has narrow ones too), and prose wider than 140 is hard to read.
_UNKNOWN_WIDTH, _NARROWEST, _WIDEST = 120, 80, 140
NARROWEST_PLAN = 60


@dataclass(frozen=True)
class Terminal:
    """Columns, whether to write ANSI colours, and whether only ASCII is safe."""

    width: int
    color: bool
    ascii_only: bool


def terminal(narrowest: int = _NARROWEST) -> Terminal:
    """How stdout wants its text. COLUMNS, NO_COLOR, FORCE_COLOR and TERM are honoured.

    Args:
        narrowest: Fewest columns that the report can be laid out in.
    """
    columns = shutil.get_terminal_size((_UNKNOWN_WIDTH, 24)).columns
    return Terminal(
        width=min(max(columns, narrowest), _WIDEST),
        color=_wants_color(),
        ascii_only=not _is_utf8(getattr(sys.stdout, "encoding", None)),
    )


def paper() -> Terminal:
    """How a file wants its text: the same on every machine."""
    return Terminal(width=_UNKNOWN_WIDTH, color=False, ascii_only=False)


def _wants_color() -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR")
    if forced:
        return forced != "0"
    return sys.stdout is not None and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _is_utf8(encoding: str | None) -> bool:
    try:
        return codecs.lookup(encoding or "utf-8").name == "utf-8"
    except LookupError:
        return False
