"""The models, devices and engines that a sweep names, each read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from kvplan import api
from kvplan.asked import engine_of
from kvplan.errors import (
    KvplanError,
    NotModelledError,
    RefusedError,
    UnknownNameError,
    nearest,
    shown,
)
from kvplan.hardware import GpuSpec
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec
from kvplan.planning.sweep.axes import at
from kvplan.sources.bundled import specs_dir
from kvplan.sources.gpus import find_gpus

_MARKS = frozenset("*?[")


@dataclass(frozen=True)
class Names:
    """What was read.

    Attributes:
        labels: For ``model``, ``gpu`` and ``engine`` what the rows call their values.
        models: By label; an error where kvplan does not model it.
        devices: By label; several for an engine that spreads a model.
        problems: Names that mean nothing, or whose facts can't be had.
    """

    labels: Mapping[str, tuple[str, ...]]
    models: Mapping[str, ModelFacts | ModelSpec | NotModelledError]
    devices: Mapping[str, tuple[GpuSpec, ...]]
    problems: tuple[KvplanError, ...] = field(default=())


def read_names(
    values: Mapping[str, Iterable[Any]], *, varied: Iterable[str], offline: bool
) -> Names:
    """Reads all models and devices that are named.

    Args:
        values: Values of ``model``, ``gpu`` and ``engine``.
        varied: Which of them were varied, for the place of an error.
        offline: Use bundled specs and the local cache only.
    """
    problems: list[KvplanError] = []
    varied = set(varied)

    def each(name: str, read: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for value in values[name]:
            try:
                found |= read(value)
            except RefusedError:
                raise
            except KvplanError as error:
                problems.append(at(f"--vary {name}", error) if name in varied else error)
        return found

    models = each("model", lambda value: _model(value, offline=offline))
    devices = each("gpu", _devices)
    engines = each("engine", _engine)
    labels = {"model": tuple(models), "gpu": tuple(devices), "engine": tuple(engines)}
    return Names(labels, models, devices, tuple(problems))


def _model(value: str | ModelSpec, *, offline: bool) -> dict[str, Any]:
    if isinstance(value, ModelSpec):
        return {value.id: value}
    try:
        return {value: api.facts_of(value, offline=offline)}
    except NotModelledError as refusal:
        return {value: refusal}


def _engine(value: str) -> dict[str, str]:
    engine_of(value)
    return {value: value}


def _devices(value: str | GpuSpec) -> dict[str, tuple[GpuSpec, ...]]:
    if isinstance(value, GpuSpec):
        return {value.id: (value,)}
    if not _MARKS & set(value):
        gpus = find_gpus(value)
        return {" + ".join(gpu.id for gpu in gpus): gpus}
    ids = sorted(path.stem for path in specs_dir("gpu_specs").glob("*.yaml"))
    wanted = value.strip().casefold()
    matching = [each for each in ids if fnmatchcase(each.casefold(), wanted)]
    if not matching:
        close = nearest(wanted.translate(str.maketrans("", "", "*?[]")), ids)
        raise UnknownNameError(
            f"No bundled GPU's id is like {shown(value)}.",
            hint=close or "`kvplan gpus list` shows all.",
        )
    return {each: find_gpus(each) for each in matching}
