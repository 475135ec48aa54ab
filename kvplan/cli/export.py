"""`kvplan export`: a plan as a workbook that computes, as a page, or as a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvplan.cli import flags, traffic_flags
from kvplan.cli.invocation import invocation_of
from kvplan.errors import UsageError

if TYPE_CHECKING:
    from kvplan.cli.request import Request
    from kvplan.cli.traffic_source import TrafficFlags
    from kvplan.exporting import Price
    from kvplan.plan import Verdict
    from kvplan.plan_book import PlanBook
    from kvplan.planning.traffic.answer import Question

_EXIT_CODES: dict[Verdict, int] = {"fits": 0, "does_not_fit": 1, "refused": 4}

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="What to write: its ending says which form: .xlsx, .html, .csv, .json, .md or .txt.",
        show_default=False,
    ),
]
Saved = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="PLAN.json",
        help="A plan that `kvplan size --format json` wrote, or -, in place of a model and a GPU."
        " What only the engine can work out is left out then.",
        show_default=False,
    ),
]
SavedSweep = Annotated[
    Path | None,
    typer.Option(
        "--sweep",
        metavar="SWEEP.json",
        help="A sweep that `kvplan sweep --format json` wrote, or -, in place of a plan.",
        show_default=False,
    ),
]
PricePerHour = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="AMOUNT",
        help="What one GPU costs an hour: 2.50, or '2.10 EUR'.",
        show_default=False,
    ),
]


def export(  # noqa: PLR0913 - as many as the command has flags
    context: typer.Context,
    file: File,
    model: flags.SizedModel = None,
    *,
    gpu: flags.Gpu = None,
    saved: Saved = None,
    sweep: SavedSweep = None,
    price: PricePerHour = None,
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
    kv_budget: flags.KvBudget = None,
    option: flags.EngineOption = None,
    profile: flags.Profile = None,
    offline: flags.Offline = False,
) -> int:
    """Write a plan as a workbook that computes, or as a page.

    kvplan export plan.xlsx Qwen/Qwen3-8B --gpu H100 --context 32k --concurrency 50 --price 2.50

    Exit code: 0 it fits, 1 it does not (the file is written), 2 a wrong argument, 3 facts could
    not be had, 4 refused.
    """
    from kvplan.export_forms import ending_of

    ending = ending_of(file)
    paid = _price(price)

    from kvplan.cli import arguments
    from kvplan.cli.request import Request
    from kvplan.cli.traffic_source import TrafficFlags

    flows = TrafficFlags(
        trace=trace, columns=trace_columns, lengths=lengths, turns=turns, prefix=prefix, rate=rate,
        users=users, think=think, daily=daily, decode_rate=decode_rate, prefill_rate=prefill_rate,
        risk=risk, retain=retain,
    )  # fmt: skip
    question = _question(flows)
    if question is not None and ending not in (".xlsx", ".html"):
        raise UsageError(
            "Traffic is written into workbooks and pages only.",
            hint="End the file's name in .xlsx or .html; kvplan traffic has the other formats.",
        )

    if sweep is not None:
        _alone(model or saved, gpu)
        return _sweep(context, sweep, ending, file)
    if saved is not None:
        _alone(model, gpu)
        _no_traffic(question)
        book = _of_saved(saved, paid)
    else:
        request = Request(
            model=_given("MODEL", model, "Name one, such as Qwen/Qwen3-8B, or give --plan."),
            gpu=_given("--gpu", gpu, "Name one, such as H100; `kvplan gpus list` shows all."),
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
            kv_budget=arguments.parse_kv_budget(kv_budget or ()),
            options=arguments.parse_options(option or ()),
            profile=profile,
            offline=offline,
        )
        book = _planned(request, paid, question)
    _write(book, ending, file)
    _remark(context, book, file)
    verdicts = (book.plan.verdict, *((book.traffic.plan.verdict,) if book.traffic else ()))
    return max(_EXIT_CODES[verdict] for verdict in verdicts)


def _price(text: str | None) -> Price | None:
    if text is None:
        return None
    from kvplan.exporting import parse_price

    return parse_price(text)


def _given(name: str, value: str | None, hint: str) -> str:
    if value is None:
        raise UsageError(f"{name} is missing.", hint=hint)
    return value


def _alone(model: object, gpu: str | None) -> None:
    if model is not None or gpu is not None:
        raise UsageError(
            "The saved file already says which model and GPU.",
            hint="Leave out MODEL and --gpu, and give one saved file.",
        )


def _sweep(context: typer.Context, sweep: Path, ending: str, file: Path) -> int:
    from kvplan.cli.output import write_bytes
    from kvplan.export_forms import rendered_sweep
    from kvplan.reports.clean import clean
    from kvplan.reports.sweep_rows import headline
    from kvplan.sources.sweeps import read_sweep

    found = read_sweep(sweep)
    write_bytes(rendered_sweep(found, ending), file)
    invocation_of(context).remark(clean(f"{headline(found)} Written to {file}."))
    return 0


def _of_saved(saved: Path, price: Price | None) -> PlanBook:
    from kvplan.exporting import book_of_plan
    from kvplan.sources.results import read_plan

    return book_of_plan(read_plan(saved), price)


def _planned(request: Request, price: Price | None, traffic: Question | None) -> PlanBook:
    from kvplan.asked import asked_of
    from kvplan.exporting import book_of
    from kvplan.sources.profile import as_profile

    asked = asked_of(
        request.gpu,
        engine=request.engine,
        sizes={"tp": request.tp, "pp": request.pp, "dp": request.dp, "dcp": request.dcp},
        load=(request.context, request.concurrency),
        words={"weights": request.weights, "kv_dtype": request.kv_dtype, "dtype": request.dtype},
        kv_budget=request.kv_budget,
        options=request.options,
        images=(0, None, None),
    )
    host = as_profile(request.profile)
    return book_of(
        request.model or "", asked, host, price=price, traffic=traffic, offline=request.offline
    )


def _question(flags: TrafficFlags) -> Question | None:
    """What is asked about traffic; None where none was given."""
    from kvplan.cli.traffic_source import question_of

    if flags.trace is not None or flags.lengths is not None:
        return question_of(flags)
    given = (flags.rate, flags.users, flags.daily, flags.turns, flags.prefix, flags.decode_rate,
             flags.prefill_rate, flags.retain, flags.columns)  # fmt: skip
    if any(one is not None for one in given):
        raise UsageError(
            "Rates, users, turns and prefixes say nothing without the requests' lengths.",
            hint="Add --traffic FILE or --lengths 8k/300.",
        )
    return None


def _no_traffic(question: Question | None) -> None:
    if question is not None:
        raise UsageError(
            "A saved plan can't be held against traffic: only its engine knows.",
            hint="Give MODEL and --gpu instead of --plan.",
        )


def _write(book: PlanBook, ending: str, file: Path) -> None:
    from kvplan.cli.output import write_bytes
    from kvplan.export_forms import rendered

    write_bytes(rendered(book, ending), file)


def _remark(context: typer.Context, book: PlanBook, file: Path) -> None:
    from kvplan.reports.clean import clean
    from kvplan.reports.headline import headline

    said = headline(book.plan)
    if book.traffic is not None:
        from kvplan.reports.traffic_rows import headline as of_traffic

        said += f" Traffic: {of_traffic(book.traffic.plan)}"
    invocation_of(context).remark(clean(f"{said} Written to {file}."))
