"""The page as text, from its template. Everything is escaped there, whatever it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvplan.errors import UsageError
from kvplan.fit_prices import HOURS_PER_MONTH
from kvplan.plan import Plan
from kvplan.plan_book import Alternative, PlanBook
from kvplan.reports.capacity_rows import capacity_scopes
from kvplan.reports.clean import clean
from kvplan.reports.figures import assumed_settings, byte_range, filled_in, share
from kvplan.reports.headline import headline, subject
from kvplan.reports.ledger_rows import ledger_rows
from kvplan.reports.page import pictures, risk_picture
from kvplan.reports.page.glossary import GLOSSARY
from kvplan.reports.section import percent
from kvplan.reports.traffic_rows import headline as traffic_headline
from kvplan.reports.traffic_rows import sections
from kvplan.units import format_bytes, format_count

if TYPE_CHECKING:
    from jinja2 import Environment

_VERDICTS = {"fits": "Fits", "does_not_fit": "Does not fit", "refused": "Refused"}


def page(plans: PlanBook) -> str:
    """One HTML document that needs nothing else.

    Raises:
        UsageError: Jinja2 is not installed.
    """
    plan = plans.plan
    template = environment().get_template("plan.html.j2")
    return template.render(
        plan=plan,
        verdict=_VERDICTS[plan.verdict],
        headline=headline(plan),
        subject=subject(plan),
        bar=pictures.memory_map(plans),
        curve=pictures.curve(plans),
        load=pictures.load(plans),
        traffic=_traffic(plans),
        width=pictures.WIDTH,
        curve_height=pictures.CURVE_HEIGHT,
        load_height=pictures.LOAD_HEIGHT,
        rungs=plans.rungs,
        scopes=capacity_scopes(plan),
        rows=ledger_rows(plan.ledger),
        total=sum(line.bytes for line in plan.ledger),
        assumed=assumed_settings(plan.engine),
        options=remedies(plans),
        currency=plans.economics.currency,
        price=plans.economics.price_per_gpu_hour,
        glossary=GLOSSARY,
    )


def _traffic(plans: PlanBook) -> dict[str, object] | None:
    """What the page says of real traffic."""
    real = plans.traffic
    if real is None:
        return None
    return {
        "name": real.plan.traffic,
        "headline": traffic_headline(real.plan),
        "verdict": real.plan.verdict,
        "curve": risk_picture.risk_curve(real),
        "height": risk_picture.HEIGHT,
        "day": risk_picture.day(real),
        "day_height": risk_picture.DAY_HEIGHT,
        "hours": real.plan.load.hours if real.plan.load else (),
        "points": real.curve,
        "sections": tuple(sections(real.plan)),
        "notes": (*(reason.message for reason in real.plan.reasons), *real.plan.assumed),
    }


def remedies(plans: PlanBook) -> tuple[dict[str, str], ...]:
    """The plan and each change to it, as the table's cells."""
    rows: list[dict[str, str]] = []
    for option in (Alternative("As planned", "", plans.plan), *plans.alternatives):
        held, plan = option.requests, option.plan
        rows.append(
            {
                "action": option.action,
                "cost": option.cost,
                "requests": format_count(held),
                "enough": "yes" if held >= max(1, plans.concurrency) else "no",
                "gpus": format_count(plan.gpu.count),
                "month": monthly(plans, plan),
            }
        )
    return tuple(rows)


def monthly(plans: PlanBook, plan: Plan) -> str:
    """What its GPUs cost a month; empty where no price is known."""
    price = plans.economics.price_per_gpu_hour
    if price is None:
        return ""
    if plan.gpu.id != plans.plan.gpu.id:
        return "another price"
    return f"{plan.gpu.count * price * HOURS_PER_MONTH:,.0f}"


def environment() -> Environment:
    """Jinja2 with everything escaped and control characters taken out.

    Raises:
        UsageError: it is not installed.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  an extra
    except ImportError as error:
        raise UsageError(
            "Pages need Jinja2, which is not installed.",
            hint="pip install 'kvplan-sizer[html]'",
        ) from error
    environment = Environment(
        loader=PackageLoader("kvplan.reports.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: clean(value) if type(value) is str else value,
    )
    environment.filters |= {
        "bytes": format_bytes,
        "count": format_count,
        "interval": byte_range,
        "share": share,
        "percent": percent,
        "filled": filled_in,
    }
    return environment
