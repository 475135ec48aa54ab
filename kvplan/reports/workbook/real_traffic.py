"""Real traffic on the sheet Traffic: the day, the curve of its risk, and what more of it takes.

How likely so many requests hold too much is an algorithm: those are numbers. How many replicas the
busiest hour needs follows from the mean that one replica holds at the chosen risk, and that is a
formula: the sheet answers what happens if traffic doubles.
"""

from __future__ import annotations

from kvplan.plan_book import PlanBook, RealTraffic
from kvplan.reports.section import percent
from kvplan.reports.traffic_rows import headline, sections
from kvplan.reports.workbook import charts
from kvplan.reports.workbook.money import NONE, rent
from kvplan.reports.workbook.sheet import Formula, Sheet, Style, Value, judge, label
from kvplan.traffic_plan import HourOfDay, LoadOnPools

_LEAST_SHOWN = 1e-5
# Rows that the chart of the day shows better.
_DRAWN = ("requests at once, 0 to 23 h",)


def write(sheet: Sheet, plans: PlanBook, traffic: RealTraffic) -> None:
    """Writes it from the sheet's next row on."""
    sheet.title(f"Traffic: {traffic.plan.traffic}", headline(traffic.plan))
    _said(sheet, traffic)
    load = traffic.plan.load
    if load is not None:
        _needed(sheet, plans, traffic, load)
        _day(sheet, traffic, load)
    _curve(sheet, traffic)


def _said(sheet: Sheet, traffic: RealTraffic) -> None:
    for section in sections(traffic.plan):
        sheet.head(section.title, "", "", "", "", "")
        for name, value in section.rows:
            if name not in _DRAWN:
                sheet.put(0, name, "wrapped")
                sheet.across(1, value)
                sheet.row += 1
        sheet.row += 1
    sheet.head("To know", "", "", "", "", "")
    for reason in traffic.plan.reasons:
        sheet.put(0, reason.code)
        sheet.across(1, f"{reason.message} {reason.hint or ''}".strip())
        sheet.row += 1
    for text in traffic.plan.assumed:
        sheet.put(0, "assumed")
        sheet.across(1, text)
        sheet.row += 1
    sheet.row += 1


def _put(
    sheet: Sheet, name: str, value: Value | Formula, note: str, style: Style = "count"
) -> None:
    sheet.put(0, label(name))
    sheet.put(1, value, style, name=name)
    sheet.across(2, note, "note")
    sheet.row += 1


def _needed(sheet: Sheet, plans: PlanBook, traffic: RealTraffic, load: LoadOnPools) -> None:
    sheet.head("The busiest hour", "Value", "How it is found", "", "", "", right=(1,))
    at_risk = f"at a risk of {percent(traffic.plan.risk)}"
    each, whole = traffic.most_a_replica, _deployments(plans, load)
    gpus: Value = NONE if whole is None else whole * plans.unit_gpus
    peak = load.peak_concurrent
    if each is None:
        _put(sheet, "traffic_peak", peak, "requests at once on average, as given", "tenth")
        _put(sheet, "traffic_gpus_needed", gpus, f"{at_risk}, worked out by kvplan")
    else:
        note = f"requests at once on average that a replica holds {at_risk}: worked out by kvplan"
        _put(sheet, "traffic_most_a_replica", each, note, "tenth")
        most = f"traffic_most_a_replica*{plans.unit_replicas}*deployments"
        held = Formula(most, each * load.replicas)
        _put(sheet, "traffic_most", held, "the same of all GPUs of the sheet Inputs", "tenth")
        times = Formula(f"{peak!r}*traffic_factor", peak)
        _put(sheet, "traffic_peak", times, "requests at once on average; follows Inputs", "tenth")
        needed = f"-INT(-traffic_peak/(traffic_most_a_replica*{plans.unit_replicas}))"
        formula = f'IF(traffic_most_a_replica=0,"{NONE}",{needed}*gpus_per_deployment)'
        _put(sheet, "traffic_gpus_needed", Formula(formula, gpus), f"GPUs that hold it {at_risk}")
    cost = rent(plans, "traffic_gpus_needed", gpus)
    _put(sheet, "traffic_cost_per_month", cost, "their price", "money")
    sheet.row += 1


