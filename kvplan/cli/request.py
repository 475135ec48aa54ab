"""What one `kvplan size` asks for: its flags, and what a command line says besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kvplan.errors import UsageError, shown

if TYPE_CHECKING:
    from kvplan.engines.vllm.command_read import Command


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of `kvplan.size`; ``model`` is None where nobody named one."""

    model: str | None
    gpu: str
    engine: str = "vllm"
    tp: int = 1
    pp: int = 1
    dp: int = 1
    dcp: int = 1
    context: int | Literal["auto"] | None = None
    concurrency: int | None = None
    weights: str = "auto"
    kv_dtype: str = "auto"
    dtype: str = "auto"
    gpus_per_node: int | None = None
    kv_budget: int | tuple[int, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    images: int = 0
    image_size: tuple[int, int] | None = None
    image_tokens: int | None = None
    profile: Path | None = None
    offline: bool = False


# A field of the request, the flag that sets it, and the flag of the command.
_SHARED = (
    ("tp", "--tp", "--tensor-parallel-size"),
    ("pp", "--pp", "--pipeline-parallel-size"),
    ("dp", "--dp", "--data-parallel-size"),
    ("dcp", "--dcp", "--decode-context-parallel-size"),
    ("context", "--context", "--max-model-len"),
    ("kv_dtype", "--kv-dtype", "--kv-cache-dtype"),
    ("dtype", "--dtype", "--dtype"),
)


def onto(
    request: Request, command: Command, is_given: Callable[[str], bool]
) -> tuple[Request, tuple[str, ...]]:
    """The request with what the command says; flags beside the command win, and it is said.

    Args:
        request: What the flags say.
        command: What the command says.
        is_given: Whether the flag of that field stands on kvplan's own line.

    Raises:
        UsageError: another engine than vLLM was named.
    """
    if request.engine.partition("==")[0] != "vllm":
        raise UsageError(
            f"--from-command reads commands of vLLM, not of {shown(request.engine)}.",
            hint="Leave out --engine, or write --engine vllm==0.33.0.",
        )
    remarks: list[str] = []
    changes: dict[str, Any] = {}
    of_command = _of_command(command)
    for name, flag, its_flag in _SHARED:
        value = of_command[name]
        if value is None:
            continue
        if is_given(name):
            remarks.append(_won(flag, its_flag, getattr(request, name), value))
        else:
            changes[name] = value
    if request.model is None:
        changes["model"] = command.model
    elif command.model not in (None, request.model):
        remarks.append(f"The model named beside the command is planned, not {command.model}.")
    if command.version is not None and not is_given("engine"):
        changes["engine"] = f"vllm=={command.version}"
    changes["options"], twice = _options(request.options, command.options)
    return replace(request, **changes), (*remarks, *twice)


def _of_command(command: Command) -> dict[str, Any]:
    return {
        "tp": command.tp,
        "pp": command.pp,
        "dp": command.dp,
        "dcp": command.dcp,
        "context": command.context,
        "kv_dtype": command.kv_dtype,
        "dtype": command.dtype,
    }


def _options(
    given: Mapping[str, Any], of_command: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    both = sorted(name for name in given if name in of_command)
    remarks = [
        _won(f"-o {name}", f"--{name.replace('_', '-')}", given[name], of_command[name])
        for name in both
        if given[name] != of_command[name]
    ]
    return {**of_command, **given}, remarks


def _won(flag: str, its_flag: str, value: Any, its_value: Any) -> str:
    return f"{flag} {shown(value)} wins over the command's {its_flag} {shown(its_value)}."
