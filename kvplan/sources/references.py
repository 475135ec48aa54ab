"""Names of models as people type them, checked before anything is read or asked."""

from __future__ import annotations

import re
from pathlib import Path

from kvplan.errors import UsageError, shown

_SEGMENT = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9._/+-]{1,200}", re.ASCII)
_LONGEST = 96  # characters of each part, by the Hub's own rule
_FILE_ENDINGS = (".json", ".gguf", ".yaml", ".yml")


def is_model_id(text: str) -> bool:
    """Whether the Hub could have a model of that name: ``name`` or ``org/name``.

    The rules are those of huggingface_hub's ``validate_repo_id``.

    >>> is_model_id("meta-llama/Llama-3.1-8B"), is_model_id("a/../b"), is_model_id("my model")
    (True, False, False)
    """
    parts = text.split("/")
    return (
        len(parts) <= 2
        and all(len(part) <= _LONGEST and _SEGMENT.fullmatch(part) for part in parts)
        and "--" not in text
        and ".." not in text
        and not text.endswith(".git")
    )


def split_reference(reference: str) -> tuple[str, str | None]:
    """Splits ``org/name@revision`` into the id and the revision, or None.

    Raises:
        UsageError: neither could be on the Hub.
    """
    model_id, at, revision = reference.partition("@")
    check_model_id(model_id)
    if at:
        check_revision(revision)
    return model_id, revision if at else None


def check_model_id(text: str) -> None:
    """Refuses what can't be the id of a model.

    Raises:
        UsageError: it can't.
    """
    if not is_model_id(text):
        raise UsageError(
            f"{text[:100]!r} is not the name of a model.",
            hint="Write a Hub id (org/name), a folder, or the path of a config.json.",
        )


def check_revision(text: str) -> None:
    """Refuses what can't be a branch, a tag or a commit.

    Raises:
        UsageError: it can't.
    """
    if not _REVISION.fullmatch(text) or ".." in text or text.startswith(("/", "-")):
        raise UsageError(
            f"{text[:100]!r} is not a revision.",
            hint="Write org/name@revision with a branch, a tag or a commit.",
        )


def as_path(reference: str) -> Path | None:
    """The path that a reference means, or None if it means a name.

    What is written like a path is one. Anything else is one only if such a folder with a
    ``config.json`` is here, as it is for every loader of models.
    """
    if "://" in reference:
        raise UsageError(
            f"{shown(reference, 100)} is an address.",
            hint="Write the model's Hub id (org/name), a folder, or the path of a config.json.",
        )
    if not reference:
        return None
    path = _expanded(Path(reference))
    name = reference.partition("@")[0]
    written_as_path = (
        reference.startswith(("/", ".", "~"))
        or reference.endswith(("/", *_FILE_ENDINGS))
        or name.count("/") > 1
        or "\\" in reference
    )
    return path if written_as_path or _holds_config(path) else None


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:  # no such user, so no such home
        return path


def _holds_config(path: Path) -> bool:
    try:
        return (path / "config.json").is_file()
    except (OSError, ValueError):  # too long to be a path, or a NUL in it
        return False
