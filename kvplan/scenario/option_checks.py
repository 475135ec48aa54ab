"""An engine's options in a scenario: all that is wrong with them, before anything is planned."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kvplan.engines.registry import PLACES, Engines
from kvplan.errors import KvplanError, UsageError
from kvplan.scenario.problems import Found
from kvplan.sources.yaml_document import KeyPath, YamlDocument

_SET = re.compile(r"-o ([\w.]+)=(\S*?)([.,;]?)(?=\s|$)", re.ASCII)
_FLAG = re.compile(r"Use --([a-z-]+)\.", re.ASCII)
_ENGINES = Engines(PLACES)


def option_problems(engine: str, options: Mapping[str, Any]) -> Iterator[tuple[str | None, str]]:
    """What an engine says against options: the name of one and a sentence, one after another.

    The name is None where it can't be told which of them is meant. What the engine has and kvplan
    does not size is no problem of the file.

    Args:
        engine: ``vllm`` or ``vllm==0.33.0``.
        options: By their own names.
    """
    left = dict(options)
    while left:
        error = _refused(engine, left)
        if error is None:
            return
        name = _culprit(engine, left, error)
        yield name, _worded(error)
        if name is None:
            return
        del left[name]


def _refused(engine: str, options: Mapping[str, Any]) -> UsageError | None:
    try:
        _ENGINES[engine.partition("==")[0]].draft_of(options)
    except UsageError as error:
        return error
    except KvplanError:
        return None  # the plan says it
    return None


def _culprit(engine: str, options: Mapping[str, Any], error: UsageError) -> str | None:
    """The option without which the engine says something else, or nothing."""
    for name in options:
        rest = {other: value for other, value in options.items() if other != name}
        now = _refused(engine, rest)
        if now is None or now.message != error.message:
            return name
    return None


def _worded(error: KvplanError) -> str:
    """An error that speaks of flags, in the words of a file."""
    text = f"{error.message} {error.hint}" if error.hint else error.message
    text = text.replace("is not set with -o.", "is no key of `options`.")
    text = text.replace("Use the first argument.", "Write model: beside `options`.")
    text = _FLAG.sub(lambda match: f"Write {match[1].replace('-', '_')}: beside `options`.", text)
    return _SET.sub(r"\1: \2\3", text)


def problems_of_file(document: YamlDocument) -> Iterator[Found]:
    """Problems of options in a file whose own keys say which engine they are for."""
    defaults = document.data.get("defaults")
    scenarios = document.data.get("scenarios")
    parts: dict[KeyPath, Any] = {("defaults",): defaults}
    if isinstance(scenarios, dict):
        parts |= {("scenarios", str(name)): part for name, part in scenarios.items()}
    general = defaults.get("engine") if isinstance(defaults, dict) else None
    if general is None and document.data.get("extends") is None:
        general = "vllm"
    for path, part in parts.items():
        if not isinstance(part, dict) or not isinstance(part.get("options"), dict):
            continue
        engine = part.get("engine", general)
        if isinstance(engine, str) and engine.partition("==")[0] in PLACES:
            for name, sentence in option_problems(engine, part["options"]):
                key = () if name is None else (name,)
                yield Found(document.location((*path, "options", *key)), sentence)
