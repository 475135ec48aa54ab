"""``command:``: a command line that starts vLLM, in the terms of a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from kvplan.engines.vllm import command_read
from kvplan.engines.vllm.command_read import Command
from kvplan.errors import KvplanError, UsageError


def read_command(text: str, location: str) -> Command:
    """Reads the command of a scenario.

    Raises:
        KvplanError: nothing in it starts vLLM, or a part of it can't be read.
    """
    try:
        return command_read.read_text(text, _no_file)
    except KvplanError as error:
        raise type(error)(error.message, hint=error.hint, location=location) from None


def _no_file(_path: str) -> NoReturn:
    raise UsageError(
        "A scenario's command can't take flags from another file (--config).",
        hint="Write its flags into the command.",
    )


def settings_of(command: Command) -> dict[str, Any]:
    """What the command says, by the keys of a scenario; what it does not say is left out."""
    stated: Mapping[str, Any] = {
        "model": command.model,
        "engine": f"vllm=={command.version}" if command.version else None,
        "tp": command.tp,
        "pp": command.pp,
        "dp": command.dp,
        "dcp": command.dcp,
        "context": command.context,
        "kv_dtype": command.kv_dtype,
        "dtype": command.dtype,
    }
    return {key: value for key, value in stated.items() if value is not None}
