"""Lines with certain words are found in any file, however it is cut into blocks."""

from __future__ import annotations

import io
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import InputError
from kvplan.sources.logs import scan
from kvplan.sources.logs.reader import _NEEDLES, _WORDINGS

NEEDLES = (b"GiB", b"memory")
WORDS = st.sampled_from([b"GiB", b"memory", b"Gi", b"B", b"x", b" ", b"\n", b"\n", b"a" * 40])


def found(data: bytes) -> list[scan.RawLine]:
    return list(scan.lines_with(io.BytesIO(data), NEEDLES))


@given(data=st.lists(WORDS, max_size=60).map(b"".join), block=st.integers(1, 50))
def test_the_same_lines_as_one_by_one(data: bytes, block: int) -> None:
    lines = data.split(b"\n")
    expected = [
        (number, line, number < len(lines))
        for number, line in enumerate(lines, start=1)
        if any(needle in line for needle in NEEDLES)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "_BLOCK", block)
        assert found(data) == expected


def test_a_line_that_goes_on_and_on_is_cut() -> None:
    data = b"1 GiB\n" + b"x" * (3 * scan.LONGEST_LINE) + b" GiB\n3 GiB\n"
    assert found(data) == [(1, b"1 GiB", True), (3, b"3 GiB", True)]


def test_its_beginning_counts_without_an_end() -> None:
    data = b"1 GiB " + b"x" * (3 * scan.LONGEST_LINE)
    ((number, line, whole),) = found(data)
    assert (number, line[:6], len(line), whole) == (1, b"1 GiB ", scan.LONGEST_LINE, False)


def test_few_words_find_every_sentence() -> None:
    assert len(_NEEDLES) <= 70
    for _, wording in _WORDINGS:
        assert wording.coarse.encode() in _NEEDLES
        assert wording.coarse in wording.words or wording.coarse == wording.needle


class _Endless:
    """A file of ``blocks`` blocks of lines, made as it is read."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks

    def read(self, count: int) -> bytes:
        self._blocks -= 1
        return b"POST /v1/chat/completions 200 OK\n" * (count // 33) if self._blocks else b""


def test_memory_does_not_grow_with_the_file() -> None:
    stream: Any = _Endless(blocks=160)  # 40 MiB
    tracemalloc.start()
    try:
        assert list(scan.lines_with(stream, _NEEDLES)) == []
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


def test_a_line_that_never_ends_is_no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "_ENDLESS", 3 * scan.LONGEST_LINE)

    class Zeros:
        def read(self, count: int) -> bytes:
            return bytes(count)

    stream: Any = Zeros()
    with pytest.raises(InputError, match="more than 1 GiB") as caught:
        list(scan.lines_with(stream, NEEDLES, "zeros"))
    assert caught.value.location == "zeros:1"
