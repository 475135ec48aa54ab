"""The sheet of yellow cells: what a reader may change, and what a cell accepts."""

from __future__ import annotations

from typing import Any, NamedTuple

from kvplan.fit_prices import HOURS_PER_MONTH
from kvplan.plan_book import PlanBook
from kvplan.reports.workbook.money import gpus_for, rent
from kvplan.reports.workbook.sheet import Book, Formula, Sheet, Style, Value, judge, label

UTILIZATION = "gpu_memory_utilization"
_ANY = {"validate": "decimal", "criteria": ">=", "value": 0}
_GROWTH = {"validate": "decimal", "criteria": ">=", "value": -1}
_PUE = {"validate": "decimal", "criteria": ">=", "value": 1}
_SHARE = {"validate": "decimal", "criteria": "between", "minimum": 0, "maximum": 1}


_USED = "Share of the held requests that are running, on average over the hours paid for."


class Yellow(NamedTuple):
    """A cell that a reader may change.

    Attributes:
        accepted: What it accepts, as XlsxWriter's data validation says it.
    """

    name: str
    value: Value
    unit: str
    what: str
    style: Style
    accepted: dict[str, Any]


def write(book: Book, plans: PlanBook, *, live_budget: bool) -> Sheet:
    """Writes the sheet; every value gets the name that formulas call it by.

    Args:
        book: The workbook.
        plans: The plan.
        live_budget: Whether the budget can be worked out in the sheet, so that the engine's share
            of the memory is an input too.
    """
    sheet = book.sheet("Inputs", (34, 18, 18, 78), pages=1)
    plan = plans.plan
    sheet.title(
        f"{plan.model.id} on {plan.gpu.id}, {plan.engine.name} {plan.engine.version}",
        "Change the yellow cells: requests, GPUs and money follow, without kvplan.",
    )
    sheet.head("Input", "Value", "Unit", "What it is", right=(1,))
    _load(sheet, plans)
    _traffic(sheet, plans)
    if live_budget:
        share = plan.engine.options[UTILIZATION]
        what = "Share of the GPU's memory that the engine may use."
        _yellow(sheet, Yellow(UTILIZATION, share, "share of 1", what, "number", _SHARE))
    sheet.row += 1
    sheet.head("Money", "Value", "Unit", "What it is", right=(1,))
    _money(sheet, plans)
    sheet.row += 1
    sheet.head("What follows", "Value", "Unit", "What it is", right=(1,))
    _answers(sheet, plans)
    return sheet


def _answers(sheet: Sheet, plans: PlanBook) -> None:
    """The answers of the other sheets, beside the cells that change them."""
    capacity, economics = plans.plan.capacity, plans.economics
    held, asked = capacity.requests if capacity else 0, plans.concurrency
    gpus = gpus_for(plans, "concurrency", asked).value
    month = rent(plans, "gpus", plans.plan.gpu.count)
    needed = rent(plans, "gpus_needed", gpus)
    verdict = "fits" if held >= max(1, asked) else "does not fit"
    money = f"{economics.currency} a month"
    rows: tuple[tuple[str, Formula, str, str, Style], ...] = (
        ("Verdict", Formula("verdict", verdict), "", "Whether so many are held at once.", "answer"),
        ("Requests held", Formula("requests", held), "requests", "By the GPUs above.", "count"),
        ("GPUs needed", Formula("gpus_needed", gpus), "GPUs", "For the requests above.", "count"),
        ("These GPUs cost", month, money, "Without power; the sheet Costs has it.", "money"),
        ("The needed GPUs cost", needed, money, "Likewise.", "money"),
    )
    for title, value, unit, what, style in rows:
        sheet.put(0, title, "bold")
        cell = sheet.put(1, value, style)
        if title == "Verdict":
            judge(sheet, cell)
        sheet.put(2, unit, "unit")
        sheet.put(3, what, "note")
        sheet.row += 1


