"""GPUs for a load and what they cost: the cell's formula beside what it gives now."""

from __future__ import annotations

from kvplan.fit_prices import HOURS_PER_MONTH
from kvplan.plan_book import PlanBook
from kvplan.reports.workbook.sheet import Formula, Value

NO_PRICE = "no price"
NONE = "none are enough"


def held_by_one(plans: PlanBook) -> int:
    """Requests that the smallest deployment holds."""
    held = plans.plan.capacity.requests if plans.plan.capacity else 0
    return held * plans.unit_gpus // plans.plan.gpu.count


def gpus_for(plans: PlanBook, cell: str, requests: int) -> Formula:
    """GPUs that hold the requests in a cell."""
    each = held_by_one(plans)
    value: Value = -(-requests // each) * plans.unit_gpus if each else NONE
    whole = f"-INT(-{cell}/requests_per_deployment)*gpus_per_deployment"
    return Formula(f'IF(requests_per_deployment=0,"{NONE}",{whole})', value)


def rent(plans: PlanBook, cell: str, gpus: Value, months: int = 1, change: str = "") -> Formula:
    """What the GPUs in a cell cost in so many months, to the cent.

    ``change`` is a factor of the price that a formula has besides, 1 as the file is written.
    """
    hours = "hours_per_month" if months == 1 else f"hours_per_month*{months}"
    cost = f"ROUND({cell}*price_per_gpu_hour{change}*{hours}*paid_share,2)"
    price = plans.economics.price_per_gpu_hour
    value: Value = NONE
    if isinstance(gpus, int):
        value = round(gpus * (price or 0) * HOURS_PER_MONTH * months, 2)
    return priced(plans, f'IF(ISNUMBER({cell}),{cost},"{NONE}")', value)


def priced(plans: PlanBook, formula: str, value: Value) -> Formula:
    """A cell of money: a word where no price is known."""
    known = plans.economics.price_per_gpu_hour is not None
    cell = f'IF(ISBLANK(price_per_gpu_hour),"{NO_PRICE}",{formula})'
    return Formula(cell, value if known else NO_PRICE)
