"""The flags of `kvplan sweep` that say what is not varied → a request, as of `kvplan size`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvplan.errors import UsageError

if TYPE_CHECKING:
    import typer

    from kvplan.cli.request import Request


@dataclass(frozen=True, slots=True)
class BaseFlags:
    """The flags of `kvplan size` as they were typed; None: not given."""

    model: str | None
    gpu: str | None
    engine: str
    tp: str
    pp: str
    dp: str
    dcp: str
    context: str | None
    concurrency: str | None
    weights: str
    kv_dtype: str
    dtype: str
    gpus_per_node: str | None
    kv_budget: list[str] | None
    option: list[str] | None
    images: str | None
    image_size: str | None
    image_tokens: str | None
    profile: Path | None
    from_command: str | None
    offline: bool


def request_of(context: typer.Context, given: BaseFlags) -> Request:
    """The request; a command that was given besides is read, and flags win over it.

    Raises:
        UsageError: a flag's words make no sense.
    """
    from kvplan.cli import arguments
    from kvplan.cli.compare import is_several
    from kvplan.cli.images import parse_image_size, parse_images
    from kvplan.cli.request import Request

    if is_several(given.engine):
        raise UsageError(
            "--engine names one engine of a sweep.",
            hint="Write --vary engine=vllm,sglang.",
            location="--engine",
        )
    request = Request(
        model=given.model,
        gpu=given.gpu or "",
        engine=given.engine,
        tp=arguments.parse_count("--tp", given.tp),
        pp=arguments.parse_count("--pp", given.pp),
        dp=arguments.parse_count("--dp", given.dp),
        dcp=arguments.parse_count("--dcp", given.dcp),
        context=arguments.parse_context(given.context),
        concurrency=arguments.parse_optional_count("--concurrency", given.concurrency),
        weights=given.weights,
        kv_dtype=given.kv_dtype,
        dtype=given.dtype,
        gpus_per_node=arguments.parse_optional_count("--gpus-per-node", given.gpus_per_node),
        kv_budget=arguments.parse_kv_budget(given.kv_budget or ()),
        options=arguments.parse_options(given.option or ()),
        images=parse_images(given.images),
        image_size=parse_image_size(given.image_size),
        image_tokens=arguments.parse_optional_count("--image-tokens", given.image_tokens),
        profile=given.profile,
        offline=given.offline,
    )
    return request if given.from_command is None else _onto(context, request, given.from_command)


def _onto(context: typer.Context, request: Request, text: str) -> Request:
    from kvplan.cli import from_command
    from kvplan.cli.invocation import invocation_of
    from kvplan.cli.request import onto

    def is_given(name: str) -> bool:
        source = context.get_parameter_source("context_tokens" if name == "context" else name)
        return source is not None and source.name == "COMMANDLINE"

    command = from_command.read(text)
    request, won = onto(request, command, is_given)
    for remark in (*command.remarks, *won):
        invocation_of(context).remark(f"kvplan: {remark}")
    return from_command.with_weights(request, command)


def arguments_of(request: Request) -> dict[str, Any]:
    """The same as arguments of `kvplan.sweep`, model and GPU apart."""
    return {
        "engine": request.engine,
        "tp": request.tp,
        "pp": request.pp,
        "dp": request.dp,
        "dcp": request.dcp,
        "context": request.context,
        "concurrency": request.concurrency,
        "weights": request.weights,
        "kv_dtype": request.kv_dtype,
        "dtype": request.dtype,
        "kv_budget": request.kv_budget,
        "engine_options": dict(request.options),
        "gpus_per_node": request.gpus_per_node,
        "images": request.images,
        "image_size": request.image_size,
        "image_tokens": request.image_tokens,
        "profile": request.profile,
        "offline": request.offline,
    }
