"""Lines that nearly say a sentence: one byte of them is damaged, so that their figure is lost.

A figure that is lost is harmless where it is the only one; a sum of several, or the least of
several ranks, would be wrong without it. Whoever reads has to know that something was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from kvplan.sources.logs.lines import Line, one_off
from kvplan.sources.logs.wording import LOOKED_AT, WHOSE, Wording

# Plain words that a sentence has to have in all, and in the run of them that is looked for first:
# shorter ones are in too many lines.
_TELLING, _ANCHOR, _SHORTEST = 12, 6, 4
# What may stand between two runs: a figure, or whatever the sentence leaves open.
_GAP = ".{0,160}?"
# Characters around that run in which the others stand.
_BEFORE, _AFTER = 200, 400
_BLANKS = re.compile(" +")

# The runs of plain words in order, and the longest first.
_Pieces = tuple[tuple[str, ...], tuple[str, ...]]


def nearly_said(line: Line, wordings: Iterable[Wording]) -> Iterator[Wording]:
    """The sentences that a line would say with one other character, or with a figure in it.

    Args:
        line: One that does not say them.
        wordings: Of one engine's log.
    """
    text = _BLANKS.sub(" ", line.text[:LOOKED_AT])
    for each in wordings:
        in_order, longest_first = _pieces(each)
        if longest_first and _is_near(text, in_order, longest_first):
            yield each


def matters(each: Wording) -> bool:
    """Whether anything is lost with a sentence."""
    return bool(each.facts.keys() - WHOSE or each.resets or each.closes or each.begins)


@cache
def _pieces(each: Wording) -> _Pieces:
    """Nothing of a sentence that can't be told by its words, or whose loss means nothing."""
    words = (_BLANKS.sub(" ", piece).strip() for piece in each.words.split("\n"))
    pieces = tuple(piece for piece in words if piece)
    longest_first = tuple(sorted(pieces, key=len, reverse=True))
    tells = sum(map(len, pieces)) >= _TELLING and len(longest_first[0]) >= _ANCHOR
    return (pieces, longest_first) if tells and matters(each) else ((), ())


def _is_near(text: str, pieces: tuple[str, ...], longest_first: tuple[str, ...]) -> bool:
    missing = ""
    for piece in longest_first:
        if piece not in text:
            if missing:
                return False
            missing = piece
    half = len(missing) // 2
    if missing and missing[:half] not in text and missing[half:] not in text:
        return False  # one character can't have hit both
    if not missing:  # what stands between them is damaged, or one of which the line has another
        return _around(text, longest_first[0], _in_order(pieces))
    anchor = next((piece for piece in longest_first if piece != missing), missing)
    if len(anchor) < _ANCHOR:
        anchor = missing
    return _around(text, anchor, _with_one_damaged(pieces, missing))


def _around(text: str, anchor: str, pattern: re.Pattern[str]) -> bool:
    """Whether the pattern is found near the anchor, or anywhere if that is damaged."""
    place = text.find(anchor)
    if place < 0:
        return pattern.search(text) is not None
    return pattern.search(text, max(0, place - _BEFORE), place + _AFTER) is not None


@cache
def _in_order(pieces: tuple[str, ...]) -> re.Pattern[str]:
    """Without the shortest, of which a line may have others; any of the rest may be damaged."""
    return re.compile(_GAP.join(one_off(piece) for piece in pieces if len(piece) >= _SHORTEST))


@cache
def _with_one_damaged(pieces: tuple[str, ...], damaged: str) -> re.Pattern[str]:
    return re.compile(
        _GAP.join(one_off(piece) if piece == damaged else re.escape(piece) for piece in pieces)
    )