def _load(sheet: Sheet, plans: PlanBook) -> None:
    accepted, note = _lengths(plans)
    context = plans.plan.workload.context
    what = f"Tokens a request. {note}"
    _yellow(sheet, Yellow("context", context, "tokens", what, "count", accepted))
    whole = {"validate": "integer", "criteria": ">=", "value": 0}
    what = "Requests at once."
    if plans.plan.workload.concurrency is None:
        what = "Requests at once. None were asked for: these are all that fit."
    asked = plans.concurrency
    _yellow(sheet, Yellow("concurrency", asked, "requests", what, "count", whole))
    unit = plans.unit_gpus
    what = f"GPUs in all. They are used in groups of {unit}." if unit > 1 else "GPUs in all."
    if plans.shares_experts:
        what += " Copies of the plan; one deployment over more GPUs shares its experts: plan it."
    _yellow(sheet, Yellow("gpus", plans.plan.gpu.count, "GPUs", what, "count", whole))


def _traffic(sheet: Sheet, plans: PlanBook) -> None:
    if plans.traffic is None or plans.traffic.most_a_replica is None:
        return
    what = "Times the traffic that was given: 2 is twice as much. See the sheet Traffic."
    _yellow(sheet, Yellow("traffic_factor", 1, "factor", what, "number", _ANY))


def _lengths(plans: PlanBook) -> tuple[dict[str, Any], str]:
    """What the cell of the length accepts, and why."""
    rule = plans.rule
    if rule is not None:
        limits = {"minimum": rule.lowest, "maximum": rule.highest}
        note = f"From {rule.lowest:,} to {rule.highest:,}: there the sheet is the engine's answer."
        return {"validate": "integer", "criteria": "between", **limits}, note
    lengths = [rung.context for rung in plans.rungs]
    note = "One of the list: of these lengths the engine's answers stand on the sheet Capacity."
    return {"validate": "list", "source": lengths}, note


def _money(sheet: Sheet, plans: PlanBook) -> None:
    money = plans.economics
    what = "No price is known: enter yours; until then nothing is counted."
    if money.price_per_gpu_hour is not None:
        what = f"Price of a GPU: {money.source}."
    unit, price = f"{money.currency} an hour", money.price_per_gpu_hour
    watts = "Of a GPU: not known; enter yours where you pay for power."
    if money.power_watts:
        watts = f"Of a GPU at most: {money.power_source}."
    free = "0 where the price of a GPU has it in it, as clouds' prices do."
    for each in (
        Yellow("price_per_gpu_hour", price, unit, what, "money", _ANY),
        Yellow("hours_per_month", HOURS_PER_MONTH, "hours", "24 × 365 / 12.", "count", _ANY),
        Yellow("price_change_per_year", 0, "share of 1", "Change of the price.", "share", _GROWTH),
        Yellow("paid_share", 1, "share of 1", "Share of them that is paid for.", "share", _SHARE),
        Yellow("growth_per_year", 0, "share of 1", "Growth of requests at once.", "share", _GROWTH),
        Yellow("utilization", 1, "share of 1", _USED, "share", _SHARE),
        Yellow("power_watts", money.power_watts or 0, "watts", watts, "count", _ANY),
        Yellow("power_price", 0, f"{money.currency} a kWh", free, "money", _ANY),
        Yellow("power_overhead", 1, "factor", "Watts drawn for one (PUE).", "number", _PUE),
    ):
        _yellow(sheet, each)


def _yellow(sheet: Sheet, cell: Yellow) -> None:
    sheet.put(0, label(cell.name))
    sheet.put(1, cell.value, cell.style, name=cell.name, yellow=True)
    sheet.put(2, cell.unit, "unit")
    sheet.put(3, cell.what, "note")
    error = {"error_title": cell.name, "error_message": cell.what[:200], "ignore_blank": True}
    sheet.page.data_validation(sheet.row, 1, sheet.row, 1, {**cell.accepted, **error})
    sheet.row += 1
