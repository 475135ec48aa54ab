"""Requests, GPUs needed and the verdict, from the ledger and the inputs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from kvplan.plan import Capacity, KvPart
from kvplan.plan_book import GroupRule, PlanBook, PoolRule, RequestRule
from kvplan.reports.workbook import charts
from kvplan.reports.workbook.budget import LiveBudget
from kvplan.reports.workbook.excel import cell_name, in_cells
from kvplan.reports.workbook.ledger_sheet import input_cell
from kvplan.reports.workbook.money import gpus_for, held_by_one
from kvplan.reports.workbook.sheet import Book, Formula, Sheet, Style, Value, judge, label


def write(book: Book, plans: PlanBook, budget: LiveBudget | None) -> None:
    """Writes the sheet."""
    plan = plans.plan
    if plan.capacity is None or plan.kv is None:
        return
    sheet = book.sheet("Capacity", (34, 20, 88), pages=1)
    sheet.title("How many requests fit", "Per replica, unless it says deployment.")
    sheet.head("Figure", "Value", "How it is found", right=(1,))
    _pool(sheet, plan.capacity, plan.kv, budget)
    _request(sheet, plans)
    _deployment(sheet, plans)
    sheet.row += 1
    _as_logged(sheet, plan.capacity)
    sheet.row += 1
    _curve(sheet, plans)


def _put(
    sheet: Sheet, name: str, value: Value | Formula, note: str, style: Style = "count"
) -> None:
    sheet.put(0, label(name))
    cell = sheet.put(1, value, style, name=name)
    if name == "verdict":
        judge(sheet, cell)
    sheet.put(2, note, "note")
    sheet.row += 1


def _pool(sheet: Sheet, capacity: Capacity, kv: KvPart, budget: LiveBudget | None) -> None:
    note = "a page of every layer: found by the engine's grouping of layers, not by this sheet"
    _put(sheet, "bytes_per_block", capacity.bytes_per_block, note)
    if budget is None:
        _put(sheet, "blocks", capacity.blocks, "worked out by kvplan")
        return
    cells = {name: input_cell(budget.rest, name) for name in budget.rest.inputs}
    formula = in_cells(budget.rest.formula, {**cells, budget.cache: "0"})
    _put(sheet, "kv_budget", Formula(formula, kv.budget_bytes), "what the ledger leaves: bytes")
    _put(
        sheet,
        "blocks",
        Formula("MAX(0,INT(kv_budget/bytes_per_block))", capacity.blocks),
        "whole blocks in it",
    )
    for end, limit in (("low", kv.budget_low), ("high", kv.budget_high)):
        away = (limit or 0) - kv.budget_bytes
        value = max(0, (limit or 0) // capacity.bytes_per_block)
        formula = f"MAX(0,INT((kv_budget+({away}))/bytes_per_block))"
        note = f"the same at the {end} end of the range of what is not KV cache"
        _put(sheet, f"blocks_{end}", Formula(formula, value), note)


def _request(sheet: Sheet, plans: PlanBook) -> None:
    rule, context = plans.rule, plans.plan.workload.context or 1
    if rule is None:
        _looked_up(sheet, plans)
        return
    _put(sheet, "most_requests", rule.sequences, "the engine's own limit on requests")
    for pool in rule.pools:
        _pool_units(sheet, plans, pool)
    for pool in rule.pools:
        name = _units_name(rule, pool)
        units = Formula(_units(pool, "context"), pool.request_units(context))
        _put(sheet, name, units, "; ".join(_said(pool)))
    held = Formula(_held(sheet, rule, "context", ""), rule.requests(context))
    _put(sheet, "requests_per_replica", held, "whole requests of a replica; all limits bind")
    for end, value in zip(("low", "high"), rule.range(context), strict=True):
        formula = Formula(_held(sheet, rule, "context", f"_{end}"), value)
        _put(sheet, f"requests_{end}", formula, f"the same at the {end} end of the pool's range")


def _pool_units(sheet: Sheet, plans: PlanBook, pool: PoolRule) -> None:
    """The cells of a pool's units, unless the blocks above are they."""
    if plans.rule is not None and _is_blocks(sheet, plans.rule):
        return
    ends = (("", pool.units), ("_low", pool.low), ("_high", pool.high))
    for end, value in ends:
        name = cell_name("pool", pool.name, "units") + end
        _put(sheet, name, value, "worked out by kvplan")


def _is_blocks(sheet: Sheet, rule: RequestRule) -> bool:
    return len(rule.pools) == 1 and "blocks_low" in sheet.book.names


def _units_name(rule: RequestRule, pool: PoolRule) -> str:
    if len(rule.pools) == 1:
        return "units_per_request"
    return cell_name("pool", pool.name, "units_per_request")


def _held(sheet: Sheet, rule: RequestRule, context: str, end: str) -> str:
    """The formula of the requests that a replica holds."""
    limits = ["most_requests"]
    for pool in rule.pools:
        cells = "blocks" if _is_blocks(sheet, rule) else cell_name("pool", pool.name, "units")
        free = f"MAX(0,{cells}{end}-{pool.held_back})" if pool.held_back else f"{cells}{end}"
        limits.append(f"INT({free}/({_units(pool, context)}))")
    return f"MIN({','.join(limits)})"


def _units(pool: PoolRule, context: str) -> str:
    """The formula of the units that a request takes; groups that are alike are counted once."""
    alike = Counter(replace(group, name="") for group in pool.groups)
    return "+".join(
        f"{count}*{_group(group, context)}" if count > 1 else _group(group, context)
        for group, count in alike.items()
    )


