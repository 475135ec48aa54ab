"""Money: a month of the deployment, and five years with growth. Nothing where no price is known."""

from __future__ import annotations

from kvplan.fit_prices import HOURS_PER_MONTH
from kvplan.plan_book import PlanBook
from kvplan.reports.workbook import charts
from kvplan.reports.workbook.money import NONE, gpus_for, priced, rent
from kvplan.reports.workbook.sheet import Book, Formula, Sheet, Value, label

YEARS = 5


def write(book: Book, plans: PlanBook) -> None:
    """Writes the sheet."""
    currency = plans.economics.currency
    sheet = book.sheet("Costs", (36, 20, 14, 20, 20, 20), pages=1)
    sheet.title("What it costs", f"In {currency}, to the cent. Prices are on the sheet Inputs.")
    sheet.head("Now", currency, right=(1,))
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
    hour: Value = each
    if isinstance(each, float):
        hour = round(month / held / HOURS_PER_MONTH, 4)
    used = "requests*utilization*hours_per_month*paid_share"
    formula = f'IF({used}=0,"none is used",ROUND((cost_per_month+power_per_month)/({used}),4))'
    sheet.put(0, label("cost_per_used_request_hour"))
    cell = priced(plans, formula, hour if held else "none is used")
    sheet.put(1, cell, "fine_money", name="cost_per_used_request_hour")
    sheet.row += 1


def _put(sheet: Sheet, name: str, value: Formula) -> None:
    sheet.put(0, label(name))
    sheet.put(1, value, "money", name=name)
    sheet.row += 1


def _years(sheet: Sheet, plans: PlanBook) -> None:
    columns = ("Year", "Requests at once", "GPUs needed", "GPUs cost", "Power costs", "In all")
    sheet.head(*columns, right=(1, 2, 3, 4, 5))
    first = sheet.row
    costs = [_year(sheet, plans, year) for year in range(1, YEARS + 1)]
    last = sheet.row - 1
    whole = [cost for cost in costs if isinstance(cost, int | float)]
    sheet.put(0, "Sum", "bold")
    total = priced(plans, f"SUM({sheet.below(5, first, last)})", round(sum(whole), 2))
    sheet.put(5, total, "money", name="cost_of_all_years")
    sheet.row += 2
    _picture(sheet, first, last, plans.economics.currency)


def _year(sheet: Sheet, plans: PlanBook, year: int) -> Value:
    """One row, and what it comes to: every year is like the first until a growth is entered."""
    cells = [sheet.reference(sheet.row, column) for column in range(6)]
    sheet.put(0, year, "year")
    # Rounded, so that 100 requests that grow by 10 % are 110 and not 111.
    load = f"-INT(-ROUND(concurrency*(1+growth_per_year)^{year - 1},6))"
    sheet.put(1, Formula(load, plans.concurrency), "count", name=f"year_{year}_concurrency")
    gpus = gpus_for(plans, cells[1], plans.concurrency)
    sheet.put(2, gpus, "count", name=f"year_{year}_gpus")
    change = f"*(1+price_change_per_year)^{year - 1}" if year > 1 else ""
    cost = rent(plans, cells[2], gpus.value, months=12, change=change)
    sheet.put(3, cost, "money", name=f"year_{year}_rent")
    power = f"ROUND({cells[2]}*power_watts/1000*power_overhead*hours_per_month*12*power_price,2)"
    power = f"IF(ISNUMBER({cells[2]}),{power},0)"
    sheet.put(4, Formula(power, 0), "money", name=f"year_{year}_power")
    both = f'IF(ISNUMBER({cells[3]}),{cells[3]}+{cells[4]},"{NONE}")'
    whole = priced(plans, both, cost.value)
    sheet.put(5, whole, "money", name=f"year_{year}_cost")
    sheet.row += 1
    return whole.value


def _picture(sheet: Sheet, first: int, last: int, currency: str) -> None:
    chart = sheet.book.file.add_chart({"type": "column", "subtype": "stacked"})
    for column, name, color in ((3, "GPUs", charts.BLUE), (4, "Power", charts.GOLD)):
        chart.add_series(
            {
                "name": name,
                "categories": f"={sheet.below(0, first, last)}",
                "values": f"={sheet.below(column, first, last)}",
                "fill": {"color": color},
                "gap": 80,
            }
        )
    chart.set_x_axis(charts.axis("year", grid=False))
    chart.set_y_axis(charts.axis(currency, more={"num_format": "#,##0", "min": 0}))
    charts.finish(chart, "Cost of each year", size=(720, 300), legend=True)
    sheet.page.insert_chart(sheet.row, 0, chart)
