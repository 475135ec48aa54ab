"""`kvplan measure`: allocate a plan for real with torch, and compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kvplan.cli import flags
from kvplan.cli.complete import complete_gpu
from kvplan.cli.invocation import invocation_of
from kvplan.errors import UsageError, shown

if TYPE_CHECKING:
    from kvplan.hardware import GpuSpec
    from kvplan.measure.session import Surroundings, Wanted
    from kvplan.measured_plan import MeasuredPlan

_Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="DEVICE",
        help="cuda or cuda:N (CUDA and ROCm), cpu (counts real tensors), or fake (counts tensors"
        " without memory).",
    ),
]
_Gpu = Annotated[
    str | None,
    typer.Option(
        "--gpu",
        metavar="GPU",
        help="The GPU that is planned for. Required for cpu and fake.",
        show_default="the one that is measured",
        autocompletion=complete_gpu,
    ),
]
_Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="vllm, or one of its releases, as vllm==0.33.0. Plans of other engines can't be"
        " measured.",
    ),
]
_Layers = Annotated[
    str | None,
    typer.Option(
        "--layers",
        metavar="N",
        help="Allocate only the first N layers of the rank.",
        show_default="as many as fit",
    ),
]
_Exhaust = Annotated[
    bool,
    typer.Option(
        "--exhaust/--no-exhaust", help="Whether to try how much memory is left beyond the pool."
    ),
]
_Tolerance = Annotated[
    float,
    typer.Option("--tolerance", min=0.0, max=1.0, help="Share that a line may be off by."),
]
_Yes = Annotated[
    bool, typer.Option("--yes", help="Take the memory of a shared device without asking.")
]
_Format = Annotated[
    Literal["text", "json"],
    typer.Option("--format", case_sensitive=False, help="text for people, json for every field."),
]
_Record = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Append the result to a file of measurement records, one JSON object a line.",
        show_default=False,
    ),
]


def measure(  # noqa: PLR0913 - as many as the command has flags
    context: typer.Context,
    model: flags.Model,
    *,
    gpu: _Gpu = None,
    device: _Device = "cuda",
    engine: _Engine = "vllm",
    tp: flags.Tp = "1",
    pp: flags.Pp = "1",
    context_tokens: flags.Context = None,
    weights: flags.Weights = "auto",
    kv_dtype: flags.KvDtype = "auto",
    dtype: flags.Dtype = "auto",
    option: flags.EngineOption = None,
    layers: _Layers = None,
    exhaust: _Exhaust = True,
    tolerance: _Tolerance = 0.05,
    yes: _Yes = False,
    offline: flags.Offline = False,
    report_format: _Format = "text",
    record: _Record = None,
    output: flags.Output = None,
) -> int:
    """Allocate a vLLM plan for real with torch, and compare.

    Weights, a forward of the plan's blocks, and the KV cache page by page, on this machine's GPU;
    no engine runs.

    Exit code: 0 every measured line agrees, 1 one does not, 2 a wrong argument, 3 no torch or no
    device, 4 refused.
    """
    from kvplan import api
    from kvplan.architectures import quantize
    from kvplan.cli import arguments
    from kvplan.measure import needs_torch

    needs_torch.check()
    from kvplan.measure.session import Wanted, run

    kind, index = _kind(device)
    wanted = Wanted(
        kind=kind,
        index=index,
        layers=arguments.parse_optional_count("--layers", layers),
        exhaust=exhaust,
        tolerance=tolerance,
    )
    spec = api.read_spec(model, offline=offline)
    spec = spec if weights == "auto" else quantize(spec, weights)
    plan = api.size(
        spec,
        _gpu(gpu, kind, index),
        engine=_vllm(engine),
        tp=arguments.parse_count("--tp", tp),
        pp=arguments.parse_count("--pp", pp),
        context=arguments.parse_context(context_tokens),
        kv_dtype=kv_dtype,
        dtype=dtype,
        engine_options=arguments.parse_options(option or ()),
        offline=offline,
        advice=False,
    )
    if plan.verdict == "refused":
        invocation_of(context).remark(plan.reasons[0].message if plan.reasons else "Refused.")
        return 4
    comparison = run(plan, spec, wanted, _surroundings(wanted, yes=yes))
    _report(comparison, report_format, record, output)
    return 0 if comparison.agrees else 1


def _kind(device: str) -> tuple[Literal["cuda", "cpu", "fake"], int]:
    if device == "cpu":
        return "cpu", 0
    if device == "fake":
        return "fake", 0
    name, _, index = device.partition(":")
    if name == "cuda" and (not index or (index.isdecimal() and len(index) < 4)):
        return "cuda", int(index or 0)
    raise UsageError(
        f"There is no device {shown(device)}.",
        hint="Use cuda, cuda:1, cpu or fake.",
        location="--device",
    )


def _vllm(engine: str) -> str:
    """The engine, before anything is read: only vLLM's plans say what is measured here."""
    if engine.partition("==")[0].strip().casefold() != "vllm":
        raise UsageError(
            f"Plans for {shown(engine)} can't be measured: only vLLM's can.",
            hint="Use --engine vllm, or one of its releases: --engine vllm==0.33.0.",
            location="--engine",
        )
    return engine


def _gpu(gpu: str | None, kind: str, index: int) -> GpuSpec | str:
    if gpu is not None:
        return gpu
    if kind == "cuda":
        from kvplan.cli.device_use import gpu_to_plan_for

        return gpu_to_plan_for(index)
    raise UsageError(
        "--gpu is missing.",
        hint="Name the GPU that is planned for: without a device there is none to read.",
    )


def _surroundings(wanted: Wanted, *, yes: bool) -> Surroundings:
    from kvplan.cli.device_use import detected, is_shared, used_bytes
    from kvplan.measure.session import Surroundings

    real = wanted.kind == "cuda"

    def consent(question: str) -> bool:
        import sys

        return yes or (sys.stdin.isatty() and typer.confirm(question, err=True))

    return Surroundings(
        used=lambda: used_bytes(wanted.index) if real else None,
        shared=is_shared(detected(), wanted.index) if real else False,
        consent=consent,
    )


def _report(
    comparison: MeasuredPlan, wanted: str, record: Path | None, output: Path | None
) -> None:
    from kvplan.cli import terminal
    from kvplan.cli.output import write
    from kvplan.reports.measured_text import measured_text

    if record is not None:
        with record.open("a", encoding="utf-8") as lines:
            lines.write(f"{comparison.record.json_line()}\n")
    if wanted == "json":
        write(f"{comparison.model_dump_json(indent=2)}\n", output)
        return
    to_file = output is not None and str(output) != "-"
    look = terminal.paper() if to_file else terminal.terminal()
    write(
        measured_text(comparison, width=look.width, color=look.color, ascii_only=look.ascii_only),
        output,
    )
