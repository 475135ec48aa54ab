"""Reading of local files that may be anything: sizes are checked before a byte is read."""

from __future__ import annotations

import errno
import stat
from pathlib import Path

from kvplan.errors import InputError, KvplanError, UsageError, shown

_LONGEST_SHOWN = 120
_SPECIAL_HINT = "Name the file itself, or send it through standard input with - in its place."


def explain(error: OSError | ValueError, path: Path) -> KvplanError:
    """What went wrong with a path, as one sentence (a ``ValueError`` is a NUL in the name)."""
    where = str(path)
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        return UsageError(
            f"{shown(where)} is too long to be a path.",
            hint="Write a Hub id (org/name), a folder, or the path of a config.json.",
        )
    match error:
        case FileNotFoundError():
            return UsageError(
                f"There is no file or folder {shown(where, _LONGEST_SHOWN)}.",
                hint="Check the path.",
            )
        case PermissionError():
            return InputError(
                "The file may not be read.", hint="Check who owns it.", location=where
            )
        case OSError(strerror=str(reason)):
            return InputError(
                f"The file can't be read: {reason}.",
                hint="Check the path and the disk that it is on.",
                location=where,
            )
    return UsageError(f"{shown(where)} is not a path.", hint="Check the path.")


def is_folder(path: Path) -> bool:
    """Whether a path is a folder; False for what is not there.

    Raises:
        UsageError: it is too long for a path.
        InputError: it may not be looked at.
    """
    try:
        return path.is_dir()
    except (OSError, ValueError) as error:
        raise explain(error, path) from None


def file_size(path: Path) -> int:
    """Bytes of a regular file.

    Raises:
        UsageError: no such file.
        InputError: it is a folder, a pipe or a device, or may not be looked at.
    """
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise explain(error, path) from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise InputError(
            f"This is {kind}, where a file was expected.", hint=_SPECIAL_HINT, location=str(path)
        )
    return status.st_size


def read_start(path: Path, count: int) -> bytes:
    """The first ``count`` bytes of a regular file, or all of a shorter one."""
    file_size(path)
    try:
        with path.open("rb") as file:
            return file.read(count)
    except (OSError, ValueError) as error:
        raise explain(error, path) from None


def read_whole(path: Path, *, limit: int) -> bytes:
    """All bytes of a regular file of at most ``limit`` bytes.

    Raises:
        UsageError: no such file.
        InputError: not a regular file, unreadable, or larger than ``limit``.
    """
    size = file_size(path)
    if size > limit:
        raise too_large(size, limit, str(path))
    data = read_start(path, limit + 1)
    if len(data) > limit:
        raise too_large(len(data), limit, str(path))
    return data


def too_large(size: int, limit: int, location: str) -> InputError:
    """The error for a file above the size that kvplan reads of its kind."""
    return InputError(
        f"The file has {size:,} bytes; kvplan reads at most {limit:,} of this kind.",
        hint="Check that this is the file you meant.",
        location=location,
    )


def list_names(folder: Path) -> frozenset[str]:
    """Names of everything directly inside a folder.

    Raises:
        UsageError: no such folder.
        InputError: not a folder, or may not be listed.
    """
    try:
        return frozenset(entry.name for entry in folder.iterdir())
    except (OSError, ValueError) as error:
        raise explain(error, folder) from None
