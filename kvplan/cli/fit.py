"""`kvplan fit`: which GPUs, how many, at what price, and how to run the model on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kvplan.cli import fit_flags, flags, traffic_flags
from kvplan.cli.invocation import invocation_of

if TYPE_CHECKING:
    from kvplan.fit_result import FitResult
    from kvplan.planning.traffic.answer import Question
    from kvplan.reports.render import Format

_FORMATS: dict[str, Format] = {".json": "json", ".csv": "csv", ".md": "markdown"}


def fit(  # noqa: PLR0913 - as many as the command has flags
    context: typer.Context,
    model: flags.Model,
    *,
    context_tokens: flags.Length = None,
    concurrency: fit_flags.Concurrency = None,
    prompt: fit_flags.Prompt = None,
    trace: traffic_flags.Trace = None,
    lengths: traffic_flags.Lengths = None,
    risk: traffic_flags.Risk = "0.1%",
    trace_columns: traffic_flags.TraceColumns = None,
    turns: traffic_flags.Turns = None,
    prefix: traffic_flags.Prefix = None,
    rate: traffic_flags.Rate = None,
    users: traffic_flags.Users = None,
    think: traffic_flags.Think = "0s",
    daily: traffic_flags.Daily = None,
    decode_rate: traffic_flags.DecodeRate = None,
    prefill_rate: traffic_flags.PrefillRate = None,
    gpus: fit_flags.Gpus = None,
    instances: fit_flags.Instances = None,
    prices: fit_flags.Prices = None,
    budget: fit_flags.Budget = None,
    slo: fit_flags.Slo = None,
    max_gpus: fit_flags.MaxGpus = "64",
    gpus_per_node: fit_flags.NodeSize = None,
    engine: fit_flags.Engines = "vllm",
    weights: fit_flags.WeightFormats = None,
    kv_dtype: fit_flags.KvDtypes = None,
    tp: fit_flags.Tensor = None,
    pp: fit_flags.Pipeline = None,
    option: flags.EngineOption = None,
    efficiency: fit_flags.Efficiency = None,
    offline: flags.Offline = False,
    report_format: fit_flags.ReportFormat = None,
    top: fit_flags.Top = "10",
    output: flags.Output = None,
) -> int:
    """Search for the cheapest hardware that holds a load.

    And how to run the model on it; why everything else lost.

    Exit code: 0 something holds it, 1 nothing does, 2 a wrong argument or file, 3 facts could not
    be had, 4 every engine refuses.
    """
    from kvplan.cli import arguments, compare, fit_words
    from kvplan.cli.sweep_progress import ProgressBar
    from kvplan.cli.traffic_source import TrafficFlags, question_of
    from kvplan.fit_prices import HOURS_PER_MONTH
    from kvplan.fitting import fit as search
    from kvplan.side_by_side import engine_names
    from kvplan.sources.prices import read_prices

    traffic: Question | None = None
    if trace is not None or lengths is not None:
        traffic = question_of(
            TrafficFlags(
                trace=trace,
                columns=trace_columns,
                lengths=lengths,
                turns=turns,
                prefix=prefix,
                rate=rate,
                users=users,
                think=think,
                daily=daily,
                decode_rate=decode_rate,
                prefill_rate=prefill_rate,
                risk=risk,
            )
        )
    else:
        _no_traffic_flags(rate, users, daily, turns, prefix, decode_rate, prefill_rate)
    names = engine_names(compare.engines_of(engine))
    limits, shares = fit_words.parse_slo(slo), fit_words.parse_efficiency(efficiency)
    listed = None if prices is None else read_prices(prices)
    hours = listed.hours_per_month if listed else HOURS_PER_MONTH
    shown = arguments.parse_count("--top", top)
    bar = ProgressBar(quiet=invocation_of(context).quiet, noun="GPUs")
    try:
        found = search(
            model,
            context=fit_words.parse_length("--context", context_tokens),
            concurrency=arguments.parse_optional_count("--concurrency", concurrency),
            prompt=fit_words.parse_length("--prompt", prompt),
            traffic=traffic,
            gpus=gpus,
            instances=fit_words.parse_names("--instances", instances),
            prices=listed,
            budget_per_hour=fit_words.parse_budget(budget, hours),
            tpot_s=limits.get("tpot"),
            ttft_s=limits.get("ttft"),
            engines=names,
            weights=fit_words.parse_names("--weights", weights),
            kv_dtypes=fit_words.parse_names("--kv-dtype", kv_dtype),
            tp=fit_words.parse_sizes("--tp", tp),
            pp=fit_words.parse_sizes("--pp", pp),
            max_gpus=arguments.parse_count("--max-gpus", max_gpus),
            gpus_per_node=arguments.parse_optional_count("--gpus-per-node", gpus_per_node),
            engine_options=fit_words.options_of(option or (), names),
            bandwidth_share=shares.get("bandwidth"),
            flops_share=shares.get("flops"),
            offline=offline,
            progress=bar.show,
        )
    finally:
        bar.clear()
    _report(context, found, report_format or _by_ending(output), output, shown)
    return exit_code(found)


def exit_code(found: FitResult) -> int:
    """0 where something holds it, 4 where all are refused, else 1."""
    if found.plans:
        return 0
    return 4 if found.losers and all(lost.why == "refused" for lost in found.losers) else 1


def _no_traffic_flags(*given: str | None) -> None:
    from kvplan.errors import UsageError

    if any(one is not None for one in given):
        raise UsageError(
            "Rates, users, turns and prefixes say nothing without the requests' lengths.",
            hint="Add --traffic FILE or --lengths 8k/300.",
        )


def _by_ending(output: Path | None) -> Format:
    return _FORMATS.get(output.suffix.lower(), "text") if output else "text"


def _report(
    context: typer.Context, found: FitResult, wanted: Format, output: Path | None, top: int
) -> None:
    from kvplan.cli import terminal
    from kvplan.cli.output import write
    from kvplan.reports.clean import clean
    from kvplan.reports.fit_render import render_fit
    from kvplan.reports.fit_rows import headline

    to_file = output is not None and str(output) != "-"
    look = terminal.paper() if to_file else terminal.terminal()
    text = render_fit(
        found,
        wanted,
        width=look.width,
        color=look.color,
        ascii_only=look.ascii_only,
        top=top,
    )
    write(text, output)
    if to_file or wanted == "csv":
        invocation_of(context).remark(clean(headline(found)))
