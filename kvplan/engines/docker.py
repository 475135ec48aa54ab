"""One start of a server → the `docker run` line for its engine's own image, release included.

What each image needs is what its project documents: vllm-project/vllm
docs/getting_started/installation/gpu.cuda.inc.md and docs/deployment/docker.md; SGLang's
docs/get-started/install.mdx; NVIDIA/TensorRT-LLM docs/source/quick-start-guide.md;
ggml-org/llama.cpp docs/docker.md and .devops/cuda.Dockerfile; ollama/ollama docs/docker.mdx.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kvplan.errors import UsageError
from kvplan.plan import Plan

# Where the images' user is at home.
HOME = "/root"
# What the shell fills in, and so not to be quoted away: the Hub's cache on this machine.
_HUB_CACHE = f'-v "${{HF_HOME:-$HOME/.cache/huggingface}}:{HOME}/.cache/huggingface"'
_HERE = "$PWD"
# Tags have three numbers; a part that follows them is kept.
_RELEASE = re.compile(r"\d+(?:\.\d+){1,2}|\d+(?:\.\d+){2}(?:\.post\d+|rc\d+)", re.ASCII)
_BUILD = re.compile(r"b\d+", re.ASCII)
# `docker run --mount` reads its value as a line of CSV.
_UNMOUNTABLE = frozenset(',"\n\r')
# A container sees the GPUs of one machine; most machines have this many.
GPUS_PER_NODE = 8


@dataclass(frozen=True, slots=True)
class Image:
    """An engine's image.

    Attributes:
        tag: What stands before the release.
        port: Where the server listens.
        flags: Of `docker run`, besides GPUs and mounts; written as they are.
        skip: Words of the command that the image's entry point says itself.
        before, after: Words that the command needs inside a container.
    """

    repository: str
    tag: str
    port: int
    flags: tuple[str, ...]
    skip: int = 0
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


_FROM_HUB = ("--ipc=host", _HUB_CACHE, "-e HF_TOKEN")
IMAGES: Mapping[str, Image] = {
    # Its entry point was the API server's module once and is `vllm serve` today; both take --model.
    "vllm": Image("vllm/vllm-openai", "v", 8000, _FROM_HUB, skip=2, before=("--model",)),
    "sglang": Image(
        *("lmsysorg/sglang", "v", 30000, _FROM_HUB),
        skip=1,
        before=("python3",),
        after=("--host", "0.0.0.0"),  # noqa: S104 - inside a container, of which one port is out
    ),
    "tensorrt-llm": Image(
        *("nvcr.io/nvidia/tensorrt-llm/release", "", 8000),
        (*_FROM_HUB, "--ulimit memlock=-1", "--ulimit stack=67108864"),
        after=("--host", "0.0.0.0"),  # noqa: S104 - same
    ),
    "llama.cpp": Image("ghcr.io/ggml-org/llama.cpp", "server-cuda-v", 8080, (), skip=1),
    "ollama": Image(
        "ollama/ollama", "", 11434, ("-d", "--name ollama", f"-v ollama:{HOME}/.ollama"), skip=2
    ),
}


def image_of(plan: Plan) -> str:
    """The image with the release that was planned.

    Raises:
        UsageError: the engine has no image that kvplan knows.
    """
    name, release = plan.engine.name, plan.engine.version
    image = IMAGES.get(name)
    if image is None:
        raise UsageError(
            f"kvplan knows no image of {name}.",
            hint=f"Plan with --engine {', '.join(IMAGES)}.",
            location="--emit",
        )
    if name == "llama.cpp" and _BUILD.fullmatch(release):
        return f"{image.repository}:{image.tag.removesuffix('v')}{release}"
    if not _RELEASE.fullmatch(release):
        raise UsageError(
            f"There is no image of {name} {release[:40]!r}.",
            hint=f"Pin a release: --engine {name}==1.2.3.",
            location="--emit",
        )
    return f"{image.repository}:{image.tag}{_whole(release)}"


def _whole(release: str) -> str:
    """Releases are tagged with three numbers: 0.33 is 0.33.0."""
    return release + ".0" * max(0, 2 - release.partition(".post")[0].count("."))


def check_one_machine(plan: Plan, gpus_per_node: int | None, what: str) -> None:
    """Refuses what one machine has no room for.

    Raises:
        UsageError: more GPUs than a machine has.
    """
    most = gpus_per_node or GPUS_PER_NODE
    if plan.gpu.count > most:
        raise UsageError(
            f"{what} runs on one machine, and {plan.gpu.count} GPUs are planned.",
            hint=f"Plan at most {most} and start it once a machine, or say with --gpus-per-node"
            " that one has more.",
            location="--emit",
        )


def run(
    plan: Plan,
    words: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    mounts: Mapping[str, str] | None = None,
) -> str:
    """The line, quoted for a POSIX shell, a flag on each of its lines.

    Args:
        plan: What was planned.
        words: The command, as it would be outside a container.
        environment: Variables that it needs.
        mounts: Folders and files of this machine that it reads, and where; one that begins with
            ``$PWD`` is in the shell's folder.

    Raises:
        UsageError: the engine has no image, or a path can't be mounted.
    """
    name = image_of(plan)
    image = IMAGES[plan.engine.name]
    parts = ["docker run", "--rm"] if "-d" not in image.flags else ["docker run"]
    parts += [f"--gpus {plan.gpu.count}"] if plan.gpu.count else []
    parts += [*image.flags, f"-p {image.port}:{image.port}"]
    variables = (environment or {}).items()
    parts += [f"-e {shlex.quote(f'{key}={value}')}" for key, value in variables]
    parts += [_mount(source, target) for source, target in (mounts or {}).items()]
    command = (*image.before, *words[image.skip :], *image.after)
    return " \\\n    ".join([f"{parts[0]} {parts[1]}", *parts[2:], name, *_lines(command)])


def _mount(source: str, target: str) -> str:
    if _UNMOUNTABLE & {*source, *target}:
        raise UsageError(
            f"docker can't mount {source[:100]!r}: its name has a comma, a quote or a line break.",
            hint="Rename it, or plan for a model by its Hub id.",
            location="--emit",
        )
    if source.startswith(_HERE):
        rest = shlex.quote(f"{source.removeprefix(_HERE)},target={target},readonly")
        return f'--mount type=bind,source="{_HERE}"{rest}'
    return f"--mount {shlex.quote(f'type=bind,source={source},target={target},readonly')}"


def _lines(words: Iterable[str]) -> list[str]:
    """The command, each flag on a line with its values."""
    lines: list[list[str]] = []
    for word in words:
        of_python = lines == [["python3"]]  # whose `-m module` is the program
        if not lines or (word.startswith("-") and not of_python):
            lines.append([])
        lines[-1].append(word)
    return [shlex.join(line) for line in lines]
