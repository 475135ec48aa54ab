"""Files as they are in another revision of a git repository."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from kvplan.errors import InputError, UsageError, shown
from kvplan.sources.files import too_large
from kvplan.sources.yaml_reader import MAX_BYTES

_SECONDS = 30
_CONFIG = "config.json"
_FILE_MODES = frozenset((b"100644", b"100755"))
# A trace of a day, or the headers and small weights of a model; larger files are not in git.
_LARGEST_COPY = 512 * 2**20


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

    def below(self, folder: Path) -> list[Path]:
        """The files that the revision has below a folder, also those that are gone by now."""
        inside = folder.resolve().relative_to(self._top.resolve()).as_posix()
        words = () if inside == "." else ("--", f"{inside}/")
        listed = _git(
            self._top, "ls-tree", "-r", "-z", "--name-only", "--full-tree", self._commit, *words
        )
        names = [os.fsdecode(name) for name in (listed or b"").split(b"\0") if name]
        return [folder / Path(name).relative_to(inside) for name in names]

    def read_any(self, path: Path) -> bytes:
        """The bytes of a file of any size, or nothing where there is none."""
        return _git(self._top, "cat-file", "blob", self._object(path)) or b""

    def copied(self, path: Path, folder: Path) -> Path:
        """A file, or a folder's files, as they are in the revision, below ``folder``.

        A path outside of the repository is returned as it is: no revision has it. Links and
        submodules are left out.

        Args:
            path: Resolved.
            folder: Where copies are put; a path that is there already is not read again.

        Raises:
            UsageError: the revision has no such file.
            InputError: a file is too large to be copied.
        """
        top = self._top.resolve()
        if not path.is_relative_to(top):
            return path
        inside = path.relative_to(top)
        target = folder / inside
        if target.exists():
            return target
        # A config.json stands for its whole folder.
        wanted = inside.parent if path.name == _CONFIG else inside
        blobs = self._blobs(wanted.as_posix()) or self._blobs(f"{wanted.as_posix()}/")
        if not blobs:
            raise UsageError(
                f"{self.name} has no file {inside.as_posix()!r}.",
                hint="Commit it there, or compare with another revision.",
            )
        for name, size in blobs.items():
            if size > _LARGEST_COPY:
                raise too_large(size, _LARGEST_COPY, f"{self.name}:{name}")
            self._copy(name, folder / name)
        return target

    def _blobs(self, name: str) -> dict[str, int]:
        """Files and their sizes: the one of that name, or with a slash those of the folder."""
        words = () if name in (".", "./") else ("--", name)
        listed = _git(self._top, "ls-tree", "-z", "--long", "--full-tree", self._commit, *words)
        found: dict[str, int] = {}
        for entry in (listed or b"").split(b"\0"):
            about, _, file = entry.partition(b"\t")
            mode, *rest = about.split() or [b""]
            if mode in _FILE_MODES:
                found[os.fsdecode(file)] = int(rest[-1])
        return found

    def _copy(self, name: str, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        content = _git(self._top, "cat-file", "blob", f"{self._commit}:{name}")
        target.write_bytes(content or b"")

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
