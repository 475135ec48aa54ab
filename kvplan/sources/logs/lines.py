"""Lines of a log without what wraps them: containers, JSON, colours, progress bars, rank names.

What an engine wrote is found inside whatever carried it here, and whose output it was is kept: the
pod or service (`Line.stream`), and the process or rank within it (`Line.process`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

LONGEST_LINE = 2**20  # bytes; an engine's whole configuration on one line has some 20,000
_DEEPEST_WRAPPING = 3


def one_off(words: str) -> str:
    """A regular expression of ``words`` with any one character damaged."""
    places = range(len(words))
    ways = (f"{re.escape(words[:n])}.{re.escape(words[n + 1 :])}" for n in places)
    return f"(?:{'|'.join(ways)})"


# A terminal's colours, also as rsyslog writes the escape character.
_ANSI = re.compile(r"(?:\x1b|[#]033)\[[0-9;?]*[ -/]*[@-~]")
# What may stand before a line, in this order: the pod (kubectl logs --prefix), the service
# (docker compose), a model's port, a time, the container runtime's stream, the journal's host and
# unit.
_STREAMS = (
    re.compile(r"\[(pod/[^\]\s]{1,200})\] "),
    # llama-server's router puts a model's port before its lines.
    re.compile(r"\[ {0,4}(\d{2,5})\] (?=\d{1,4}\.\d\d\.\d{3}\.\d{3} [A-Z] )"),
    re.compile(r"(?!(?:INFO|DEBUG|WARN|ERROR|CRITICAL)\w*\b)([A-Za-z][\w.-]{0,80}) {1,40}\| "),
)
_PART = re.compile(r"(?:stdout|stderr) [FP] ")
_LATE_PART = re.compile(r" (?:stdout|stderr) P ")  # behind a time that is damaged
_DAMAGED_PART = re.compile("|".join(f"{one_off(stream)} . " for stream in ("stdout", "stderr")))
_TIMES = (
    re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d) "),
    _PART,
    re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,100} [\w.@-]{1,60}(?:\[\d{1,9}\])?: "),
)
# The keys under which log shippers put the text, most telling first.
_TEXT_KEYS = ("log", "message", "msg", "MESSAGE", "textPayload", "body", "line", "text")
_NESTED_KEYS = ("jsonPayload", "data", "attributes", "fields")
_POD_KEYS = ("pod_name", "pod", "container_name")

# vllm/utils/__init__.py@v0.10.2 (and its like from 0.6 on) puts the process before each line; Ray
# puts its own before that.
_PROCESS = re.compile(r"\s*\(([A-Za-z][\w .:=-]{0,80}? )?pid=(\d{1,10})(?:, ip=([\d.]{7,15}))?\)")
# sglang/srt/utils/common.py@v0.5.10, configure_logger: "[time DP0 TP1] ".
_SGLANG_RANK = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})?((?: [A-Z][A-Z_]{1,9}\d{1,5}){1,8})\]"
)
# tensorrt_llm/logger.py: "[TRT-LLM] [RANK 1] [I] ", earlier "[MPI_Rank 1]".
_TRTLLM_RANK = re.compile(r"\[TRT-LLM\] \[((?:MPI_Rank|RANK) \d{1,5})\]")
_ID, _NAME_AT_MOST = re.compile(r"pid=\d{1,10}[,)]"), 120
MIXED = "?"
_LOOKED_AT = 4096  # characters in which another process's mark is looked for


@dataclass(frozen=True)
class Line:
    """One line as its engine wrote it.

    Attributes:
        text: Without colours and wrapping.
        number: Of the line in the file, from 1.
        whole: Whether its end is there; the last line of a cut file has none.
        stream: The pod or service that wrote it, or nothing.
        process: The process or rank, or nothing; `MIXED` where two wrote into one line.
    """

    text: str
    number: int
    whole: bool = True
    stream: str = ""
    process: str = ""


def unwrap(raw: bytes, number: int, *, whole: bool = True) -> Iterator[Line]:
    """The engine's lines within one line of a file: mostly one, more where JSON holds several."""
    line = Line(raw.decode("utf-8", "replace"), number, whole)
    yield from _unwrapped(line, _DEEPEST_WRAPPING)


