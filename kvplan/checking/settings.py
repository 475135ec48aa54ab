"""What holds for one run of a check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kvplan.check_result import CheckResult
from kvplan.scenario.load import ReadBytes
from kvplan.scenario.lock import Lock
from kvplan.scenario.overrides import Override
from kvplan.sources.scenario_file import read_scenario_file


@dataclass(frozen=True, slots=True)
class Settings:
    """The same for all files.

    Attributes:
        variables: The environment, for ``${NAME}``.
        overrides: What ``--set`` says.
        offline: Bundled specs and caches only.
        lock: What is compared with, or None.
        lock_folder: Where the lock lies; its keys are relative to it.
        locked: Take every fact from the lock.
        baseline: An earlier result that nothing may fall behind, or None.
        strict: Warnings fail too.
        inside: Paths have to stay in the file's repository.
        jobs: Scenarios planned at once; waiting for the Hub overlaps.
        read: How scenario files are read.
        located: Where a path that a scenario names is to be read from: another revision's copy.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    overrides: Sequence[Override] = ()
    offline: bool = False
    lock: Lock | None = None
    lock_folder: Path = field(default_factory=Path)
    locked: bool = False
    baseline: CheckResult | None = None
    strict: bool = False
    inside: bool = True
    jobs: int = 1
    read: ReadBytes = read_scenario_file
    located: Callable[[Path], Path] = field(default=lambda path: path)
