"""`--emit`: which engine a command is for, and its line for a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvplan.errors import UsageError

if TYPE_CHECKING:
    import typer

    from kvplan.cli.request import Request
    from kvplan.engines.launch import Asked, Start
    from kvplan.plan import Plan

_GGUF = ".gguf"
_LLAMA_CPP = "llama.cpp"
# What starts an engine, whichever it is.
_PACKAGED = ("docker", "helm")


def engine_for(context: typer.Context, engine: str, model: str | None, emit: str | None) -> str:
    """The engine that was named, or else the one that the file or ``--emit`` is for.

    Raises:
        UsageError: the command is another engine's.
    """
    source = context.get_parameter_source("engine")
    named = source is not None and source.name == "COMMANDLINE"
    wanted = None if emit in _PACKAGED else emit
    if not named and wanted is not None:
        engine = wanted
    elif not named and (model or "").lower().endswith(_GGUF):
        engine = _LLAMA_CPP
    name = engine.partition("==")[0]
    if wanted is not None and wanted != name:
        raise UsageError(
            f"--emit {wanted} writes no command of {name[:40]}.",
            hint=f"Plan with --engine {wanted}.",
            location="--emit",
        )
    return engine


def written(plan: Plan, request: Request, emit: str) -> str:
    """The command line that realises the plan, or what else was asked for.

    Raises:
        UsageError: there are no flags for what was planned.
    """
    asked = asked_of(plan, request)
    if emit == "docker":
        from kvplan.cli.containers import docker_lines

        return docker_lines(plan, asked, request)
    if emit == "helm":
        return _helm(plan, asked, request)
    if plan.engine.name == "ollama":
        from kvplan.engines.ollama import command_emit as ollama

        return ollama.emit(plan, asked)
    return start_of(plan, asked).line()


def start_of(plan: Plan, asked: Asked) -> Start:
    """The server's command, of engines that one command starts.

    Raises:
        UsageError: the engine has no flags for what was planned.
    """
    match plan.engine.name:
        case "sglang":
            from kvplan.engines.sglang import command_emit as sglang

            return sglang.start(plan, asked)
        case "tensorrt-llm":
            from kvplan.engines.tensorrt_llm import command_emit as tensorrt_llm

            return tensorrt_llm.start(plan, asked)
        case "llama.cpp":
            from kvplan.engines.llamacpp import command_emit as llamacpp

            return llamacpp.start(plan, asked)
        case "vllm":
            from kvplan.engines.vllm import command_emit as vllm

            return vllm.start(plan, asked)
    raise UsageError(
        f"No server starts {plan.engine.name}.",
        hint="Plan with --engine vllm, or without --emit.",
        location="--emit",
    )


def _helm(plan: Plan, asked: Asked, request: Request) -> str:
    if plan.engine.name != "vllm":
        raise UsageError(
            f"kvplan knows no Helm chart for {plan.engine.name}.",
            hint="Plan with --engine vllm, or --emit docker for this engine's container.",
            location="--emit",
        )
    from kvplan.cli.containers import check_vendor
    from kvplan.engines.vllm import helm

    check_vendor(request.gpu)
    return helm.emit(plan, asked, request.gpus_per_node).rstrip("\n")


def asked_of(plan: Plan, request: Request) -> Asked:
    """What the plan was asked for; a path of this machine is written out as one."""
    from kvplan.engines.launch import Asked
    from kvplan.sources.references import as_path

    budget = request.kv_budget
    model = request.model or plan.model.id
    path = None if model in ("-", "/dev/stdin") else as_path(model)
    if path is not None and model.startswith(("~", "-")):  # no shell or parser takes those as paths
        model = f"./{path}" if model.startswith("-") else str(path)
    return Asked(
        model=model,
        is_path=path is not None,
        weights=request.weights,
        kv_dtype=request.kv_dtype,
        dtype=request.dtype,
        kv_budget=(budget,) if isinstance(budget, int) else budget,
        options=request.options,
    )
