"""Every command, argument and flag says what it is for; the help itself is on record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from typer.main import get_command

from kvplan.cli.main import app, run


def _commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from _commands(child, (*path, name))


COMMANDS = dict(_commands(get_command(app)))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_and_flag_has_help(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert command.help
    for parameter in command.params:
        assert getattr(parameter, "help", None), f"{path} {parameter.name}"


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_summaries_are_whole(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*path, "--help"]) == 0
    listed = capsys.readouterr().out.partition("Commands:")[2]
    assert "..." not in listed


@pytest.mark.parametrize("path", [(), ("size",), ("models",)], ids=" ".join)
def test_help_as_it_looks(
    path: tuple[str, ...], capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    run([*path, "--help"])
    assert capsys.readouterr().out == snapshot
