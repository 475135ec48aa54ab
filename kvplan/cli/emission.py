"""`--emit`: which engine a command is for, and its line for a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvplan.errors import UsageError

if TYPE_CHECKING:
    import typer

    from kvplan.cli.request import Request
    from kvplan.plan import Plan

_GGUF = ".gguf"
_LLAMA_CPP = "llama.cpp"


def engine_for(context: typer.Context, engine: str, model: str | None, emit: str | None) -> str:
    """The engine that was named, or else the one that the file or ``--emit`` is for.

    Raises:
        UsageError: the command is another engine's.
    """
    source = context.get_parameter_source("engine")
    named = source is not None and source.name == "COMMANDLINE"
    if not named and (emit == _LLAMA_CPP or (model or "").lower().endswith(_GGUF)):
        engine = _LLAMA_CPP
    name = engine.partition("==")[0]
    if emit is not None and emit != name:
        raise UsageError(
            f"--emit {emit} writes no command of {name[:40]}.",
            hint=f"Plan with --engine {emit}.",
            location="--emit",
        )
    return engine


def command_of(plan: Plan, request: Request) -> str:
    """The command line that realises the plan.

    Raises:
        UsageError: the engine has no flags for what was planned.
    """
    model = request.model or plan.model.id
    if plan.engine.name != "vllm":
        from kvplan.engines.llamacpp import command_emit as llamacpp

        return llamacpp.emit(plan, model=model, options=request.options)
    from kvplan.engines.vllm.command_emit import Asked, emit

    budget = request.kv_budget
    asked = Asked(
        model=model,
        weights=request.weights,
        kv_dtype=request.kv_dtype,
        dtype=request.dtype,
        kv_budget=(budget,) if isinstance(budget, int) else budget,
        options=request.options,
    )
    return emit(plan, asked)
