"""`--emit docker`: the engine's own image, with the files of this machine that it reads."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvplan.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kvplan.cli.request import Request
    from kvplan.engines.launch import Asked
    from kvplan.plan import Plan

_AUTO = "auto"
# The images are made for NVIDIA's GPUs; a bare amount of memory is taken for one, too.
_VENDORS = frozenset({"nvidia", "custom", "cpu"})
_MODELS, _DRAFTS, _HERE = "/models", "/drafts", "$PWD"


def check_vendor(gpu: str) -> None:
    """Refuses devices that the images are not made for.

    Raises:
        UsageError: there is one.
    """
    from kvplan.sources.gpus import find_gpus

    if gpu.strip().lower() == _AUTO:  # read through NVIDIA's driver
        return
    for device in find_gpus(gpu):
        if device.vendor not in _VENDORS:
            raise UsageError(
                f"kvplan knows images for NVIDIA's GPUs, and {device.id} is none.",
                hint="Leave out --emit, or write the engine's own command: --emit vllm.",
                location="--emit",
            )


def docker_lines(plan: Plan, asked: Asked, request: Request) -> str:
    """The shell's lines that start the planned engine in its own image.

    Raises:
        UsageError: there is no image, or no flag for what was planned.
    """
    from kvplan.engines import docker

    check_vendor(request.gpu)
    docker.check_one_machine(plan, request.gpus_per_node, "A container")
    if plan.engine.name == "ollama":
        return _ollama(plan, asked)
    mounts = _Mounts()
    gguf = plan.engine.name == "llama.cpp"
    asked = _gguf(plan, asked, mounts) if gguf else _from_hub(plan, asked, mounts)

    from kvplan.cli.emission import start_of
    from kvplan.engines.launch import here_document

    start = start_of(plan, asked)
    words = tuple(f"/{word}" if word in start.files else word for word in start.words)
    for name in start.files:
        mounts.found[f"{_HERE}/{name}"] = f"/{name}"
    line = docker.run(plan, words, environment=start.environment, mounts=mounts.found)
    return "\n".join((*(here_document(n, text) for n, text in start.files.items()), line))


@dataclass
class _Mounts:
    """Folders of this machine that the container sees, and where."""

    found: dict[str, str] = field(default_factory=dict)

    def same(self, path: Path) -> str:
        """The path itself, with its folder mounted under the same name."""
        whole = path.expanduser().resolve()
        folder = str(whole if whole.is_dir() else whole.parent)
        self.found[folder] = folder
        return str(whole)

    def file(self, name: str, target: str) -> str:
        """Where a file is found: its folder is mounted; one without a folder lies here."""
        path = Path(name).expanduser()
        here = str(path) == path.name
        self.found[_HERE if here else str(path.resolve().parent)] = target
        return f"{target}/{path.name}"


def _from_hub(plan: Plan, asked: Asked, mounts: _Mounts) -> Asked:
    """The same, with the model and its draft where the container finds them."""
    if asked.is_path:
        asked = replace(asked, model=mounts.same(Path(asked.model)))
    return replace(asked, options=_drafts(plan.engine.name, asked.options, mounts))


def _drafts(engine: str, options: Mapping[str, Any], mounts: _Mounts) -> Mapping[str, Any]:
    if engine == "vllm":
        from kvplan.engines.vllm import values
        from kvplan.engines.vllm.options import unfolded

        found = unfolded(options)
        if "speculative_config" in found:
            config = values.mapping("speculative_config", found["speculative_config"])
            found["speculative_config"] = config | _located(config, "model", mounts)
        return found
    if engine == "sglang":
        from kvplan.engines.sglang.options import read_options

        given = read_options(options)
        return given | _located(given, "speculative_draft_model_path", mounts)
    return options


def _located(given: Mapping[str, Any], name: str, mounts: _Mounts) -> dict[str, str]:
    from kvplan.sources.references import as_path

    path = as_path(given[name]) if isinstance(given.get(name), str) else None
    if path is None:
        return {}
    folder = path.parent if path.name == "config.json" else path
    return {name: mounts.same(folder)}


def _gguf(plan: Plan, asked: Asked, mounts: _Mounts) -> Asked:
    from kvplan.engines.launch import gguf_file, gguf_name
    from kvplan.engines.llamacpp.options import read_options

    options = read_options(asked.options)
    draft = options.get("model_draft")
    if draft is not None:
        options["model_draft"] = mounts.file(gguf_name(draft), _DRAFTS)
    file = mounts.file(gguf_file(plan, asked, "llama-server"), _MODELS)
    return replace(asked, model=file, options=options)


def _ollama(plan: Plan, asked: Asked) -> str:
    """The server in a container, and the model made inside of it."""
    import shlex

    from kvplan.engines import docker
    from kvplan.engines.launch import here_document
    from kvplan.engines.ollama.command_emit import MODELFILE, recipe_of

    recipe, mounts = recipe_of(plan, asked), _Mounts()
    text = recipe.modelfile(mounts.file(recipe.file, _MODELS))
    server = recipe.server()
    run = docker.run(plan, server.words, environment=server.environment, mounts=mounts.found)
    inside = f"{docker.HOME}/{MODELFILE}"
    create = ("docker", "exec", "ollama", "ollama", "create", recipe.name, "-f", inside)
    return "\n".join(
        (
            here_document(MODELFILE, text),
            run,
            shlex.join(("docker", "cp", MODELFILE, f"ollama:{inside}")),
            shlex.join(create),
            shlex.join(("docker", "exec", "-it", "ollama", "ollama", "run", recipe.name)),
        )
    )