def _unwrapped(line: Line, depth: int) -> Iterator[Line]:
    line = _without_prefixes(line)
    is_json = line.text.lstrip().startswith("{")
    inner = _from_json(line) if is_json and depth else None
    if inner is None:
        # Of a JSON record that is cut off nobody knows whose it was.
        if line.whole or not is_json:
            yield from _pieces(line)
        return
    parts = inner.text.splitlines()
    for place, part in enumerate(parts, start=1):
        yield from _unwrapped(
            replace(inner, text=part, whole=inner.whole or place < len(parts)), depth - 1
        )


def _without_prefixes(line: Line) -> Line:
    text, stream, whole = line.text, line.stream, line.whole
    for pattern in _STREAMS:
        if match := pattern.match(text):
            text, stream = text[match.end() :], match[1]
    marked = False
    for pattern in _TIMES:
        if match := pattern.match(text):
            # The runtime marks a part of a long line with P, its end with F.
            text, marked = text[match.end() :], pattern is _PART
            whole &= not match[0].endswith(" P ")
    # Where that mark is damaged nobody knows.
    whole &= marked or (
        _DAMAGED_PART.match(text) is None and _LATE_PART.search(text, 0, 80) is None
    )
    return replace(line, text=text, stream=stream, whole=whole)


def _from_json(line: Line) -> Line | None:
    """What a JSON record carries, or None if it is none."""
    try:
        record = json.loads(line.text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, Mapping):
        return None
    message = _text_in(record)
    if message is None:
        return None
    pod = _first_text(_POD_KEYS, record.get("kubernetes"), record)
    # Docker ends a part of a long line without a line's end.
    part = "stream" in record and not message.endswith("\n")
    return replace(
        line,
        text=message,
        whole=not part,
        stream=pod or line.stream,
        process=_process_in(record) or line.process,
    )


def _text_in(record: Mapping[str, Any]) -> str | None:
    for holder in (record, *(record.get(key) for key in _NESTED_KEYS)):
        if isinstance(holder, Mapping):
            for key in _TEXT_KEYS:
                if isinstance(holder.get(key), str):
                    # JSON can spell half a character, which is no text.
                    return str(holder[key]).encode("utf-8", "replace").decode("utf-8")
    return None


def _first_text(keys: tuple[str, ...], *holders: Any) -> str:
    for holder in holders:
        if isinstance(holder, Mapping):
            for key in keys:
                if isinstance(holder.get(key), str):
                    return str(holder[key])[:200]
    return ""


def _process_in(record: Mapping[str, Any]) -> str:
    """The process, as the JSON lines of vllm/logging_utils/formatter.py@v0.33.0 name it."""
    name, pid = record.get("processName"), record.get("process")
    if isinstance(name, str) and isinstance(pid, int):
        return f"{name[:80]} pid={pid}"
    return ""


def _pieces(line: Line) -> Iterator[Line]:
    """The line without colours, cut where a progress bar went back to its start."""
    pieces = _ANSI.sub("", line.text).split("\r")
    for place, piece in enumerate(pieces, start=1):
        if piece.strip():
            yield replace(
                line,
                text=piece,
                whole=line.whole or place < len(pieces),
                process=_process_of(piece) or line.process,
            )


def _process_of(text: str) -> str:
    """Whose line it is; `MIXED` if a second process's mark stands within."""
    name = _first_process(text)
    if not name and _ID.search(text, 0, _NAME_AT_MOST):
        return MIXED  # a name that is damaged
    start = _PROCESS.match(text)
    later = _PROCESS.search(text, start.end() if start else 0, _LOOKED_AT)
    while later and start and later.start() == start.end():
        start, later = later, _PROCESS.search(text, later.end(), _LOOKED_AT)
    if later and later[0].strip()[1:-1] != name:
        return MIXED
    ranks = {
        found[1] for p in (_SGLANG_RANK, _TRTLLM_RANK) for found in p.finditer(text[:_LOOKED_AT])
    }
    return MIXED if len(ranks) > 1 else name


def _first_process(text: str) -> str:
    if match := _PROCESS.match(text):
        names = [match[0].strip()[1:-1]]
        while match := _PROCESS.match(text, match.end()):
            names.append(match[0].strip()[1:-1])
        # Ray's mark follows the engine's own; two others are two processes in one line.
        several = len(set(names)) > 1 and not names[-1].startswith(("Ray", "pid="))
        return MIXED if several else names[-1]
    for pattern in (_SGLANG_RANK, _TRTLLM_RANK):
        if found := pattern.search(text[:200]):
            return found[1].strip()
    return ""
