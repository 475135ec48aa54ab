"""Errors of planning, at the key of the scenario that they are about."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kvplan.errors import KvplanError, shown
from kvplan.scenario.question import Question
from kvplan.sources.yaml_document import KeyPath

Result = TypeVar("Result")


def at_key(read: Callable[[], Result], question: Question, key: str) -> Result:
    """What ``read`` gives.

    Raises:
        KvplanError: as ``read`` does, at the place of the key.
    """
    try:
        return read()
    except KvplanError as error:
        raise _placed(error, question, (key,)) from None


def at_its_value(error: KvplanError, question: Question) -> KvplanError:
    """An error that quotes a value of the scenario, at the place of that value."""
    values: tuple[tuple[KeyPath, str], ...] = (
        (("kv_dtype",), question.kv_dtype),
        (("weights",), question.weights),
        (("dtype",), question.dtype),
        (("workload", "trace"), str(question.trace)),
    )
    for path, value in values:
        if value not in ("auto", "None") and shown(value, most=4096) in error.message:
            return _placed(error, question, path)
    return error


def _placed(error: KvplanError, question: Question, path: KeyPath) -> KvplanError:
    if error.location is not None:
        return error
    location = str(question.place(path))
    return type(error)(error.message, hint=error.hint, location=location)
