"""What `--emit` is asked for, which a plan itself no longer has, and the start it comes to."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from kvplan.errors import UsageError
from kvplan.plan import Plan

_STANDARD_INPUT = ("-", "/dev/stdin")
_GGUF = ".gguf"
TOO_LONG = "context_above_model_maximum"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the plan was asked for, where the plan itself only says what came of it.

    Attributes:
        model: The reference, as it was written.
        is_path: It is a file or a folder of this machine, and no name.
        kv_budget: Bytes of cache a rank, if they were given.
        options: The engine's own names and values, as they were given.
    """

    model: str
    weights: str = "auto"
    kv_dtype: str = "auto"
    dtype: str = "auto"
    kv_budget: tuple[int, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    is_path: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a server, before it is written for a shell or a container.

    Attributes:
        words: The command and its arguments.
        environment: Variables that it needs.
        files: Files that its arguments name, with their text.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def line(self) -> str:
        """For a POSIX shell, with everything quoted that has to be."""
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        before = [here_document(name, text) for name, text in self.files.items()]
        return "\n".join((*before, shlex.join([*variables, *self.words])))


def here_document(name: str, text: str) -> str:
    """Shell lines that write a text, whose lines all end, to a file."""
    end = "EOF"
    while end in text.splitlines():
        end += "F"
    return f"cat > {shlex.quote(name)} <<'{end}'\n{text}{end}"


def named(asked: Asked, engine: str) -> tuple[str, str]:
    """The model and its revision (or an empty text).

    Raises:
        UsageError: the model has no name that the engine could load.
    """
    if asked.model in _STANDARD_INPUT:
        raise UsageError(
            f"A model on standard input has no name that {engine} could load.",
            hint="Give a Hub id or a folder.",
            location="--emit",
        )
    if asked.is_path:
        return _loadable(asked.model, engine), ""
    model, _, revision = asked.model.partition("@")
    return model, revision


def _loadable(path: str, engine: str) -> str:
    """The folder of a configuration: engines load folders."""
    if path.lower().endswith((".yaml", ".yml")):
        raise UsageError(
            f"A model spec has facts about a model, and nothing that {engine} could load.",
            hint="Give the model's Hub id or its folder.",
            location="--emit",
        )
    known = PurePath(path)
    return str(known.parent) if known.name == "config.json" else path


def gguf_file(plan: Plan, asked: Asked, engine: str) -> str:
    """The file; of a model on the Hub the name that its GGUF file would have.

    Raises:
        UsageError: there is no file to name, or the engine has no flags for what was planned.
    """
    if asked.model in _STANDARD_INPUT:
        raise UsageError(
            f"A model on standard input has no name that {engine} could load.",
            hint="Give a GGUF file or a Hub id.",
            location="--emit",
        )
    if asked.kv_budget is not None:
        raise UsageError(
            f"{engine} has no flag for the bytes of its cache.",
            hint="Leave out --kv-budget; the length and the number of requests say how many.",
            location="--emit",
        )
    if plan.parallelism.dp > 1:
        raise UsageError(
            f"{engine} starts one replica.",
            hint="Leave out --dp and start the line once a replica.",
            location="--emit",
        )
    return gguf_name(asked.model, asked.weights)


def gguf_name(model: str, weights: str = "auto") -> str:
    """The file, or the name that the file of a model on the Hub would have.

    >>> gguf_name("Qwen/Qwen3-8B", "gguf:Q4_K_M"), gguf_name("files/a.gguf")
    ('Qwen3-8B-Q4_K_M.gguf', 'files/a.gguf')
    """
    if model.lower().endswith(_GGUF):
        return model
    stored = "" if weights == "auto" else weights.rpartition(":")[2]
    path = PurePath(model.partition("@")[0])
    name = path.parent.name if path.name == "config.json" else path.name
    return f"{name}-{stored}{_GGUF}" if stored else f"{name}{_GGUF}"


def unless_auto(name: str) -> str | None:
    """The word, or None where it is left to the engine."""
    return None if name == "auto" else name


def is_beyond_model(plan: Plan) -> bool:
    """Whether requests are longer than the model allows, for which engines want leave."""
    return any(reason.code == TOO_LONG for reason in plan.reasons)


def one_budget(kv_budget: tuple[int, ...] | None, engine: str) -> int | None:
    """The bytes of cache that every rank gets, or None where none were given.

    Raises:
        UsageError: they differ by rank.
    """
    if kv_budget is None:
        return None
    if len(set(kv_budget)) > 1:
        raise UsageError(
            f"{engine} gives every rank the same memory for its cache.",
            hint="Give one --kv-budget for all.",
            location="--emit",
        )
    return kv_budget[0]
