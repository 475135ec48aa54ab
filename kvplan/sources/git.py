"""Files as they are in another revision of a git repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kvplan.errors import InputError, UsageError, shown
from kvplan.sources.files import too_large
from kvplan.sources.yaml_reader import MAX_BYTES

_SECONDS = 30


class Revision:
    """One commit of the repository that a folder is in.

    Args:
        name: A branch, a tag or a commit.
        folder: A folder in the repository.

    Raises:
        UsageError: no such commit, or the folder is in no repository.
        InputError: there is no git.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        top = _git(folder, "rev-parse", "--show-toplevel")
        if top is None:
            raise UsageError(
                f"{str(folder)!r} is in no git repository.", hint="Run it inside of one."
            )
        self._top = Path(top.decode("utf-8", "surrogateescape").strip())
        commit = _git(self._top, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
        if commit is None:
            raise UsageError(
                f"git knows no revision {shown(name)}.",
                hint="Fetch it first; in CI, check out with the whole history.",
            )
        self._commit = commit.decode("ascii").strip()

    def read(self, path: Path) -> bytes:
        """The bytes of a file.

        Raises:
            UsageError: the revision has no such file.
            InputError: it is larger than a scenario.
        """
        if not self.has(path):
            raise UsageError(f"{self.name} has no file {str(path)!r}.")
        found = _git(self._top, "cat-file", "blob", self._object(path)) or b""
        if len(found) > MAX_BYTES:
            raise too_large(len(found), MAX_BYTES, f"{self.name}:{path}")
        return found

    def has(self, path: Path) -> bool:
        """Whether the revision has such a file."""
        return _git(self._top, "cat-file", "-e", self._object(path)) is not None

    def read_any(self, path: Path) -> bytes:
        """The bytes of a file of any size, or nothing where there is none."""
        return _git(self._top, "cat-file", "blob", self._object(path)) or b""

    def _object(self, path: Path) -> str:
        try:
            inside = path.resolve().relative_to(self._top.resolve())
        except ValueError:
            raise UsageError(f"{str(path)!r} is not in the repository.") from None
        return f"{self._commit}:{inside.as_posix()}"


def _git(folder: Path, *words: str) -> bytes | None:
    """What git prints; None where it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - git itself, with words that it can't take for flags
            ["git", *words],  # noqa: S607 - wherever it is installed
            cwd=folder,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        raise InputError("git can't be run.", hint="Is it installed?") from None
    return done.stdout if done.returncode == 0 else None
