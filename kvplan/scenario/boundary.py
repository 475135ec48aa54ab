"""How far a scenario file may reach: the repository that it is in, unless more is allowed."""

from __future__ import annotations

from pathlib import Path

from kvplan.errors import InputError

_MARKS = (".git", ".hg")


def root_of(file: Path) -> Path:
    """The repository that a file is in, else its folder."""
    folder = file.resolve().parent
    for candidate in (folder, *folder.parents):
        if any((candidate / mark).exists() for mark in _MARKS):
            return candidate
    return folder


def below(root: Path, path: Path, *, location: str) -> Path:
    """The path with its links followed, if it is under ``root``.

    Raises:
        InputError: it is not.
    """
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a NUL
        resolved = Path("/")
    if not resolved.is_relative_to(root):
        raise InputError(
            f"{str(path)!r} is outside of the repository {str(root)!r}.",
            hint="Keep it there, or allow it with --allow-outside.",
            location=location,
        )
    return resolved
