"""Where in a text vLLM is started: the arguments it gets, which release, and by which door.

Understood: ``vllm serve``, ``python -m vllm.entrypoints...``, ``vllm bench``, what stands before
them (assignments, ``sudo``, ``uv run``, ``bash -c "..."``), ``docker run IMAGE ...`` and a bare
list of arguments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kvplan.engines.vllm import shell
from kvplan.engines.vllm.defaults import Entry
from kvplan.engines.vllm.shell import Word
from kvplan.errors import UsageError

# Modules that start an engine, and the door they use (vllm/usage/usage_lib.py). The plain API
# server has no defaults of its own.
_MODULES: dict[str, Entry] = {
    "vllm.entrypoints.openai.api_server": "serve",
    "vllm.entrypoints.openai.run_batch": "other",
    "vllm.entrypoints.api_server": "other",
}
_CLI_MODULES = ("vllm.entrypoints.cli.main", "vllm")
_SCRIPTS: dict[str, Entry] = {
    "benchmark_throughput.py": "llm",
    "benchmark_latency.py": "llm",
    "api_server.py": "serve",
}
_SHELLS = ("sh", "bash", "zsh", "dash", "ash")
_CONTAINERS = ("docker", "podman", "nerdctl")
# Flags of `docker run` whose value might look like an image.
_MOUNTS = ("-v", "--volume", "--mount", "-e", "--env", "--name", "-w", "--workdir", "--network")
_IMAGE = re.compile(r"(?=[\w./:@-]*vllm)[\w][\w.-]*(:\d+)?(/[\w.-]+)*(:[\w.-]+)?(@sha256:\w+)?")
_RELEASE = re.compile(r"v?(\d+\.\d+(?:\.\d+)?(?:\.post\d+)?)(?:[-_+].*)?")
_PINNED = re.compile(r"vllm(?:\[[\w,.-]*\])?==(\d[\w.]*)")
_MODEL = re.compile(r"[\w.-]+/[\w.@-]+")
_DEEPEST = 3
# Source: vLLM 0.10.2, vllm/envs.py.
VARIABLES = ("VLLM_USE_V1", "VLLM_ATTENTION_BACKEND")


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of vLLM.

    Attributes:
        words: What vLLM's parser gets, subcommands left out.
        entry: The door it is started by.
        version: The release, where an image or a pin names it.
        environment: Variables that change what is planned, where the text sets them.
    """

    words: tuple[Word, ...]
    entry: Entry
    version: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


def find(commands: Sequence[Sequence[Word]], depth: int = 0) -> Launch | None:
    """The first command that starts vLLM, with the release that an earlier one may have pinned."""
    version: str | None = None
    for words in commands:
        version = _pin(words) or version
        found = _launch(words, depth)
        if found is not None:
            return replace(
                found,
                version=found.version or version,
                environment={**_environment(commands), **found.environment},
            )
    return None


def of_arguments(words: Sequence[Word], image: str | None = None) -> Launch:
    """A list of arguments as a container gets it, perhaps with its command in front."""
    version = release_of(image) if image else None
    found = _launch(words, 0) or _inside(words, 0) or Launch(tuple(_without_serve(words)), "serve")
    return replace(found, version=found.version or version)


def release_of(image: str) -> str | None:
    """The release in an image's tag: ``vllm/vllm-openai:v0.11.0`` is 0.11.0, ``latest`` none.

    >>> release_of("vllm/vllm-openai:v0.11.0-x86_64"), release_of("vllm/vllm-openai:latest")
    ('0.11.0', None)
    """
    name, _, tag = image.split("@", maxsplit=1)[0].rpartition(":")
    # Other builders number their images by their own calendar: nvcr.io/nvidia/vllm:25.09-py3.
    found = _RELEASE.fullmatch(tag) if name and "/" not in tag else None
    return found[1] if found and found[1].startswith(("0.", "1.")) else None


def _launch(words: Sequence[Word], depth: int) -> Launch | None:
    texts = [word.text for word in words]
    for position, text in enumerate(texts):
        name = text.rsplit("/", 1)[-1]
        rest = words[position + 1 :]
        if name in _CONTAINERS and "run" in texts[position:]:
            return _container(rest)
        if name in _SHELLS:
            inside = _inside(rest, depth)
            if inside is not None:
                return inside
        elif name == "vllm":
            found = _subcommand(rest)
            if found is not None:
                return found
        elif text == "-m" and rest and rest[0].text in (*_MODULES, *_CLI_MODULES):
            return _module(rest)
        elif name in _SCRIPTS:
            return Launch(tuple(rest), _SCRIPTS[name])
    return _bare(words)


def _module(words: Sequence[Word]) -> Launch | None:
    name = words[0].text
    if name in _CLI_MODULES:
        return _subcommand(words[1:])
    return Launch(tuple(words[1:]), _MODULES[name])


def _subcommand(words: Sequence[Word]) -> Launch | None:
    texts = [word.text for word in words[:2]]
    if texts[:1] == ["serve"]:
        return Launch(tuple(words[1:]), "serve")
    if texts[:1] == ["run-batch"]:
        return Launch(tuple(words[1:]), "other")
    if texts in (["bench", "throughput"], ["bench", "latency"]):
        return Launch(tuple(words[2:]), "llm")
    if texts == ["bench", "serve"] or texts[:1] in (["chat"], ["complete"]):
        raise UsageError(
            f"vllm {' '.join(texts)} asks a server; it holds no model.",
            hint="Give the command that starts the server: vllm serve MODEL ...",
            location="--from-command",
        )
    return None


def _inside(words: Sequence[Word], depth: int) -> Launch | None:
    """What ``bash -c "..."`` runs."""
    texts = [word.text for word in words]
    scripts = [
        words[at + 1]
        for at, text in enumerate(texts[:-1])
        if text.startswith("-") and not text.startswith("--") and text.endswith("c")
    ]
    if not scripts or depth >= _DEEPEST:
        return None
    return find(shell.split(scripts[0].text), depth + 1)


def _container(words: Sequence[Word]) -> Launch | None:
    before = ""
    for position, word in enumerate(words):
        if before not in _MOUNTS and _IMAGE.fullmatch(word.text) and "=" not in word.text:
            return of_arguments(words[position + 1 :], word.text)
        before = word.text
    raise UsageError(
        "That command runs a container, and none of its words looks like an image of vLLM.",
        hint="Give what follows the image: vllm serve MODEL ...",
        location="--from-command",
    )


def _bare(words: Sequence[Word]) -> Launch | None:
    """A list of arguments without a command: ``--model X ...`` or ``org/model --...``."""
    texts = [word.text for word in words]
    if texts and (texts[0].startswith("--") or texts[0] == "serve"):
        return Launch(tuple(_without_serve(words)), "serve")
    if len(texts) > 1 and _MODEL.fullmatch(texts[0]) and texts[1].startswith("-"):
        return Launch(tuple(words), "serve")
    return None


def _without_serve(words: Sequence[Word]) -> Sequence[Word]:
    return words[1:] if words and words[0].text == "serve" else words


def _environment(commands: Sequence[Sequence[Word]]) -> dict[str, str]:
    """Assignments anywhere: before the command, exported, or given to a container with -e."""
    pairs = (word.text.partition("=") for words in commands for word in words)
    return {name: value for name, _, value in pairs if name in VARIABLES and value}


def _pin(words: Sequence[Word]) -> str | None:
    found = [match[1] for word in words if (match := _PINNED.fullmatch(word.text))]
    return found[-1] if found else None
