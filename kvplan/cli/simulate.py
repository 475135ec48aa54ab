"""`kvplan simulate`: traffic through one configuration, step by step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kvplan.cli import flags, simulate_flags, traffic_flags
from kvplan.cli.invocation import invocation_of
from kvplan.errors import UsageError

if TYPE_CHECKING:
    from kvplan.cli.simulate_progress import ProgressLine
    from kvplan.cli.simulate_source import Stream
    from kvplan.simulation import Simulation

_INTERRUPTED = 130
_FORMATS = {".json": "json", ".csv": "csv", ".svg": "svg"}


def simulate(  # noqa: PLR0913 - as many as the command has flags
    context: typer.Context,
    model: flags.Model,
    *,
    gpu: flags.Gpu = None,
    trace: traffic_flags.Trace = None,
    lengths: traffic_flags.Lengths = None,
    rate: traffic_flags.Rate = None,
    trace_columns: traffic_flags.TraceColumns = None,
    turns: traffic_flags.Turns = None,
    think: simulate_flags.Think = "0s",
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
    curve: simulate_flags.Curve = False,
    engine: traffic_flags.OneEngine = "vllm",
    tp: flags.Tp = "1",
    pp: flags.Pp = "1",
    dp: flags.Dp = "1",
    dcp: flags.Dcp = "1",
    context_tokens: flags.Length = None,
    weights: flags.Weights = "auto",
    kv_dtype: flags.KvDtype = "auto",
    dtype: flags.Dtype = "auto",
    kv_budget: flags.KvBudget = None,
    option: flags.EngineOption = None,
    offline: flags.Offline = False,
    report_format: simulate_flags.Format = None,
    output: flags.Output = None,
) -> int:
    """Run traffic through one configuration, step by step.

    How full the pool gets, who waits, what is preempted, how much of the prompts is found.

    Exit code: 0 simulated, 2 a wrong argument or trace, 3 facts could not be had, 4 refused,
    130 interrupted (with what there is until then).
    """
    if gpu is None:
        raise UsageError("--gpu is missing.", hint="Name one; `kvplan gpus list` shows all.")

    from kvplan.cli import arguments, simulate_words
    from kvplan.cli.simulate_source import Stream, check_twice
    from kvplan.cli.traffic_source import TrafficFlags
    from kvplan.simulator import Speed, deploy
    from kvplan.simulator import simulate as simulate_stream

    stream = Stream(
        TrafficFlags(trace, trace_columns, lengths, turns, prefix, rate, think=think, daily=daily),
        seed,
        requests=requests,
        duration=duration,
        start_at=start_at,
        burst=burst,
        speed=speed,
    )
    stream.check()
    if curve:
        check_twice(stream)
    speeds = Speed(
        simulate_words.parse_step_time(step_time),
        bandwidth_efficiency,
        flops_efficiency,
        simulate_words.parse_span("--overhead", overhead),
    )
    tiers = simulate_words.parse_tiers(tier or ())
    limits = simulate_words.parse_limits(first_token, between_tokens)
    deployment = deploy(
        model,
        gpu,
        engine=engine,
        tp=arguments.parse_count("--tp", tp),
        pp=arguments.parse_count("--pp", pp),
        dp=arguments.parse_count("--dp", dp),
        dcp=arguments.parse_count("--dcp", dcp),
        context=_context(context_tokens),
        weights=weights,
        kv_dtype=kv_dtype,
        dtype=dtype,
        kv_budget=arguments.parse_kv_budget(kv_budget or ()),
        engine_options=arguments.parse_options(option or ()),
        offline=offline,
    )
    line = _line(context, stream, deployment.pool.replicas)
    found = _run(
        line,
        lambda progress: simulate_stream(
            deployment,
            stream.stream(),
            speed=speeds,
            tiers=tiers,
            limits=limits,
            seed=seed if trace is None else None,
            curve_of=stream.stream() if curve else None,
            progress=progress,
        ),
    )
    _report(context, found, report_format, output)
    return _INTERRUPTED if found.status == "interrupted" else 0


def _context(text: str | None) -> int | None:
    from kvplan.cli.arguments import parse_context

    tokens = parse_context(text)
    if tokens == "auto":
        raise UsageError(
            "A simulation takes a length, not auto.", hint="Leave out --context for the model's."
        )
    return tokens


def _line(context: typer.Context, stream: Stream, replicas: int) -> ProgressLine:
    """The progress on stderr, with a bar where it is known how much there is to do."""
    from kvplan.cli.simulate_progress import ProgressLine, watched

    quiet = invocation_of(context).quiet
    total = stream.about() if watched(quiet=quiet) else None
    return ProgressLine(quiet=quiet, total=total and max(1, total // replicas))


def _run(
    line: ProgressLine, job: Callable[[Callable[[int, float], None]], Simulation]
) -> Simulation:
    """The simulation, with a line on stderr while it runs."""
    try:
        return job(line.show)
    finally:
        line.clear()


def _report(
    context: typer.Context, found: Simulation, wanted: str | None, output: Path | None
) -> None:
    from kvplan.cli.output import write
    from kvplan.reports.simulation_rows import headline

    ending = output.suffix.lower() if output else ""
    chosen = wanted or _FORMATS.get(ending, "text")
    to_file = output is not None and str(output) != "-"
    write(_rendered(found, chosen, to_file=to_file), output)
    if to_file or chosen == "csv":
        invocation_of(context).remark(headline(found))


def _rendered(found: Simulation, chosen: str, *, to_file: bool) -> str:
    match chosen:
        case "json":
            from kvplan.reports.simulation_json import simulation_json

            return simulation_json(found)
        case "csv":
            from kvplan.reports.simulation_csv import simulation_csv

            return simulation_csv(found)
        case "svg":
            from kvplan.reports.simulation_svg import simulation_svg

            return simulation_svg(found)
        case _:
            from kvplan.cli import terminal
            from kvplan.reports.simulation_text import simulation_text

            look = terminal.paper() if to_file else terminal.terminal()
            return simulation_text(
                found, width=look.width, color=look.color, ascii_only=look.ascii_only
            )