def _deployments(plans: PlanBook, load: LoadOnPools) -> int | None:
    if load.replicas_needed is None:
        return None
    return -(-load.replicas_needed // plans.unit_replicas)


def _day(sheet: Sheet, traffic: RealTraffic, load: LoadOnPools) -> None:
    columns = ("Hour", "Requests a second", "Requests at once", "Enough?", "Risk as planned")
    sheet.head(*columns, right=(1, 2, 4))
    first = sheet.row
    for hour in load.hours:
        _hour(sheet, traffic, hour)
        sheet.row += 1
    chart = sheet.book.file.add_chart({"type": "column"})
    chart.add_series(
        {
            "name": "Requests at once, on average",
            "categories": f"={sheet.below(0, first, sheet.row - 1)}",
            "values": f"={sheet.below(2, first, sheet.row - 1)}",
            "fill": {"color": charts.BLUE},
            "gap": 30,
        }
    )
    chart.set_x_axis(charts.axis("hour of the day", grid=False))
    chart.set_y_axis(charts.axis("requests at once", more={"min": 0, "num_format": "#,##0"}))
    charts.finish(chart, "The day", size=(560, 300))
    sheet.page.insert_chart(first - 1, 6, chart)
    sheet.row += 1


def _hour(sheet: Sheet, traffic: RealTraffic, hour: HourOfDay) -> None:
    sheet.put(0, hour.hour, "year")
    live = traffic.most_a_replica is not None
    factor = "*traffic_factor" if live else ""
    sheet.put(1, Formula(f"{hour.rate_per_s!r}{factor}", hour.rate_per_s), "number")
    at_once = sheet.put(2, Formula(f"{hour.concurrent!r}{factor}", hour.concurrent), "tenth")
    enough = "yes" if hour.risk <= traffic.plan.risk else "no"
    if live:
        # A hair more, since the most that is held was found by halving.
        rule = f'IF({at_once}<=traffic_most*1.000001,"yes","no")'
        judge(sheet, sheet.put(3, Formula(rule, enough), "unit"))
    else:
        judge(sheet, sheet.put(3, enough, "unit"))
    sheet.put(4, hour.risk, "risk")


def _curve(sheet: Sheet, traffic: RealTraffic) -> None:
    if not traffic.curve:
        return
    columns = ("Requests at once", "Risk", "With the largest pool", "With the smallest pool")
    sheet.head(*columns, right=(0, 1, 2, 3))
    first = sheet.row
    for point in traffic.curve:
        sheet.put(0, point.requests, "tenth")
        for column, risk in enumerate((point.risk, point.least, point.most), 1):
            sheet.put(column, risk, "risk")
        sheet.row += 1
    chart = sheet.book.file.add_chart({"type": "scatter", "subtype": "straight"})
    looks = ((1, "as planned", charts.BLUE), (2, "largest pool", charts.GREEN),
             (3, "smallest pool", charts.RED))  # fmt: skip
    for column, name, color in looks:
        if column > 1 and traffic.curve[0].least is None:
            continue
        line = {"color": color, "width": 2.25 if column == 1 else 1}
        if column > 1:
            line["dash_type"] = "dash"
        chart.add_series(
            {
                "name": name,
                "categories": f"={sheet.below(0, first, sheet.row - 1)}",
                "values": f"={sheet.below(column, first, sheet.row - 1)}",
                "line": line,
            }
        )
    chart.set_x_axis(charts.axis("requests at once", grid=False, more={"num_format": "#,##0"}))
    up = {"log_base": 10, "min": _LEAST_SHOWN, "max": 1, "num_format": "0.####%"}
    chart.set_y_axis(charts.axis("share of the time", more=up))
    title = "How often there is too little memory"
    charts.finish(chart, title, size=(560, 340), legend=True)
    sheet.page.insert_chart(first - 1, 6, chart)
    sheet.row = max(sheet.row, first + 18) + 1
