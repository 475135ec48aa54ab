"""Money: a month of the deployment, and five years with growth. Nothing where no price is known."""

from __future__ import annotations

from kvplan.plan_book import PlanBook
from kvplan.reports.workbook.inputs import HOURS_PER_MONTH
from kvplan.reports.workbook.money import NONE, gpus_for, priced, rent
from kvplan.reports.workbook.sheet import Book, Formula, Sheet, Value, label

YEARS = 5


def write(book: Book, plans: PlanBook) -> None:
    """Writes the sheet."""
    currency = plans.economics.currency
    sheet = book.sheet("Costs", (34, 20, 20, 20, 20, 20))
    sheet.title("What it costs", f"In {currency}, to the cent. Prices are on the sheet Inputs.")
    sheet.head("Now", currency)
    _now(sheet, plans)
    sheet.row += 1
    _years(sheet, plans)


def _now(sheet: Sheet, plans: PlanBook) -> None:
    gpus, held = plans.plan.gpu.count, plans.plan.capacity.requests if plans.plan.capacity else 0
    month = round(gpus * (plans.economics.price_per_gpu_hour or 0) * HOURS_PER_MONTH, 2)
    formula = "ROUND(gpus*price_per_gpu_hour*hours_per_month*paid_share,2)"
    _put(sheet, "cost_per_month", priced(plans, formula, month))
    power = "ROUND(gpus*power_watts/1000*power_overhead*hours_per_month*power_price,2)"
    _put(sheet, "power_per_month", Formula(power, 0))
    each: Value = round(month / held, 2) if held else "none is held"
    formula = 'IF(requests=0,"none is held",ROUND((cost_per_month+power_per_month)/requests,2))'
    _put(sheet, "cost_per_request_held_per_month", priced(plans, formula, each))


def _put(sheet: Sheet, name: str, value: Formula) -> None:
    sheet.put(0, label(name))
    sheet.put(1, value, "money", name=name)
    sheet.row += 1


def _years(sheet: Sheet, plans: PlanBook) -> None:
    sheet.head("Year", "Requests at once", "GPUs", "Their cost", "Power", "In all")
    first = sheet.row
    costs = [_year(sheet, plans, year) for year in range(1, YEARS + 1)]
    last = sheet.row - 1
    whole = [cost for cost in costs if isinstance(cost, int | float)]
    sheet.put(0, "Sum", "bold")
    total = priced(plans, f"SUM({sheet.below(5, first, last)})", round(sum(whole), 2))
    sheet.put(5, total, "money", name="cost_of_all_years")
    sheet.row += 2
    _picture(sheet, first, last)


def _year(sheet: Sheet, plans: PlanBook, year: int) -> Value:
    """One row, and what it comes to: every year is like the first until a growth is entered."""
    cells = [sheet.reference(sheet.row, column) for column in range(6)]
    sheet.put(0, year, "count")
    # Rounded, so that 100 requests that grow by 10 % are 110 and not 111.
    load = f"-INT(-ROUND(concurrency*(1+growth_per_year)^{year - 1},6))"
    sheet.put(1, Formula(load, plans.concurrency), "count", name=f"year_{year}_concurrency")
    gpus = gpus_for(plans, cells[1], plans.concurrency)
    sheet.put(2, gpus, "count", name=f"year_{year}_gpus")
    cost = rent(plans, cells[2], gpus.value, months=12)
    sheet.put(3, cost, "money", name=f"year_{year}_rent")
    power = f"ROUND({cells[2]}*power_watts/1000*power_overhead*hours_per_month*12*power_price,2)"
    power = f"IF(ISNUMBER({cells[2]}),{power},0)"
    sheet.put(4, Formula(power, 0), "money", name=f"year_{year}_power")
    both = f'IF(ISNUMBER({cells[3]}),{cells[3]}+{cells[4]},"{NONE}")'
    whole = priced(plans, both, cost.value)
    sheet.put(5, whole, "money", name=f"year_{year}_cost")
    sheet.row += 1
    return whole.value


def _picture(sheet: Sheet, first: int, last: int) -> None:
    chart = sheet.book.file.add_chart({"type": "column", "subtype": "stacked"})
    for column, name, color in ((3, "GPUs", "#1F3A5F"), (4, "Power", "#BF9000")):
        chart.add_series(
            {
                "name": name,
                "categories": f"={sheet.below(0, first, last)}",
                "values": f"={sheet.below(column, first, last)}",
                "fill": {"color": color},
            }
        )
    chart.set_title({"name": "Cost a year"})
    chart.set_x_axis({"name": "year"})
    chart.set_size({"width": 640, "height": 300})
    sheet.page.insert_chart(sheet.row, 0, chart)
