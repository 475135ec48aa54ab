"""What every test gets: no network, a clean environment, reference data where there is some."""

from __future__ import annotations

import gzip
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# A busy machine must not fail a test: speed is measured in benchmarks/.
settings.register_profile("kvplan", settings.default, deadline=None)
settings.load_profile("kvplan")

# Reference cases and real configurations, too large to live here. They may be missing: tests that
# need them then skip, with this path in the message. KVPLAN_SHARED points elsewhere.
SHARED = Path(os.environ.get("KVPLAN_SHARED", Path(__file__).parents[2] / "shared"))

_SCRUBBED_PREFIXES = ("HF_", "HUGGING", "GITHUB_", "KVPLAN_")
_SCRUBBED = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "CI", "TTY_COMPATIBLE", "TERM")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in tuple(os.environ):
        if name.startswith(_SCRUBBED_PREFIXES) or name in _SCRUBBED:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in (
            "127.0.0.1",
            "::1",
            "localhost",
        ):
            raise AssertionError(f"a test tried to reach {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


TABLE = "table: "  # what a test records under such a name is printed after the run


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Prints the tables that tests recorded, passed or not (with ``record_property``)."""
    for kind in ("passed", "failed"):
        for report in terminalreporter.stats.get(kind, ()):
            for name, text in getattr(report, "user_properties", ()):
                if name.startswith(TABLE):
                    terminalreporter.write_sep("-", name.removeprefix(TABLE))
                    terminalreporter.write_line(text)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data; skips the test where it is not there."""
    if not SHARED.is_dir():
        pytest.skip(f"reference data not found at {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def oracle(shared: Path) -> Callable[[str], Iterator[dict[str, Any]]]:
    """Rows of one of the reference files of engine results, by file name."""

    def rows(name: str) -> Iterator[dict[str, Any]]:
        with gzip.open(shared / "oracle" / name, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)

    return rows
