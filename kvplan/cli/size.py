"""`kvplan size`: one configuration, judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kvplan.cli import flags
from kvplan.cli.invocation import invocation_of
from kvplan.errors import UsageError, shown

if TYPE_CHECKING:
    from kvplan.plan import Plan, Verdict
    from kvplan.reports.render import Format

_EXIT_CODES: dict[Verdict, int] = {"fits": 0, "does_not_fit": 1, "refused": 4}
_FORMATS_BY_ENDING: dict[str, Format] = {
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    "": "text",
}


def size(  # noqa: PLR0913 - as many as the command has flags
    context: typer.Context,
    model: flags.Model,
    *,
    gpu: flags.Gpu = None,
    engine: flags.Engine = "vllm",
    tp: flags.Tp = "1",
    pp: flags.Pp = "1",
    dp: flags.Dp = "1",
    dcp: flags.Dcp = "1",
    context_tokens: flags.Context = None,
    concurrency: flags.Concurrency = None,
    weights: flags.Weights = "auto",
    kv_dtype: flags.KvDtype = "auto",
    dtype: flags.Dtype = "auto",
    gpus_per_node: flags.GpusPerNode = None,
    kv_budget: flags.KvBudget = None,
    option: flags.EngineOption = None,
    offline: flags.Offline = False,
    report_format: flags.ReportFormat = None,
    explain: flags.Explain = False,
    output: flags.Output = None,
) -> int:
    """Say whether a model fits, and what to change if not.

    Exit code: 0 it fits, 1 it does not, 2 a wrong argument, 3 facts could not be had, 4 refused.
    """
    device = _required(gpu)
    wanted = _format(report_format, output)

    from kvplan import api
    from kvplan.cli import arguments

    plan = api.size(
        model,
        device,
        engine=engine,
        tp=arguments.parse_count("--tp", tp),
        pp=arguments.parse_count("--pp", pp),
        dp=arguments.parse_count("--dp", dp),
        dcp=arguments.parse_count("--dcp", dcp),
        context=arguments.parse_context(context_tokens),
        concurrency=arguments.parse_optional_count("--concurrency", concurrency),
        weights=weights,
        kv_dtype=kv_dtype,
        dtype=dtype,
        gpus_per_node=arguments.parse_optional_count("--gpus-per-node", gpus_per_node),
        kv_budget=arguments.parse_kv_budget(kv_budget or ()),
        engine_options=arguments.parse_options(option or ()),
        offline=offline,
        advice=wanted != "csv",
    )
    _report(context, plan, wanted, explain=explain, output=output)
    return _EXIT_CODES[plan.verdict]


def _required(gpu: str | None) -> str:
    if gpu is None:
        raise UsageError(
            "--gpu is missing.",
            hint="Name one, such as H100-SXM-80GB, H200-SXM-141GB, A100-SXM-80GB, L40S-48GB or"
            " RTX-4090-24GB; auto reads this machine; `kvplan gpus list` shows all.",
        )
    return gpu


def _format(wanted: Format | None, output: Path | None) -> Format:
    if wanted is not None:
        return wanted
    ending = output.suffix.lower() if output else ""
    if ending not in _FORMATS_BY_ENDING:
        raise UsageError(
            f"No report format has the ending {shown(ending)}.",
            hint="End the file's name in .txt, .json, .csv or .md, or give --format.",
            location="--output",
        )
    return _FORMATS_BY_ENDING[ending]


def _report(
    context: typer.Context, plan: Plan, wanted: Format, *, explain: bool, output: Path | None
) -> None:
    from kvplan.cli import terminal
    from kvplan.cli.output import write
    from kvplan.reports.clean import clean
    from kvplan.reports.headline import headline
    from kvplan.reports.render import render

    to_file = output is not None and str(output) != "-"
    look = terminal.paper() if to_file else terminal.terminal(terminal.NARROWEST_PLAN)
    text = render(
        plan,
        wanted,
        explain=explain,
        width=look.width,
        color=look.color,
        ascii_only=look.ascii_only,
    )
    write(text, output)
    if to_file or wanted == "csv":
        invocation_of(context).remark(clean(headline(plan)))
