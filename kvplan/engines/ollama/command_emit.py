"""A plan → the Modelfile and the lines that run it in Ollama as planned.

What belongs to a model goes into the Modelfile, what belongs to the server into its environment.
Source: ollama/ollama@071c82b docs/modelfile.mdx, and @fb307609 api/types.go (``Runner``) and
envconfig/config.go.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from kvplan.engines import launch
from kvplan.engines.launch import Asked, Start, here_document
from kvplan.engines.ollama.options import read_options
from kvplan.errors import UsageError
from kvplan.plan import Plan

MODELFILE = "Modelfile"
_PARAMETERS = ("num_batch", "num_gpu")
_GGUF = ".gguf"
_BREAKS = ("\n", "\r")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What makes and runs a model of Ollama's.

    Attributes:
        name: What the model is called there.
        file: The GGUF file.
        parameters: Of the model, by name.
        environment: Of the server.
    """

    name: str
    file: str
    parameters: Mapping[str, Any]
    environment: Mapping[str, str]

    def server(self) -> Start:
        """The server."""
        return Start(("ollama", "serve"), self.environment)

    def modelfile(self, file: str) -> str:
        """The Modelfile, for a file that is found under that path.

        Raises:
            UsageError: a path that no Modelfile can hold.
        """
        if any(sign in file for sign in _BREAKS):
            raise UsageError(
                "The file's name has a line break, which no Modelfile can hold.",
                hint="Rename it.",
                location="--emit",
            )
        lines = [f"FROM {file}", *(f"PARAMETER {n} {v}" for n, v in self.parameters.items())]
        return "".join(f"{line}\n" for line in lines)


def emit(plan: Plan, asked: Asked) -> str:
    """The server's line, the Modelfile and the line that makes a model of it, for a POSIX shell.

    Raises:
        UsageError: the model has no name that Ollama could load, or Ollama has no setting for
            what was planned.
    """
    recipe = recipe_of(plan, asked)
    file = recipe.file
    found = file if file.startswith(("/", "./", "../")) else f"./{file}"
    return "\n".join(
        (
            f"{recipe.server().line()} &",
            here_document(MODELFILE, recipe.modelfile(found)),
            shlex.join(["ollama", "create", recipe.name, "-f", MODELFILE]),
            shlex.join(["ollama", "run", recipe.name]),
        )
    )


def recipe_of(plan: Plan, asked: Asked) -> Recipe:
    """What is to be made and run; see `emit`."""
    given = read_options(asked.options)
    file = launch.gguf_file(plan, asked, "Ollama")
    parameters = {"num_ctx": plan.engine.options["num_ctx"]}
    parameters |= {each: given[each] for each in _PARAMETERS if each in given}
    return Recipe(_name(file), file, parameters, _environment(given, asked.kv_dtype))


def _name(file: str) -> str:
    """What the model is called in Ollama, whose names have no blanks."""
    plain = PurePath(file).name.lower().removesuffix(_GGUF)
    name = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in plain)
    return name.lstrip("-") or "model"


def _environment(given: Mapping[str, Any], kv_dtype: str) -> dict[str, str]:
    found = {"OLLAMA_NUM_PARALLEL": str(given.get("num_parallel", 1))}
    cache = given.get("kv_cache_type", launch.unless_auto(kv_dtype))
    if cache is not None:
        found["OLLAMA_KV_CACHE_TYPE"] = str(cache).lower()
    if given.get("flash_attention") is not None:
        found["OLLAMA_FLASH_ATTENTION"] = str(int(given["flash_attention"]))
    return found
