"""`kvplan size --engine all`: several engines side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvplan.errors import UsageError, shown

if TYPE_CHECKING:
    import typer

    from kvplan.cli.request import Request
    from kvplan.engine_comparison import EngineComparison
    from kvplan.reports.render import Format


def is_several(engine: str) -> bool:
    """Whether ``--engine`` names more than one: ``all``, or names with commas."""
    return engine.strip().lower() == "all" or "," in engine


def engines_of(text: str) -> str | tuple[str, ...]:
    """``all``, or the names between the commas."""
    if text.strip().lower() == "all":
        return "all"
    return tuple(part.strip() for part in text.split(",") if part.strip())


def parse_options(texts: Sequence[str], known: Sequence[str]) -> dict[str, dict[str, Any]]:
    """``engine.name=value`` texts by engine.

    Args:
        texts: As given with ``-o``.
        known: Names of engines; some have a dot of their own.

    Raises:
        UsageError: a text that names no engine, or that is no option.
    """
    from kvplan.cli import arguments

    by_engine: dict[str, list[str]] = {}
    for text in texts:
        name = text.partition("=")[0].strip()
        engine = next((each for each in known if name.startswith(f"{each}.")), None)
        if engine is None:
            raise UsageError(
                f"{shown(name)} does not say which engine it is for.",
                hint=f"Write -o {known[0]}.NAME=VALUE; engines: {', '.join(known)}.",
                location="-o",
            )
        by_engine.setdefault(engine, []).append(text.strip()[len(engine) + 1 :])
    return {name: arguments.parse_options(own) for name, own in by_engine.items()}


def run(
    context: typer.Context,
    request: Request,
    options: Sequence[str],
    wanted: Format,
    output: Path | None,
) -> int:
    """Compares, reports, and gives the exit code: 0 one fits, 1 none does, 4 all refuse."""
    from kvplan import side_by_side

    names = side_by_side.engine_names(engines_of(request.engine))
    known = [name.partition("==")[0] for name in names]
    comparison = side_by_side.compare(
        request.model or "",
        request.gpu,
        engines=names,
        engine_options=parse_options(options, known),
        tp=request.tp,
        pp=request.pp,
        dp=request.dp,
        dcp=request.dcp,
        context=request.context,
        concurrency=request.concurrency,
        weights=request.weights,
        kv_dtype=request.kv_dtype,
        dtype=request.dtype,
        kv_budget=request.kv_budget,
        images=request.images,
        image_size=request.image_size,
        image_tokens=request.image_tokens,
        offline=request.offline,
    )
    _report(context, comparison, wanted, output)
    return _exit_code(comparison)


def _exit_code(comparison: EngineComparison) -> int:
    verdicts = {one.verdict for one in comparison.engines}
    if "fits" in verdicts:
        return 0
    return 1 if "does_not_fit" in verdicts else 4


def _report(
    context: typer.Context, comparison: EngineComparison, wanted: Format, output: Path | None
) -> None:
    from kvplan.cli import terminal
    from kvplan.cli.invocation import invocation_of
    from kvplan.cli.output import write
    from kvplan.reports.clean import clean
    from kvplan.reports.engines_rows import headline
    from kvplan.reports.render_engines import render_engines

    to_file = output is not None and str(output) != "-"
    look = terminal.paper() if to_file else terminal.terminal(terminal.NARROWEST_PLAN)
    text = render_engines(
        comparison, wanted, width=look.width, color=look.color, ascii_only=look.ascii_only
    )
    write(text, output)
    if to_file or wanted == "csv":
        invocation_of(context).remark(clean(headline(comparison)))