def _group(group: GroupRule, context: str) -> str:
    if group.tokens_per_unit is None:
        return str(group.fixed)
    grown = f"(-INT(-{context}/{group.tokens_per_unit})+{group.fixed})"
    return grown if group.most is None else f"MIN({group.most},{grown})"


def _said(pool: PoolRule) -> list[str]:
    said: list[str] = []
    for group, count in Counter(pool.groups).items():
        times = f"{count} groups: " if count > 1 else ""
        if group.tokens_per_unit is None:
            said.append(f"{times}{group.name}: {group.fixed}, whatever the length")
            continue
        most = f", at most {group.most:,}" if group.most is not None else ""
        fixed = f" and {group.fixed} more" if group.fixed else ""
        said.append(f"{times}{group.name}: one for {group.tokens_per_unit} tokens{fixed}{most}")
    return said


def _looked_up(sheet: Sheet, plans: PlanBook) -> None:
    """Requests of the lengths that were planned, found in the table below."""
    held = plans.plan.capacity.requests // plans.plan.parallelism.dp if plans.plan.capacity else 0
    formula = Formula("INDEX(curve_requests,MATCH(context,curve_context,0))", held)
    note = "found in the table below: the engine's answer for that length, worked out by kvplan"
    _put(sheet, "requests_per_replica", formula, note)


def _deployment(sheet: Sheet, plans: PlanBook) -> None:
    plan, unit = plans.plan, plans.unit_gpus
    held = plan.capacity.requests if plan.capacity else 0
    each = held_by_one(plans)
    asked = plans.concurrency
    _put(sheet, "gpus_per_deployment", unit, "GPUs that can only be used together")
    _put(sheet, "deployments", Formula("INT(gpus/gpus_per_deployment)", plan.gpu.count // unit), "")
    idle = Formula("gpus-deployments*gpus_per_deployment", 0)
    _put(sheet, "idle_gpus", idle, "GPUs too few for one more")
    each_formula = Formula(f"requests_per_replica*{plans.unit_replicas}", each)
    _put(sheet, "requests_per_deployment", each_formula, "")
    requests = Formula("deployments*requests_per_deployment", held)
    _put(sheet, "requests", requests, "whole requests that all GPUs hold at once")
    verdict = "fits" if held >= max(1, asked) else "does not fit"
    _put(
        sheet,
        "verdict",
        Formula('IF(requests>=MAX(1,concurrency),"fits","does not fit")', verdict),
        "whether the requests asked for are held at once",
        "answer",
    )
    needed = gpus_for(plans, "concurrency", asked)
    _put(sheet, "gpus_needed", needed, "GPUs that hold the requests asked for")


def _as_logged(sheet: Sheet, capacity: Capacity) -> None:
    """What the engine prints for the planned length: algorithms of its own, so plain numbers."""
    sheet.head("For the planned length", "Value", "These do not follow the inputs", right=(1,))
    for name in ("tokens", "tokens_low", "tokens_high", "max_concurrency", "max_context"):
        value = getattr(capacity, name)
        if value is not None:
            style: Style = "number" if isinstance(value, float) else "count"
            _put(sheet, f"planned_{name}", value, _LOGGED[name], style)


_MARKER = {
    "type": "circle",
    "size": 5,
    "fill": {"color": charts.BLUE},
    "border": {"color": charts.BLUE},
}
_LOGGED = {
    "tokens": "tokens in the pool, as the engine logs them",
    "tokens_low": "at the low end of the range of what is not KV cache",
    "tokens_high": "at the high end",
    "max_concurrency": "as the engine logs it",
    "max_context": "the longest single request",
}


def _power(tokens: int, *, up: bool) -> int:
    """The power of two at or beside a length: where an axis may end."""
    power = 1 << max(0, tokens.bit_length() - 1)
    return power * 2 if up and power < tokens else power


def _curve(sheet: Sheet, plans: PlanBook) -> None:
    """Requests for each length, and their picture."""
    sheet.head("Tokens a request", "Requests a replica", right=(0, 1))
    first = sheet.row
    for rung in plans.rungs:
        cell = sheet.put(0, rung.context, "count")
        rule = plans.rule
        if rule is not None and rule.lowest <= rung.context <= rule.highest:
            held: Value | Formula = Formula(_held(sheet, rule, cell, ""), rung.requests)
        else:
            held = rung.requests
        sheet.put(1, held, "count")
        sheet.row += 1
    if not plans.rungs:
        return
    contexts, requests = (sheet.below(column, first, sheet.row - 1) for column in (0, 1))
    sheet.book.define("curve_context", contexts)
    sheet.book.define("curve_requests", requests)
    chart = sheet.book.file.add_chart({"type": "scatter", "subtype": "straight_with_markers"})
    chart.add_series(
        {
            "name": "Requests a replica holds",
            "categories": f"={contexts}",
            "values": f"={requests}",
            "line": {"color": charts.BLUE, "width": 2.25},
            "marker": _MARKER,
        }
    )
    shortest, longest = plans.rungs[0].context, plans.rungs[-1].context
    ends = {"min": _power(shortest, up=False), "max": _power(longest, up=True)}
    across = {"log_base": 2, "major_unit": 2, "num_format": "#,##0", **ends}
    chart.set_x_axis(charts.axis("tokens a request", grid=False, more=across))
    up = {"log_base": 10, "num_format": "#,##0"}
    chart.set_y_axis(charts.axis("requests a replica", more=up))
    title = "Requests a replica holds at once, by their length"
    charts.finish(chart, title, size=(600, 320))
    sheet.page.insert_chart(first - 1, 2, chart)
