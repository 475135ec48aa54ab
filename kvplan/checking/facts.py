"""Models and GPUs for many scenarios: each is read once, from the world or from the lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock as Mutex
from typing import Protocol, TypeVar

from kvplan.architectures import read_model
from kvplan.errors import HubUnreachableError, KvplanError
from kvplan.hardware import GpuSpec
from kvplan.models.spec import ModelSpec
from kvplan.scenario.lock import Lock, config_hash
from kvplan.scenario.question import Question
from kvplan.sources.gpus import find_gpus
from kvplan.sources.models import read_model as read_facts

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model that was read, and the hash of its configuration."""

    spec: ModelSpec
    config_sha256: str


class Facts(Protocol):
    """Where models and GPUs come from."""

    def model(self, question: Question) -> KnownModel:
        """The model of a question.

        Raises:
            KvplanError: it can't be had, or is not modelled.
        """
        ...

    def gpu(self, question: Question) -> GpuSpec | None:
        """The GPU of a question; None where it names several devices."""
        ...

    def engine(self, question: Question) -> str:
        """The engine of a question with the release that is planned for, if that is known."""
        ...


class Once:
    """Remembers what a reference gave, an error included."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], object] = {}
        self._mutex = Mutex()
        self._busy: dict[tuple[str, str], Mutex] = {}

    def get(self, kind: str, name: str, read: Callable[[], Result]) -> Result:
        """What ``read`` gives, which is called once for a kind and a name."""
        key = (kind, name)
        with self._mutex:
            busy = self._busy.setdefault(key, Mutex())
        with busy:
            if key not in self._known:
                try:
                    self._known[key] = read()
                except KvplanError as error:
                    self._known[key] = error
        found = self._known[key]
        if isinstance(found, KvplanError):
            raise found
        return found  # type: ignore[return-value] # stored under the kind that says so


class LiveFacts:
    """Reads the Hub, the disk and the bundled specs."""

    def __init__(self, *, offline: bool) -> None:
        self._offline = offline
        self._once = Once()

    def model(self, question: Question) -> KnownModel:
        """See `Facts.model`."""
        return self._once.get("model", question.model, lambda: self._read(question.model))

    def gpu(self, question: Question) -> GpuSpec | None:
        """See `Facts.gpu`."""
        found = self._once.get("gpu", question.gpu, lambda: find_gpus(question.gpu))
        return found[0] if len(found) == 1 else None

    def engine(self, question: Question) -> str:
        """As the scenario says."""
        return question.engine

    def _read(self, name: str) -> KnownModel:
        facts = read_facts(name, offline=self._offline)
        return KnownModel(read_model(facts), config_hash(facts.config))


class LockedFacts:
    """Takes everything from a lock; nothing else is read or asked."""

    def __init__(self, lock: Lock, folder: Path) -> None:
        self._lock = lock
        self._folder = folder

    def model(self, question: Question) -> KnownModel:
        """See `Facts.model`."""
        key = lock_key(question.model, self._folder)
        found = self._lock.models.get(key)
        if found is None:
            raise _not_locked(f"the model {key}")
        return KnownModel(found.spec, found.config_sha256)

    def gpu(self, question: Question) -> GpuSpec | None:
        """See `Facts.gpu`."""
        if "+" in question.gpu:
            return None
        found = self._lock.gpus.get(question.gpu)
        if found is None:
            raise _not_locked(f"the GPU {question.gpu}")
        return found.spec

    def engine(self, question: Question) -> str:
        """The release that was locked, where the scenario pins none."""
        if "==" in question.engine:
            return question.engine
        found = self._lock.scenarios.get(scenario_key(question, self._folder))
        same = found is not None and found.engine.partition("==")[0] == question.engine
        return found.engine if found is not None and same else question.engine


def lock_key(model: str, folder: Path) -> str:
    """A model's name in the lock: paths are relative to the lock, with forward slashes."""
    if not Path(model).is_absolute():
        return model
    return Path(os.path.relpath(model, folder)).as_posix()


def scenario_key(question: Question, folder: Path) -> str:
    """A variant's name in the lock: its file, relative to the lock, and its own name."""
    file = question.variant.layered.file.path
    return f"{Path(os.path.relpath(file, folder)).as_posix()}#{question.name}"


def _not_locked(what: str) -> HubUnreachableError:
    return HubUnreachableError(
        f"The lock does not hold {what}.", hint="Run `kvplan lock` and commit kvplan.lock."
    )
