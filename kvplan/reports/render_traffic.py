"""One entrance to all formats of a traffic plan; each is imported only when asked for."""

from __future__ import annotations

import csv
import io
import json
from typing import Literal

from kvplan.reports import traffic_rows
from kvplan.reports.clean import clean
from kvplan.traffic_plan import TrafficPlan

Format = Literal["text", "json", "csv", "markdown", "svg"]


def render_traffic(
    plan: TrafficPlan,
    format: Format,  # noqa: A002 - as `render` calls it
    *,
    width: int = 100,
    color: bool = False,
    ascii_only: bool = False,
) -> str:
    """The plan in one format, ending with a newline.

    Args:
        plan: What is reported.
        format: ``text``, ``json`` (`kvplan.traffic/1`), ``csv`` (a row an hour of the day, or one
            row without a load), ``markdown``, or ``svg``: a picture of the day.
        width: Columns of the text report.
        color: ANSI colours in the text report.
        ascii_only: No character beyond ASCII in the text report.
    """
    match format:
        case "text":
            from kvplan.reports.traffic_text import traffic_text  # noqa: PLC0415  only what is asked for

            return traffic_text(plan, width=width, color=color, ascii_only=ascii_only)
        case "json":
            dumped = plan.model_dump(mode="json", by_alias=True)
            return json.dumps(dumped, indent=2, allow_nan=False) + "\n"
        case "csv":
            return _csv(plan)
        case "markdown":
            return _markdown(plan)
        case "svg":
            from kvplan.reports.traffic_svg import traffic_svg  # noqa: PLC0415  only what is asked for

            return traffic_svg(plan)


def _csv(plan: TrafficPlan) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if plan.load is None:
        writer.writerow(("risk", "requests", "limited_by", "on_average", "at_longest"))
        held = plan.held
        writer.writerow(
            (plan.risk, held.requests, held.limited_by, held.on_average, held.at_longest)
        )
        return out.getvalue()
    writer.writerow(("hour", "rate_per_s", "concurrent", "risk"))
    writer.writerows((h.hour, h.rate_per_s, h.concurrent, h.risk) for h in plan.load.hours)
    return out.getvalue()


def _markdown(plan: TrafficPlan) -> str:
    lines = [f"**{_cell(traffic_rows.headline(plan))}**", ""]
    lines += [f"`{_cell(plan.model.id)}` on {plan.gpu.count} × {_cell(plan.gpu.id)}", ""]
    for section in traffic_rows.sections(plan):
        lines += [f"| {section.title} | |", "|---|---|"]
        lines += [f"| {_cell(label)} | {_cell(value)} |" for label, value in section.rows]
        lines.append("")
    lines += [f"- {_cell(reason.message)}" for reason in plan.reasons]
    lines += [f"- {_cell(text)}" for text in plan.assumed]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return clean(text).replace("|", "\\|").replace("\n", " ")
