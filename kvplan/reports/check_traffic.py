"""What real traffic does to a scenario's plan, in a sentence and in a cell."""

from __future__ import annotations

from kvplan.check_result import ScenarioResult, TrafficResult
from kvplan.reports.traffic_rows import headline, percent


def traffic_line(traffic: TrafficResult) -> str:
    """The answer in one sentence."""
    if traffic.plan.load is not None or traffic.overload_risk is None:
        return headline(traffic.plan)
    said = f"too little memory {percent(traffic.overload_risk)} of the time"
    needed, start = traffic.replicas_needed, headline(traffic.plan).rstrip(".")
    enough = needed is None or needed <= traffic.plan.parallelism.dp
    more = "" if enough else f"; {needed:,} replicas would do"
    return f"{start}; with those asked for there is {said}{more}."


def verdict_text(result: ScenarioResult) -> str:
    """The plan's verdict, and the traffic's where that is another."""
    verdict = result.verdict or "none"
    traffic = result.traffic
    if traffic is None or traffic.plan.verdict == verdict:
        return verdict
    return f"{verdict}; traffic {traffic.plan.verdict}"


def requests_text(result: ScenarioResult) -> str:
    """Requests held: of traffic at its risk, else of the planned length."""
    if result.traffic is not None:
        plan = result.traffic.plan
        return f"{plan.held.requests:,} at {percent(plan.risk)}"
    return "" if result.requests is None else f"{result.requests:,}"
