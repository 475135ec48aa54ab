"""`kvplan traffic`: how many requests of real traffic fit, at a chosen risk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kvplan.cli import flags, traffic_flags
from kvplan.cli.invocation import invocation_of
from kvplan.errors import UsageError

if TYPE_CHECKING:
    from kvplan.plan import Verdict
    from kvplan.reports.render_traffic import Format
    from kvplan.traffic_plan import TrafficPlan

_EXIT_CODES: dict[Verdict, int] = {"fits": 0, "does_not_fit": 1, "refused": 4}
_FORMATS: dict[str, Format] = {".json": "json", ".csv": "csv", ".md": "markdown", ".svg": "svg"}


def traffic(  # noqa: PLR0913 - as many as the command has flags
    context: typer.Context,
    model: flags.Model,
    *,
    gpu: flags.Gpu = None,
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
    retain: traffic_flags.Retain = None,
    tier: traffic_flags.Tiers = None,
    kv_link: traffic_flags.KvLink = None,
    link_efficiency: traffic_flags.LinkEfficiency = None,
    prefill_gpu: traffic_flags.PrefillGpu = None,
    prefill_tp: traffic_flags.PrefillTp = None,
    first_token: traffic_flags.FirstToken = None,
    between_tokens: traffic_flags.BetweenTokens = None,
    kv_policy: flags.KvPolicy = None,
    verify: traffic_flags.Verify = False,
    engine: traffic_flags.OneEngine = "vllm",
    tp: flags.Tp = "1",
    pp: flags.Pp = "1",
    dp: flags.Dp = "1",
    dcp: flags.Dcp = "1",
    context_tokens: flags.Context = None,
    weights: flags.Weights = "auto",
    kv_dtype: flags.KvDtype = "auto",
    dtype: flags.Dtype = "auto",
    kv_budget: flags.KvBudget = None,
    option: flags.EngineOption = None,
    profile: flags.Profile = None,
    offline: flags.Offline = False,
    report_format: traffic_flags.Format = None,
    output: flags.Output = None,
) -> int:
    """Say how many requests of real traffic fit.

    And how often they don't, and how many replicas would be enough.

    Exit code: 0 the traffic fits at the chosen risk, 1 it does not, 2 a wrong argument or trace,
    3 facts could not be had, 4 refused.
    """
    if gpu is None:
        raise UsageError("--gpu is missing.", hint="Name one; `kvplan gpus list` shows all.")

    from kvplan.cli import arguments
    from kvplan.cli.traffic_source import TrafficFlags, question_of
    from kvplan.traffic_planner import plan_traffic

    question = question_of(
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
            retain=retain,
            tiers=tuple(tier or ()),
            kv_link=kv_link,
            link_efficiency=link_efficiency,
            first_token=first_token,
            between_tokens=between_tokens,
            kv_policy=kv_policy,
            verify=verify,
        )
    )
    plan = plan_traffic(
        model,
        gpu,
        question,
        engine=engine,
        tp=arguments.parse_count("--tp", tp),
        pp=arguments.parse_count("--pp", pp),
        dp=arguments.parse_count("--dp", dp),
        dcp=arguments.parse_count("--dcp", dcp),
        context=arguments.parse_context(context_tokens),
        weights=weights,
        kv_dtype=kv_dtype,
        dtype=dtype,
        kv_budget=arguments.parse_kv_budget(kv_budget or ()),
        engine_options=arguments.parse_options(option or ()),
        profile=profile,
        offline=offline,
        prefill_gpu=prefill_gpu,
        prefill_tp=arguments.parse_optional_count("--prefill-tp", prefill_tp),
    )
    _report(context, plan, report_format or _by_ending(output), output)
    return _EXIT_CODES[plan.verdict]


def _by_ending(output: Path | None) -> Format:
    return _FORMATS.get(output.suffix.lower(), "text") if output else "text"


def _report(context: typer.Context, plan: TrafficPlan, wanted: Format, output: Path | None) -> None:
    from kvplan.cli import terminal
    from kvplan.cli.output import write
    from kvplan.reports.clean import clean
    from kvplan.reports.render_traffic import render_traffic
    from kvplan.reports.traffic_rows import headline

    to_file = output is not None and str(output) != "-"
    look = terminal.paper() if to_file else terminal.terminal(terminal.NARROWEST_PLAN)
    text = render_traffic(
        plan, wanted, width=look.width, color=look.color, ascii_only=look.ascii_only
    )
    write(text, output)
    if to_file or wanted in ("csv", "svg"):
        invocation_of(context).remark(clean(headline(plan)))
