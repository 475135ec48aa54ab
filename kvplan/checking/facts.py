"""Models and GPUs for many scenarios: each is read once, from the world or from the lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock as Mutex
from typing import Protocol, TypeVar

from kvplan.architectures import read_model
from kvplan.asked import Asked as Arguments
from kvplan.errors import HubUnreachableError, KvplanError
from kvplan.hardware import GpuSpec
from kvplan.models.facts import ModelFacts
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

    def draft(self, question: Question, arguments: Arguments) -> KnownModel | None:
        """The model that drafts tokens, where the options name one.

        Raises:
            KvplanError: as for `model`.
        """
        ...

    def reference(self, question: Question) -> str:
        """The model's name as it can be read here."""
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
    """Reads the Hub, the disk and the bundled specs.

    Args:
        offline: Bundled specs and caches only.
        located: Where a path is to be read from.
    """

    def __init__(self, *, offline: bool, located: Callable[[Path], Path]) -> None:
        self._offline = offline
        self._located = located
        self._once = Once()

    def model(self, question: Question) -> KnownModel:
        """See `Facts.model`."""
        return self._known(question.model, question)

    def draft(self, question: Question, arguments: Arguments) -> KnownModel | None:
        """See `Facts.draft`."""
        name = draft_name(arguments)
        return None if name is None else self._known(name, question)

    def reference(self, question: Question) -> str:
        """See `Facts.reference`."""
        path = Path(question.model)
        return str(self._located(path)) if path.is_absolute() else question.model

    def gpu(self, question: Question) -> GpuSpec | None:
        """See `Facts.gpu`."""
        found = self._once.get("gpu", question.gpu, lambda: find_gpus(question.gpu))
        return found[0] if len(found) == 1 else None

    def engine(self, question: Question) -> str:
        """As the scenario says."""
        return question.engine

    def _known(self, name: str, question: Question) -> KnownModel:
        return self._once.get("model", name, lambda: self._read(name, question))

    def _read(self, name: str, question: Question) -> KnownModel:
        path = Path(name)
        if not path.is_absolute():
            facts = read_facts(name, offline=self._offline)
            return KnownModel(read_model(facts), config_hash(facts.config))
        there = self._located(path)
        facts = read_facts(str(there), offline=self._offline)
        root = question.variant.layered.root
        if root is not None and path.is_relative_to(root):
            facts = _from_root(facts, there, path.relative_to(root))
        return KnownModel(read_model(facts), config_hash(facts.config))


def _from_root(facts: ModelFacts, there: Path, inside: Path) -> ModelFacts:
    """The facts with paths from the repository's root, so that they are the same in every clone."""
    # Of a config.json the whole folder is read.
    old, new = (there, inside) if there.is_dir() else (there.parent, inside.parent)

    def shortened(text: str | None) -> str | None:
        return None if text is None else text.replace(str(old), new.as_posix())

    changes = {
        name: shortened(getattr(facts, name)) for name in ("id", "source", "checkpoint_source")
    }
    notes = tuple(shortened(note) or "" for note in facts.notes)
    return facts.model_copy(update={**changes, "notes": notes})


def draft_name(arguments: Arguments) -> str | None:
    """The model that the options draft tokens with, if they name one."""
    wanted = arguments.engine.planner().draft_of(arguments.options)
    return None if wanted is None else wanted.model


class LockedFacts:
    """Takes everything from a lock; nothing else is read or asked."""

    def __init__(self, lock: Lock, folder: Path) -> None:
        self._lock = lock
        self._folder = folder

    def model(self, question: Question) -> KnownModel:
        """See `Facts.model`."""
        return self._known(question.model)

    def draft(self, question: Question, arguments: Arguments) -> KnownModel | None:  # noqa: ARG002
        """See `Facts.draft`."""
        name = draft_name(arguments)
        return None if name is None else self._known(name)

    def reference(self, question: Question) -> str:
        """See `Facts.reference`."""
        return question.model

    def _known(self, name: str) -> KnownModel:
        key = lock_key(name, self._folder)
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
