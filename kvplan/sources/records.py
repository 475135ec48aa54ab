"""What measurement records name: models and GPUs, each read once however many records name it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvplan.engines.base import Engine
from kvplan.errors import HubUnreachableError, KvplanError, NotModelledError, UsageError, shown
from kvplan.hardware import GpuSpec
from kvplan.measurement import Measurement
from kvplan.models.facts import ModelFacts
from kvplan.sources.files import is_folder
from kvplan.sources.gpus import find_gpu
from kvplan.sources.local import read_folder
from kvplan.sources.models import read_model
from kvplan.sources.references import is_model_id
from kvplan.sources.stdin import NAMES


class NamedInRecords:
    """Facts on what records name; an error is kept too, and raised again.

    Args:
        engines: The engines that are modelled, by name.
        offline: Do not ask the Hub.
        configs: A folder of folders with a ``config.json``, named ``org--name`` or as a
            record's ``config`` says; looked at before anything else.

    A record's ``config`` may also be the name of another model, ``org/name``, of the same
    architecture: its facts are taken then.
    """

    def __init__(
        self, *, engines: Mapping[str, Engine], offline: bool, configs: Path | None = None
    ) -> None:
        if configs is not None and not is_folder(configs):
            raise UsageError(f"There is no folder {str(configs)!r}.", hint="Check --configs.")
        self._engines = engines
        self._offline = offline
        self._configs = configs
        self._facts: dict[str, ModelFacts | KvplanError] = {}
        self._gpus: dict[str, GpuSpec | KvplanError] = {}

    def facts(self, record: Measurement) -> ModelFacts:
        """What is known of the record's model.

        Raises:
            KvplanError: nothing is, or it can't be read.
        """
        folder = self._folder(record)
        name = str(folder) if folder else _stand_in(record) or record.model
        if not name or name in NAMES:
            raise UsageError("The record names no model.", hint="Give its Hub id as model.")
        if name not in self._facts:
            try:
                self._facts[name] = read_folder(folder) if folder else self._read(name)
            except KvplanError as error:
                self._facts[name] = error
        found = self._facts[name]
        if isinstance(found, KvplanError):
            raise found
        return found

    def gpu(self, name: str) -> GpuSpec:
        """The device of that name; this machine's own is no part of a record.

        Raises:
            KvplanError: none or several are called that.
        """
        if name not in self._gpus:
            try:
                self._gpus[name] = _bundled(name)
            except KvplanError as error:
                self._gpus[name] = error
        found = self._gpus[name]
        if isinstance(found, KvplanError):
            raise found
        return found

    def engine(self, name: str) -> Engine:
        """The engine of that name.

        Raises:
            NotModelledError: it is none that kvplan models.
        """
        if name not in self._engines:
            raise NotModelledError(
                f"kvplan does not model the engine {shown(name)}.",
                hint=f"Modelled: {', '.join(self._engines)}.",
            )
        return self._engines[name]

    def _read(self, name: str) -> ModelFacts:
        try:
            return read_model(name, offline=self._offline)
        except HubUnreachableError:
            # Every further model would wait for the same answer.
            self._offline = True
            raise

    def _folder(self, record: Measurement) -> Path | None:
        if self._configs is None:
            return None
        stated: Any = (record.model_extra or {}).get("config")
        names = (stated, record.model.replace("/", "--") if record.model else None)
        for name in names:
            if isinstance(name, str) and is_model_id(name.replace("--", "/", 1)):
                folder = self._configs / name
                if (folder / "config.json").is_file():
                    return folder
        return None


def _stand_in(record: Measurement) -> str | None:
    """The model whose configuration the record says to take, or None."""
    stated: Any = (record.model_extra or {}).get("config")
    named = isinstance(stated, str) and "/" in stated and is_model_id(stated)
    return stated if named else None


def _bundled(name: str) -> GpuSpec:
    if name.strip().casefold() == "auto":
        raise UsageError("The record names no GPU.", hint="Give its name as gpu.")
    return find_gpu(name)
