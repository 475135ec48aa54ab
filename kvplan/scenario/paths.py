"""Paths that a scenario names: from the file that states them, and below its repository."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvplan.errors import InputError
from kvplan.scenario.boundary import below
from kvplan.scenario.matrix import Variant
from kvplan.scenario.workload import Workload
from kvplan.sources.references import as_path
from kvplan.sources.yaml_document import KeyPath

_DRAFTS = "speculative_config"


def model_of(variant: Variant, model: str) -> str:
    """The reference of the model, a path taken from the file that states it.

    Raises:
        InputError: it is standard input, or lies outside.
    """
    if model in ("-", "/dev/stdin"):
        raise InputError(
            "A scenario names its model.",
            hint="Write a Hub id or a path.",
            location=variant.document.location(("model",)),
        )
    return _reference(variant, model, ("model",))


def options_of(variant: Variant, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with the path of a draft model taken from the file that states it.

    Raises:
        InputError: it lies outside.
    """
    drafts = options.get(_DRAFTS)
    if not isinstance(drafts, dict) or not isinstance(drafts.get("model"), str):
        return dict(options)
    model = _reference(variant, drafts["model"], ("options", _DRAFTS))
    return {**options, _DRAFTS: {**drafts, "model": model}}


def trace_of(variant: Variant, workload: Workload) -> Path | None:
    """The trace, if there is one.

    Raises:
        InputError: it lies outside.
    """
    if workload.trace is None:
        return None
    return _below(variant, Path(workload.trace), ("workload", "trace"))


def _reference(variant: Variant, reference: str, key: KeyPath) -> str:
    path = as_path(reference)
    return reference if path is None else str(_below(variant, path, key))


def _below(variant: Variant, path: Path, key: KeyPath) -> Path:
    place = variant.document.place(key)
    # What --set says is meant from where the command runs.
    home = Path() if place.file.startswith("--") else Path(place.file).parent
    target = path if path.is_absolute() else home / path
    root = variant.layered.root
    return target.absolute() if root is None else below(root, target, location=str(place))
