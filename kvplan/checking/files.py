"""`kvplan.check`: scenario files by their names, with what the command's flags say."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from kvplan.check_result import CheckResult
from kvplan.checking.check import check as check_files
from kvplan.checking.settings import Settings
from kvplan.errors import UsageError
from kvplan.scenario.lock import read_lock
from kvplan.scenario.overrides import parse_overrides
from kvplan.sources.results import read_result


def check(
    files: str | Path | Iterable[str | Path],
    *,
    overrides: Sequence[str] = (),
    lock: str | Path | None = None,
    locked: bool = False,
    baseline: str | Path | None = None,
    strict: bool = False,
    allow_outside: bool = False,
    jobs: int = 1,
    offline: bool = False,
) -> CheckResult:
    """Checks scenario files, as `kvplan check` does.

    What is wrong with one of them is in the result and not raised.

    Args:
        files: One scenario file, or several.
        overrides: Keys to set: ``"tp=2"``, ``"chat:options.max_num_seqs=64"``.
        lock: A lock to compare with; None: none.
        locked: Take every fact from the lock; read and ask nothing else.
        baseline: An earlier result as JSON, which nothing may fall behind.
        strict: Warnings of rules fail too.
        allow_outside: Paths in scenario files may leave their file's repository.
        jobs: Scenarios planned at once.
        offline: Use bundled specs and the local cache only.

    Returns:
        Every assertion with its place; ``exit_code`` is 0 where all hold.

    Raises:
        UsageError: an override that makes no sense, or no such lock or baseline.
        InputError: a lock or a baseline that can't be read.

    Example:
        >>> import tempfile
        >>> text = '''schema: kvplan.scenario/1
        ... scenarios:
        ...   chat:
        ...     model: Qwen/Qwen3-8B
        ...     gpu: H100
        ...     context: 8k
        ...     concurrency: 16
        ...     expect: [requests >= 16]
        ... '''
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "chat.yaml")
        ...     _ = file.write_text(text)
        ...     result = check(file, offline=True)
        >>> [one.outcome for one in result.scenarios], result.exit_code
        (['passed'], 0)
    """
    several = [files] if isinstance(files, str | Path) else files
    if locked and lock is None:
        raise UsageError("There is no lock to check by.", hint="Name it: lock='kvplan.lock'.")
    settings = Settings(
        variables=dict(os.environ),
        overrides=parse_overrides(overrides),
        offline=offline,
        lock=None if lock is None else read_lock(Path(lock)),
        lock_folder=Path() if lock is None else Path(lock).resolve().parent,
        locked=locked,
        baseline=None if baseline is None else read_result(Path(baseline)),
        strict=strict,
        inside=not allow_outside,
        jobs=jobs,
    )
    return check_files([Path(file) for file in several], settings)
