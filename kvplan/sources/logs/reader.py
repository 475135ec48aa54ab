"""A log of any engine, however long → its measurement records, one a start."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO, cast

from kvplan.errors import InputError
from kvplan.measurement import Measurement
from kvplan.sources.logs.arguments import read_arguments
from kvplan.sources.logs.engine_log import EngineLog
from kvplan.sources.logs.generic import ANY
from kvplan.sources.logs.lines import Line, unwrap
from kvplan.sources.logs.llamacpp import LLAMACPP
from kvplan.sources.logs.nearly import matters, nearly_said
from kvplan.sources.logs.ollama import OLLAMA
from kvplan.sources.logs.record import to_measurement
from kvplan.sources.logs.scan import lines_with
from kvplan.sources.logs.sglang import SGLANG
from kvplan.sources.logs.starts import Sightings, Start, note
from kvplan.sources.logs.tensorrt_llm import TENSORRT_LLM
from kvplan.sources.logs.vllm import VLLM
from kvplan.sources.logs.wording import ALSO_LOOKED_FOR, Wording
from kvplan.sources.text_lines import name_of, opened

ENGINES = (VLLM, SGLANG, TENSORRT_LLM, LLAMACPP, OLLAMA)
_BY_NAME = {engine.name: engine for engine in ENGINES}
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Pods or services whose lines one file mixes; what lies beyond is read as one.
_MOST_STREAMS = 256


def read_log(path: str) -> Iterator[Measurement]:
    """The starts that a log tells of, each as soon as it is over.

    What the log does not say is None in a record; nothing is filled in. Any number of starts,
    pods and ranks may be mixed; gzip is unpacked; ``-`` is standard input.

    Raises:
        UsageError: no such file.
        InputError: it can't be read, or tells of no start of any engine known here.
    """
    name = name_of(path)
    found = False
    with opened(path) as stream:
        for record in starts_in(stream, name):
            found = True
            yield record
    if not found:
        raise InputError(
            "No start of an engine was found in this log.",
            hint="Logs of vLLM, SGLang, TensorRT-LLM, llama.cpp and Ollama are read, from the "
            "first line of a start on, at the log level info.",
            location=name,
        )


def starts_in(stream: BinaryIO, name: str) -> Iterator[Measurement]:
    """The records of a log that is open.

    Args:
        stream: At its start.
        name: What it is called in the records' ``source``.
    """
    for start in _starts(stream, name):
        if start.says_something:
            yield to_measurement(start, _BY_NAME[start.engine], name)


def _starts(stream: BinaryIO, name: str) -> Iterator[Start]:
    readers: dict[str, _StreamReader] = {}
    for number, raw, whole in lines_with(_as_utf8(stream), _NEEDLES, name):
        for line in unwrap(raw, number, whole=whole):
            known = line.stream in readers or len(readers) < _MOST_STREAMS
            reader = readers.setdefault(line.stream if known else "", _StreamReader())
            yield from reader.take(line)
    last = [reader.current for reader in readers.values() if reader.current is not None]
    yield from sorted(last, key=lambda start: start.line)


def _as_utf8(stream: BinaryIO) -> BinaryIO:
    """What a shell of Windows wrote in UTF-16, as UTF-8."""
    peek = getattr(stream, "peek", None)
    if peek is None or peek(2)[:2] not in _UTF16:
        return stream
    return cast("BinaryIO", codecs.EncodedFile(stream, "utf-8", "utf-16", errors="replace"))


def _every_wording() -> Iterator[tuple[EngineLog, Wording]]:
    for engine in (*ENGINES, ANY):
        for each in engine.wordings:
            yield engine, each


_CARRYING = tuple(engine for engine in ENGINES if engine.carried)
# Whose sentences a start of each may hold: Ollama runs llama.cpp.
_ENGINES_OF: dict[str, tuple[EngineLog, ...]] = {
    **{name: (engine,) for name, engine in _BY_NAME.items()},
    OLLAMA.name: (OLLAMA, LLAMACPP),
}
_WORDINGS = tuple(_every_wording())
_NEEDLES = tuple(
    sorted(word.encode() for word in {*ALSO_LOOKED_FOR, *(each.coarse for _, each in _WORDINGS)})
)


class _StreamReader:
    """Reads what one pod, service or terminal wrote: one start after the other."""

    def __init__(self) -> None:
        self.current: Start | None = None
        self._carried: Sightings = {}
        self._lost: set[str] = set()

    def take(self, line: Line) -> Iterator[Start]:
        """Takes what a line says, if anything; the start that it puts an end to."""
        said = set[Wording]()
        for engine, each in _WORDINGS:
            for match in each.find_all(line) if each.needle in line.text else ():
                before = self.current
                said.add(each)
                self._note(engine, each, line, match)
                if before is not None and before is not self.current:
                    yield before
        if not all(map(matters, said)):  # a sentence of which it is known that it means nothing
            return
        self._lose_carried(line, said)
        if self.current is not None:
            yield from self._take_damaged(self.current, line, said)

    def _lose_carried(self, line: Line, said: set[Wording]) -> None:
        """Takes note of what a line would have said of every start."""
        for engine in _CARRYING:
            sentences = (w for w in engine.wordings if w not in said)
            for each in nearly_said(
                line, (w for w in sentences if engine.carried & w.facts.keys())
            ):
                self._lost |= engine.carried & each.facts.keys()

    def _take_damaged(self, start: Start, line: Line, said: set[Wording]) -> Iterator[Start]:
        """Takes note of what a line would have said; a start that it would have ended."""
        told = {name for each in said for name in each.facts}
        begins = any(each.begins for each in said)
        for engine in _ENGINES_OF[start.engine]:
            for each in nearly_said(line, (w for w in engine.wordings if w not in said)):
                if each.begins and not begins and not _is_below(engine, start):
                    yield start
                    self._begin(engine, line)
                    return
                start.spoil({*each.facts, *each.resets} - told)
                start.closed |= each.closes

    def _note(self, engine: EngineLog, each: Wording, line: Line, match: re.Match[str]) -> None:
        values = each.read(match)
        if each.arguments:
            rest = line.text[match.end() :]
            values |= read_arguments(rest, each.arguments, whole=_has_end(line))
        lost = {each.needs} - {"", *values} if _has_end(line) else set[str]()
        for name in engine.carried & values.keys():
            note(self._carried, name, values[name])
        self._turn_to(engine, each, line, only_carried=values.keys() <= engine.carried)
        start = self.current
        if start is None or not _speaks_for(engine, start):
            return
        start.forget(each.resets)
        start.spoil(lost)
        rank = _rank(_BY_NAME[start.engine], match, line)
        if rank is not None:
            start.add(values, engine.facts, rank)
        start.closed |= each.closes
        if each.outcome:
            start.end(each.outcome)

    def _turn_to(self, engine: EngineLog, each: Wording, line: Line, *, only_carried: bool) -> None:
        """Begins a new start where the sentence does not belong to the current one."""
        current = self.current
        if each.begins and not _is_below(engine, current):
            ours = current is not None and current.engine == engine.name
            if current is None or not (ours and current.is_begun_by(each, line)):
                current = self._begin(engine, line)
            current.begin(each, line)
        elif current is None and engine is not ANY and each.opens and not only_carried:
            self._begin(engine, line)

    def _begin(self, engine: EngineLog, line: Line) -> Start:
        self.current = Start(engine.name, line.number)
        self.current.carry(
            {name: self._carried[name] for name in engine.carried & self._carried.keys()}
        )
        self.current.spoil(self._lost & engine.carried)
        return self.current


def _has_end(line: Line) -> bool:
    """Whether the end of a line's settings is there.

    The first line of a file may have lost the mark of a container runtime that it is only a part.
    """
    return line.whole and line.number > 1


def _rank(engine: EngineLog, match: re.Match[str], line: Line) -> str | None:
    """Whose figures a line gives; None for what is not a GPU's."""
    device = match.groupdict().get("device")
    return line.process if device is None or engine.rank_of is None else engine.rank_of(device)


def _is_below(engine: EngineLog, current: Start | None) -> bool:
    """Whether an engine is part of the start that is read: Ollama runs llama.cpp."""
    return engine is LLAMACPP and current is not None and current.engine == OLLAMA.name


def _speaks_for(engine: EngineLog, current: Start) -> bool:
    """Whether an engine's sentences say something of the start that is read."""
    return engine is ANY or engine.name == current.engine or _is_below(engine, current)
