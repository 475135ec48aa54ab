"""`kvplan size`: one configuration, judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from kvplan.cli import flags
from kvplan.cli import images as image_flags
from kvplan.cli.invocation import invocation_of
from kvplan.errors import UsageError, shown

if TYPE_CHECKING:
    from kvplan.cli.request import Request
    from kvplan.plan import Plan, Verdict
    from kvplan.reports.render import Format

_EXIT_CODES: dict[Verdict, int] = {"fits": 0, "does_not_fit": 1, "refused": 4}
# What a command line does not show, and a report would.
_WARNED_OF = frozenset(
    {"context_above_model_maximum", "class_dropped", "class_not_listed", "within_uncertainty"}
)
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
    model: flags.SizedModel = None,
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
    images: image_flags.Images = None,
    image_size: image_flags.ImageSize = None,
    image_tokens: image_flags.ImageTokens = None,
    kv_policy: flags.KvPolicy = None,
    from_command: flags.FromCommand = None,
    emit: flags.Emit = None,
    profile: flags.Profile = None,
    offline: flags.Offline = False,
    report_format: flags.ReportFormat = None,
    explain: flags.Explain = False,
    output: flags.Output = None,
) -> int:
    """Say whether a model fits, and what to change if not.

    Exit code: 0 it fits, 1 it does not, 2 a wrong argument, 3 facts could not be had, 4 refused.
    """
    if model is None and from_command is None:
        raise _no_model()
    device = _required(gpu)
    wanted = _format(report_format, output)

    from kvplan.cli import arguments, compare, emission
    from kvplan.cli.request import Request

    several = compare.is_several(engine)
    request = Request(
        model=model,
        gpu=device,
        engine=engine if several else emission.engine_for(context, engine, model, emit),
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
        options={} if several else arguments.parse_options(option or ()),
        images=image_flags.parse_images(images),
        image_size=image_flags.parse_image_size(image_size),
        image_tokens=arguments.parse_optional_count("--image-tokens", image_tokens),
        profile=profile,
        offline=offline,
    )
    if several:
        _only_one(emit=emit, from_command=from_command, kv_policy=kv_policy)
        return compare.run(context, request, option or (), wanted, output)
    remarks: tuple[str, ...] = ()
    if from_command is not None:
        request, remarks = _from_command(context, request, from_command)
    plan = _plan(request, remarks, advice=emit is None and wanted != "csv")
    if kv_policy is not None:
        plan = _with_policy(plan, request, kv_policy)
    if emit is not None:
        _emit(context, plan, request, emit, output)
    else:
        _report(context, plan, wanted, explain=explain, output=output)
    return _EXIT_CODES[plan.verdict]


def _plan(request: Request, remarks: tuple[str, ...], *, advice: bool) -> Plan:
    if request.model is None:
        raise _no_model()
    from kvplan import api

    plan = api.size(
        request.model,
        request.gpu,
        engine=request.engine,
        tp=request.tp,
        pp=request.pp,
        dp=request.dp,
        dcp=request.dcp,
        context=request.context,
        concurrency=request.concurrency,
        weights=request.weights,
        kv_dtype=request.kv_dtype,
        dtype=request.dtype,
        gpus_per_node=request.gpus_per_node,
        kv_budget=request.kv_budget,
        engine_options=dict(request.options),
        images=request.images,
        image_size=request.image_size,
        image_tokens=request.image_tokens,
        profile=request.profile,
        offline=request.offline,
        advice=advice,
    )
    if not remarks:
        return plan
    from kvplan.plan import Reason

    said = tuple(Reason(code="command_line", message=remark) for remark in remarks)
    return plan.model_copy(update={"reasons": (*plan.reasons, *said)})


def _with_policy(plan: Plan, request: Request, text: str) -> Plan:
    """The same plan, and beside it what dropping entries of the cache would do."""
    from kvplan import api
    from kvplan.planning.policy import parse_policy
    from kvplan.planning.policy_note import policy_notes

    policy = parse_policy(text)
    model = api.read_spec(request.model or "", offline=request.offline)
    longest = plan.capacity.max_context if plan.capacity else 0
    length = request.context if isinstance(request.context, int) else None
    tokens = length or (longest if request.context == "auto" else model.max_context) or longest
    said = tuple(policy_notes(plan, model, policy, tokens))
    return plan.model_copy(update={"reasons": (*plan.reasons, *said)})


def _from_command(
    context: typer.Context, request: Request, text: str
) -> tuple[Request, tuple[str, ...]]:
    """The request with what the command says, and what is to be said about it."""
    from kvplan.cli import from_command
    from kvplan.cli.request import onto

    def is_given(name: str) -> bool:
        field = "context_tokens" if name == "context" else name
        source = context.get_parameter_source(field)
        return source is not None and source.name == "COMMANDLINE"

    command = from_command.read(text)
    request, won = onto(request, command, is_given)
    request = from_command.with_weights(request, command)
    remarks = (*command.remarks, *won)
    for remark in remarks:
        invocation_of(context).remark(f"kvplan: {remark}")
    return request, remarks


def _emit(
    context: typer.Context, plan: Plan, request: Request, emit: str, output: Path | None
) -> None:
    from kvplan.cli.emission import written
    from kvplan.cli.output import write
    from kvplan.reports.clean import clean
    from kvplan.reports.headline import headline

    if plan.verdict != "refused" and not _has_no_length(plan, request):
        write(f"{written(plan, request, emit)}\n", output)
    name = "vLLM" if plan.engine.name == "vllm" else plan.engine.name
    invocation_of(context).remark(clean(f"{name} {plan.engine.version}: {headline(plan)}"))
    for reason in plan.reasons:
        if reason.code in _WARNED_OF:
            invocation_of(context).remark(clean(f"kvplan: {reason.message}"))


def _has_no_length(plan: Plan, request: Request) -> bool:
    """Whether the longest that fits was asked for, and nothing does."""
    most = plan.capacity.max_context if plan.capacity else 0
    return request.context == "auto" and most < 1


def _only_one(*, emit: str | None, from_command: str | None, kv_policy: str | None) -> None:
    """Commands start one engine, and a policy is one engine's."""
    given = (("--emit", emit), ("--from-command", from_command), ("--kv-policy", kv_policy))
    for flag, value in given:
        if value is not None:
            raise UsageError(
                f"{flag} is for one engine, not for several.", hint="Name one with --engine."
            )


def _no_model() -> UsageError:
    return UsageError(
        "MODEL is missing.",
        hint="Name one, such as Qwen/Qwen3-8B, or give a command that does: --from-command"
        " 'vllm serve ...'.",
    )


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
