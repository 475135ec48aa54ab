"""A chat that fits all day and runs out at noon: three remedies, and what each costs.

    python examples/lunch_hour_costs.py [--pictures FOLDER]

One L40S serves conversations whose context grows. `kvplan.traffic_planner` judges every hour of
the day, `kvplan.simulator` plays the ninety minutes around noon for the deployment as it is and for
each remedy. Runs offline, from the bundled specs, in about half a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from kvplan.planning.simulate.recorder import Limits
from kvplan.planning.traffic.answer import Question
from kvplan.planning.traffic.traffic import Demand, Service, Traffic
from kvplan.reports.simulation_svg import simulation_svg
from kvplan.reports.sparkline import sparkline
from kvplan.reports.traffic_svg import traffic_svg
from kvplan.simulation import Simulation
from kvplan.simulator import TierMemory, deploy, simulate
from kvplan.traffic_plan import LoadOnPools, TrafficPlan
from kvplan.traffic_planner import plan_traffic
from kvplan.workloads.arrivals import Arrivals, daily_profile
from kvplan.workloads.distributions import Fixed, Lognormal
from kvplan.workloads.generate import generate_sessions
from kvplan.workloads.requests import Request
from kvplan.workloads.sessions import Sessions

MODEL, GPU, CONTEXT = "meta-llama/Llama-3.1-8B-Instruct", "L40S-48GB", 32 * 1024
RISK, HOUR_S, HOURS = 0.001, 3600.0, 24

# US dollars an hour, on demand, us-east-1, 20 July 2026: aws/karpenter-provider-aws@1d927085,
# pkg/providers/pricing/zz_generated.pricing_aws.go. A snapshot, not an offer.
PRICES = {"g6e.xlarge": 1.861, "g6e.4xlarge": 3.00424}  # one L40S; 32 and 128 GiB of host memory

# What users are promised: the first token within 3 s, the next ones every 80 ms or faster.
PROMISE = Limits(first_token_s=3.0, between_tokens_s=0.08)
ENOUGH = 0.99

# Conversations that begin a second over the day, and how that moves from midnight on.
TALKS_PER_S, TURNS, SEED = 0.075, 6, 7
DAY = (4, 3, 2, 2, 2, 3, 6, 12, 22, 34, 42, 50, 60, 56, 46, 40, 36, 30, 24, 20, 16, 12, 8, 6)
PROFILE = daily_profile(tuple(float(weight) for weight in DAY))
TALK = Sessions(
    turns=Fixed(TURNS),
    message=Lognormal(400, 0.8),
    output=Lognormal(250, 0.6),
    think_s=60.0,
    first_tokens=3000,
    seconds_per_token=0.03,
)
NOON_STARTS_H, NOON_LASTS_S = 11.25, 5400.0


@dataclass(frozen=True, slots=True)
class Choice:
    """A deployment.

    Attributes:
        dollars: More a day than the deployment as it is.
        note: What one has to know.
        changes: Of its arguments.
        tiers: Memories behind its GPU.
    """

    name: str
    dollars: float
    note: str
    changes: dict[str, Any] = field(default_factory=dict)
    tiers: tuple[TierMemory, ...] = ()


def choices() -> tuple[Choice, ...]:
    """The deployment as it is, and three remedies."""
    replica, larger = PRICES["g6e.xlarge"], PRICES["g6e.4xlarge"] - PRICES["g6e.xlarge"]
    return (
        Choice("as it is", 0.0, "one g6e.xlarge"),
        Choice("FP8 cache", 0.0, "twice the tokens; test the answers first", {"kv_dtype": "fp8"}),
        Choice("96 GiB of host memory", larger * HOURS, "g6e.4xlarge in its place", tiers=(
            # PCIe 4 carries 31 GB/s one way; 25 of them are counted on here.
            TierMemory("host", 96 * 2**30, 25e9),
        )),
        Choice("a second replica", replica * HOURS, "all day; half the requests each", {"dp": 2}),
    )  # fmt: skip


def day(choice: Choice) -> TrafficPlan:
    """Every hour, at the speed that is promised."""
    question = Question(
        traffic=Traffic(TALK.pairs()),
        name="conversations of 6 turns",
        risk=RISK,
        service=Service(decode_tokens_per_s=1 / (PROMISE.between_tokens_s or 1)),
        demand=Demand(rate_per_s=TALKS_PER_S * TURNS, profile=PROFILE),
    )
    return plan_traffic(MODEL, GPU, question, context=CONTEXT, offline=True, **choice.changes)


def at_noon() -> Iterator[Request]:
    """What comes around noon; the same for everybody."""
    arrivals = Arrivals(TALKS_PER_S, profile=PROFILE, start_s=NOON_STARTS_H * HOUR_S)
    talks = generate_sessions(TALK, arrivals, seed=SEED, conversations=10_000)
    return takewhile(lambda request: request.arrival_s <= NOON_LASTS_S, talks)


def played(choice: Choice) -> Simulation:
    """The time around noon, step by step."""
    deployment = deploy(MODEL, GPU, context=CONTEXT, offline=True, **choice.changes)
    return simulate(deployment, at_noon(), tiers=choice.tiers, limits=PROMISE, seed=SEED)


def tell_day(load: LoadOnPools) -> None:
    """Prints what the day looks like."""
    busy = [hour.hour for hour in load.hours if hour.risk > RISK]
    bars = sparkline([h.concurrent for h in load.hours], load.peak_concurrent, width=HOURS)
    print(f"requests at once, 0 to 23 h  {bars}  up to {load.peak_concurrent:.0f}")
    print(f"too little memory            {load.risk:.2%} of the time at the day's mean rate")
    print(f"                             {load.peak_risk:.2%} in the busiest hour")
    print(
        f"hours above {RISK:.1%}             " + (f"{busy[0]} to {busy[-1]} h" if busy else "none")
    )


def tell_noon(choice: Choice, found: Simulation) -> None:
    """Prints one line of the comparison."""
    first, good = found.latency.first_token, found.throughput.good_share
    pool = sparkline([m.used for m in found.timeline], found.pool.blocks, width=20)
    late = "?" if first is None else f"{first.p95:7.1f} s"
    kept = "?" if good is None else f"{good:6.1%}"
    cost = f"+ ${choice.dollars:5.2f} a day"
    print(f"{choice.name:<22} {cost}  {late}  {kept}  {pool}  {choice.note}")


def tell_end(kept: list[Choice]) -> None:
    """Prints which choices keep the promise, the cheapest first."""
    print(f"\nThe promise is kept for {ENOUGH:.0%} of the requests by:")
    for choice in sorted(kept, key=lambda one: one.dollars):
        print(f"  {choice.name}, + ${choice.dollars:.2f} a day ({choice.note})")


def main() -> None:
    """Tells the story."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pictures", type=Path, help="a folder for SVG pictures")
    folder = parser.parse_args().pictures
    plan = day(choices()[0])
    if plan.load is None:
        raise SystemExit("There is no load.")
    tell_day(plan.load)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "day.svg").write_text(traffic_svg(plan), encoding="utf-8")
    print(f"\n{'Around noon':<22} {'price':<15}  {'p95 first':>9}  {'good':>6}  pool in use")
    kept: list[Choice] = []
    for choice in choices():
        found = played(choice)
        tell_noon(choice, found)
        if (found.throughput.good_share or 0.0) >= ENOUGH:
            kept.append(choice)
        if folder is not None:
            name = f"noon-{choice.name.replace(' ', '-').lower()}.svg"
            picture = simulation_svg(found, title=f"Noon, {choice.name}")
            (folder / name).write_text(picture, encoding="utf-8")
    tell_end(kept)


if __name__ == "__main__":
    main()
