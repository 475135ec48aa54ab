"""`kvplan sweep`: every combination of some inputs, planned or simulated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from kvplan.cli import flags, simulate_flags, sweep_flags, traffic_flags
from kvplan.cli import images as image_flags
from kvplan.errors import UsageError

if TYPE_CHECKING:
    from kvplan.cli.sweep_base import BaseFlags
    from kvplan.cli.sweep_simulate import WorkloadFlags

_REFUSED, _INTERRUPTED = 4, 130
_OF_SIMULATIONS = (
    "executor", "jobs", "ray_address", "trace", "lengths", "rate", "trace_columns", "turns",
    "think", "prefix", "daily", "requests", "duration", "start_at", "burst", "speed", "seed",
    "tier", "step_time", "bandwidth_efficiency", "flops_efficiency", "overhead", "first_token",
    "between_tokens",
)  # fmt: skip


def sweep(  # noqa: PLR0913 - as many as the command has flags
    context: typer.Context,
    model: sweep_flags.Model = None,
    *,
    vary: sweep_flags.Vary = None,
    gpu: sweep_flags.Gpu = None,
    engine: traffic_flags.OneEngine = "vllm",
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
    images: image_flags.Images = None,
    image_size: image_flags.ImageSize = None,
    image_tokens: image_flags.ImageTokens = None,
    profile: flags.Profile = None,
    from_command: flags.FromCommand = None,
    offline: flags.Offline = False,
    report_format: sweep_flags.Format = None,
    plot: sweep_flags.Plot = None,
    output: flags.Output = None,
    simulate: sweep_flags.Simulate = False,
    executor: sweep_flags.Executor = "processes",
    jobs: sweep_flags.Jobs = None,
    ray_address: sweep_flags.RayAddress = None,
    trace: traffic_flags.Trace = None,
    lengths: traffic_flags.Lengths = None,
    rate: traffic_flags.Rate = None,
    trace_columns: traffic_flags.TraceColumns = None,
    turns: traffic_flags.Turns = None,
    think: traffic_flags.Think = "0s",
    prefix: traffic_flags.Prefix = None,
    daily: traffic_flags.Daily = None,
    requests: simulate_flags.Requests = None,
    duration: simulate_flags.Duration = None,
    start_at: simulate_flags.StartAt = "0h",
    burst: simulate_flags.Burst = 1.0,
    speed: simulate_flags.Speed = 1.0,
    seed: simulate_flags.Seed = 0,
    tier: simulate_flags.Tiers = None,
    step_time: simulate_flags.StepTime = None,
    bandwidth_efficiency: simulate_flags.BandwidthEfficiency = None,
    flops_efficiency: simulate_flags.FlopsEfficiency = None,
    overhead: simulate_flags.Overhead = "0ms",
    first_token: simulate_flags.FirstToken = None,
    between_tokens: simulate_flags.BetweenTokens = None,
) -> int:
    """Plan or simulate every combination of some inputs.

    What an engine refuses is a row with its reason. With --simulate traffic runs through each.

    Exit code: 0 the table was made, 2 a wrong argument, 3 facts could not be had, 4 all points are
    refused, 130 interrupted (with what there is until then).
    """
    from kvplan.cli.sweep_base import BaseFlags

    base = BaseFlags(
        model, gpu, engine, tp, pp, dp, dcp, context_tokens, concurrency, weights, kv_dtype, dtype,
        gpus_per_node, kv_budget, option, images, image_size, image_tokens, profile, from_command,
        offline,
    )  # fmt: skip
    wanted = Wanted(vary or [], report_format, plot, output)
    if not simulate:
        _no_traffic(context)
        return _plan(context, base, wanted)
    from kvplan.cli.sweep_simulate import WorkloadFlags

    workload = WorkloadFlags(
        trace, lengths, rate, trace_columns, turns, think, prefix, daily, requests, duration,
        start_at, burst, speed, seed, tuple(tier or ()), step_time, bandwidth_efficiency,
        flops_efficiency, overhead, first_token, between_tokens,
    )  # fmt: skip
    return _simulate(context, base, workload, wanted, (executor, jobs, ray_address))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is varied and where the answer goes, as it was typed."""

    vary: list[str]
    report_format: str | None
    plot: str | None
    output: Path | None


def _no_traffic(context: typer.Context) -> None:
    """Flags of a simulation say nothing without one."""
    for name in _OF_SIMULATIONS:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            flag = "traffic" if name == "trace" else name.replace("_", "-")
            raise UsageError(
                f"--{flag} is for simulations.", hint="Add --simulate, or leave it out."
            )


def _plan(context: typer.Context, base: BaseFlags, asked: Wanted) -> int:
    from kvplan.cli import sweep_base, sweep_report, sweep_words
    from kvplan.cli.invocation import invocation_of
    from kvplan.cli.sweep_progress import ProgressBar
    from kvplan.sweeper import sweep as run

    wanted = sweep_words.parse_format(asked.report_format, asked.output)
    varied = sweep_words.parse_vary(asked.vary)
    request = sweep_base.request_of(context, base)
    bar = ProgressBar(quiet=invocation_of(context).quiet)
    try:
        found = run(
            request.model,
            request.gpu or None,
            vary=varied,
            progress=bar.show,
            **sweep_base.arguments_of(request),
        )
    finally:
        bar.clear()
    sweep_report.report(context, found, wanted, asked.plot, asked.output)
    all_refused = found.count("refused") == len(found.points)
    return _exit_code(found.status, all_refused=all_refused)


def _simulate(
    context: typer.Context,
    base: BaseFlags,
    workload: WorkloadFlags,
    asked: Wanted,
    where: tuple[Literal["processes", "ray"], str | None, str | None],
) -> int:
    from kvplan.cli import sweep_simulate, sweep_simulated_report, sweep_words
    from kvplan.cli.arguments import parse_optional_count
    from kvplan.sweep_executors import Executor

    kind, jobs, address = where
    wanted = sweep_words.parse_format(asked.report_format, asked.output)
    if wanted in ("xlsx", "html"):
        raise UsageError(
            "Workbooks and pages are made of plans, not of simulations.",
            hint="Write .csv, .json, .parquet or .svg.",
        )
    varied = sweep_words.parse_vary(asked.vary)
    executor = Executor(kind, parse_optional_count("--jobs", jobs), address)
    found = sweep_simulate.run(context, base, workload, varied, executor)
    sweep_simulated_report.report(context, found, wanted, asked.output)
    return _exit_code(found.status, all_refused=found.refused == len(found.points))


def _exit_code(status: str, *, all_refused: bool) -> int:
    if status == "interrupted":
        return _INTERRUPTED
    return _REFUSED if all_refused else 0
