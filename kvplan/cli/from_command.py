"""`--from-command`: a shell line, a container's arguments or a manifest → what it asks vLLM for."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kvplan.cli.request import Request
from kvplan.engines.vllm import command_read, shell
from kvplan.engines.vllm.command_read import Command
from kvplan.errors import InputError, NotModelledError, UsageError, shown
from kvplan.sources import yaml_reader

_WHERE = "--from-command"
_MOST = 2**20
# How Kubernetes and Compose write the parts of a container.
_MANIFEST = re.compile(
    r"^\s*(- )?(apiVersion|kind|image|args|command|entrypoint|containers|services):", re.MULTILINE
)
_HERE_DOCUMENT = re.compile(
    r"<<-?\s*['\"]?(\w+)['\"]?[^\n]*\n(.*?)^\s*\1\s*$", re.DOTALL | re.MULTILINE
)
# The command itself, by its path or inside a shell's line, or Python's module.
_NAMES_VLLM = re.compile(r"(^|[\s/;&|(])vllm(\s|$)|vllm\.entrypoints")
_NEXT_DOCUMENT = re.compile(r"^---.*$", re.MULTILINE)


def read(text: str) -> Command:
    """Reads a command line, or standard input for ``-``.

    Raises:
        UsageError: nothing in it starts vLLM, or a part of it can't be read.
        InputError: a list or a manifest that is not YAML, or a file that can't be read.
    """
    if text == "-":
        text = _standard_input()
    start = text.lstrip()
    if start.startswith("["):
        return _listed(f"args: {text}")
    if start.startswith("- ") and not _MANIFEST.search(start):
        return _listed(f"args:\n{text}")
    if start.startswith("{") or _MANIFEST.search(text):
        return _structured(text)
    return command_read.read_text(text, _flags)


def with_weights(request: Request, command: Command) -> Request:
    """The request with the format that vLLM would make of a plain checkpoint while loading it.

    Raises:
        UsageError: the command's model is a path that this machine does not have.
    """
    _check_is_here(request, command)
    made = command.made_while_loading
    if made is None or request.weights != "auto" or request.model is None:
        return request
    from kvplan import api

    try:
        spec = api.read_spec(request.model, offline=request.offline)
    except NotModelledError:
        return request  # the plan then says so
    return request if spec.quantization else replace(request, weights=made)


def _check_is_here(request: Request, command: Command) -> None:
    """A command from another machine may name a folder there."""
    from kvplan.sources.references import as_path

    if request.model is None or request.model != command.model:
        return
    path = as_path(request.model)
    if path is not None and not path.exists():
        raise UsageError(
            f"The command's model, {shown(request.model)}, is not on this machine.",
            hint="Name it in front: kvplan size ORG/NAME --from-command ...",
            location=_WHERE,
        )


def _flags(path: str) -> Mapping[str, Any]:
    """The file that vLLM's own ``--config`` names."""
    if "://" in path:
        # Not quoted: it may hold a password.
        raise UsageError("--config names an address.", hint="Name a file.", location=_WHERE)
    return yaml_reader.read_yaml(Path(path).expanduser()).data


def _standard_input() -> str:
    if sys.stdin is None:
        raise UsageError("Standard input is closed.", hint="Give the command itself.")
    try:
        data = sys.stdin.buffer.read(_MOST + 1)
        text = data.decode()
    except (OSError, UnicodeDecodeError):
        raise InputError(
            "Standard input is no text in UTF-8.", hint="Send the command as text.", location=_WHERE
        ) from None
    if len(data) > _MOST or not text.strip():
        raise UsageError(
            "There is no command on standard input."
            if len(data) <= _MOST
            else "What came on standard input is too long for a command.",
            hint="Send a line such as: vllm serve MODEL --max-model-len 32768.",
            location=_WHERE,
        )
    return text


def _listed(text: str) -> Command:
    """The arguments alone, as a list in YAML or JSON."""
    words = _words(yaml_reader.parse_yaml(text, _WHERE).data.get("args"))
    if not words:
        raise UsageError(
            "That list holds no arguments.",
            hint='Give them as text: ["--model", "ORG/MODEL", "--max-model-len", "32768"].',
            location=_WHERE,
        )
    return command_read.read_arguments(words, _flags, image=None)


def _structured(text: str) -> Command:
    """The first container of a manifest that starts vLLM."""
    inside = _HERE_DOCUMENT.search(text)  # kubectl apply -f - <<EOF
    for document in _NEXT_DOCUMENT.split(inside[2] if inside else text):
        if not document.strip():
            continue
        data = yaml_reader.parse_yaml(document, _WHERE).data
        for container in _containers(data):
            words = [
                word
                for part in ("entrypoint", "command", "args")
                for word in _words(container.get(part))
            ]
            image = container.get("image")
            named = image if isinstance(image, str) else None
            if words and _starts_vllm(words, named):
                command = command_read.read_arguments(
                    words, _flags, image=named, environment=_environment(container)
                )
                return replace(command, remarks=(*command.remarks, *_replicas(data)))
    raise UsageError(
        "No container in that text starts vLLM.",
        hint="It needs args (or a command) with --model or vllm serve.",
        location=_WHERE,
    )


def _replicas(data: Any) -> Iterator[str]:
    """A remark on pods that the plan does not count."""
    spec = data.get("spec") if isinstance(data, Mapping) else None
    count = spec.get("replicas") if isinstance(spec, Mapping) else None
    if isinstance(count, int) and not isinstance(count, bool) and count > 1:
        yield f"One of {count} replicas is planned; --dp {count} counts them all."


def _containers(node: Any) -> Iterator[Mapping[str, Any]]:
    """Every mapping that has arguments or a command, from the outside in."""
    if isinstance(node, Mapping):
        if node.keys() & {"args", "command", "entrypoint"}:
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _containers(child)


def _words(part: Any) -> list[str]:
    """A list of arguments, or a line that Compose splits as a shell would."""
    if isinstance(part, str):
        return [word.text for command in shell.split(part) for word in command]
    if not isinstance(part, list) or any(isinstance(each, list | dict) for each in part):
        return []
    return [str(each).lower() if isinstance(each, bool) else str(each) for each in part]


def _environment(container: Mapping[str, Any]) -> dict[str, str]:
    """Kubernetes' names and values, and Compose's; those that come from elsewhere are left out."""
    env, composed = container.get("env"), container.get("environment")
    found: dict[str, str] = {}
    for entry in env if isinstance(env, list) else []:
        if isinstance(entry, Mapping) and "name" in entry and "value" in entry:
            found[str(entry["name"])] = str(entry["value"])
    if isinstance(composed, Mapping):
        found |= {str(name): str(value) for name, value in composed.items() if value is not None}
    for entry in composed if isinstance(composed, list) else []:
        name, equals, value = str(entry).partition("=")
        found |= {name: value} if equals else {}
    return found


def _starts_vllm(words: list[str], image: str | None) -> bool:
    """Whether the container is vLLM's by its image, else by the command in its words."""
    if image is not None and "vllm" in image:
        return True
    named = any(_NAMES_VLLM.search(word) for word in words)
    return named or (image is None and words[0].startswith("-"))
