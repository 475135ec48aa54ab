"""What a search for hardware found: the types that reports read. `kvplan.fit/1` is this, dumped."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from kvplan._version import __version__
from kvplan.fit_prices import HOURS_PER_MONTH
from kvplan.plan import Parallelism

Why = Literal[
    "refused",
    "weights",
    "request",
    "holds_too_few",
    "not_sold",
    "no_price",
    "over_budget",
    "misses_slo",
    "dominated",
]


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


class SpeedBounds(_Part):
    """No faster than this: what moving the plan's bytes and its arithmetic take at the least.

    Attributes:
        tpot_s: Seconds between two tokens of a request while all are decoded at their full length.
        ttft_s: Seconds until a prompt of the full length is computed, with nothing else running.
        tokens_per_s: Tokens that the deployment generates a second at that pace.
        limited_by: What a decoding step waits for: ``bandwidth`` or ``arithmetic``.
        batch: Requests of a step on one replica.
    """

    tpot_s: float
    ttft_s: float
    tokens_per_s: float
    limited_by: Literal["bandwidth", "arithmetic"]
    batch: int


class Bought(_Part):
    """What is paid for.

    Attributes:
        name: The machine's type, or the GPU's id.
        count: How many are bought, whole.
        gpus: GPUs in all of them.
        per_hour: Their price, or None: not known.
        date, source: Of price and shape.
    """

    name: str
    count: int
    gpus: int
    per_hour: float | None = None
    currency: str | None = None
    date: str | None = None
    region: str | None = None
    source: str


class FitPlan(_Part):
    """One configuration that holds what is asked.

    Attributes:
        rank: 1 is the best: the cheapest, then the fewest GPUs, then the most headroom.
        gpus: GPUs that are used.
        options: Engine options that belong to it.
        layout: ``tensor`` (plain), ``expert`` (experts whole on their ranks) or ``attention``
            (data-parallel attention besides).
        held: Requests that the deployment holds.
        headroom: Those beyond the asked ones, as a share of these.
        bought: What is paid for; None: no machine and no price were named.
        speed: None where the GPU's speed is not known.
        machines: Machines that one replica's pipeline stages lie on; where replicas share the
            weights of experts, machines of all of them.
        crawls: Its bounds are slower than this tool's own line (`kvplan.planning.fit.search`).
        frontier: No other is as good in price, GPUs, headroom, time a token, machines a replica
            and formats as they are, and better in one.
        remarks: What a buyer has to know, in words.
    """

    rank: int = 0
    gpu: str
    gpus: int
    engine: str
    version: str
    weights: str
    kv_dtype: str
    layout: str
    parallelism: Parallelism
    options: dict[str, Any] = {}
    held: int
    headroom: float
    bought: Bought | None = None
    speed: SpeedBounds | None = None
    machines: int = 1
    crawls: bool = False
    frontier: bool = False
    remarks: tuple[str, ...] = ()

    @property
    def per_hour(self) -> float | None:
        """Price for an hour, where it is known."""
        return self.bought.per_hour if self.bought else None

    @property
    def changed(self) -> tuple[bool, bool]:
        """Whether weights, and whether the cache, are in another format than they come in."""
        return self.weights != "auto", self.kv_dtype != "auto"

    @property
    def arguments(self) -> dict[str, Any]:
        """What `kvplan.size` takes besides the model, context and concurrency."""
        return {
            "gpu": self.gpu,
            "engine": self.engine,
            "tp": self.parallelism.tp,
            "pp": self.parallelism.pp,
            "dp": self.parallelism.dp,
            "weights": self.weights,
            "kv_dtype": self.kv_dtype,
            "engine_options": dict(self.options),
        }


class Loser(_Part):
    """A configuration that lost, with any number of replicas, and the one reason.

    Attributes:
        message: The reason as a sentence.
        figure: How near it came where that is a number: requests held, tokens of the longest
            request, money an hour, seconds; else None.
        beaten_by: Rank of the plan that is at least as good in everything.
    """

    why: Why
    gpu: str
    engine: str
    weights: str
    kv_dtype: str
    layout: str
    tp: int
    pp: int
    dp: int
    message: str
    figure: float | None = None
    beaten_by: int | None = None


class LoserGroup(_Part):
    """Losers with the same reason.

    Attributes:
        count: Configurations.
        gpus, engines: Those that it befell.
        nearest: The one that came nearest.
    """

    why: Why
    message: str
    count: int
    gpus: tuple[str, ...]
    engines: tuple[str, ...]
    nearest: Loser


class Asked(_Part):
    """What was asked for.

    Attributes:
        context: Tokens of a request; of traffic the longest that the engine takes.
        concurrency: Requests at once; None: traffic says it.
        traffic: Its name and risk in words, or None.
        budget_per_hour, tpot_s, ttft_s: Limits, or None.
    """

    context: int
    concurrency: int | None
    traffic: str | None = None
    budget_per_hour: float | None = None
    tpot_s: float | None = None
    ttft_s: float | None = None


class Searched(_Part):
    """How much was looked at.

    Attributes:
        candidates: Configurations of the space, every number of replicas being one.
        prepared: Configurations that the engine's model worked out.
        seconds: How long it took.
    """

    candidates: int
    prepared: int
    seconds: float
    gpus: tuple[str, ...]
    engines: tuple[str, ...]
    weights: tuple[str, ...]
    kv_dtypes: tuple[str, ...]
    gpus_per_node: int | None
    max_gpus: int


class FitResult(_Part):
    """The answer: what holds it, ranked, and why the others lost.

    Attributes:
        plans: All that hold it within the limits, the best first.
        losers: All others, the dominated among them.
        groups: The same by reason.
        bandwidth_share, flops_share: What the bounds take of a GPU's peak.
        assumed: What was taken for granted, as sentences.

    Example:
        >>> from kvplan import fit
        >>> found = fit("Qwen/Qwen3-8B", context=8192, concurrency=8, gpus="L4", offline=True)
        >>> found.best.gpus == min(plan.gpus for plan in found.plans)
        True
    """

    schema_: Literal["kvplan.fit/1"] = Field(default="kvplan.fit/1", alias="schema")
    kvplan_version: str = __version__
    model: str
    asked: Asked
    plans: tuple[FitPlan, ...]
    losers: tuple[Loser, ...]
    groups: tuple[LoserGroup, ...]
    searched: Searched
    bandwidth_share: float
    flops_share: float
    hours_per_month: float = HOURS_PER_MONTH
    assumed: tuple[str, ...] = ()

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )

    @property
    def best(self) -> FitPlan | None:
        """The first plan, the cheapest, or None: nothing holds it."""
        return self.plans[0] if self.plans else None

    @property
    def recommended(self) -> FitPlan | None:
        """The cheapest plan without a catch; None: nothing holds it.

        Catches are another format of weights or cache than the model's own (it costs accuracy; a
        format that was the only one asked for is none), a bound that crawls, and a replica over
        several machines, whose network is not modelled. Where all plans have one, the last of
        these is put up with first, then the other format, then crawling.
        """
        for catches in (has_catch, _slow_or_changed, _slow_or_apart, _slow, _none):
            for plan in self.plans:
                if not catches(plan, self.searched):
                    return plan
        return None

    @property
    def frontier(self) -> tuple[FitPlan, ...]:
        """Plans that none beats in everything at once; see `FitPlan.frontier`."""
        return tuple(plan for plan in self.plans if plan.frontier)

    def rows(self) -> list[dict[str, Any]]:
        """One flat mapping a plan, for tables and data frames."""
        return [_row(plan, self.hours_per_month) for plan in self.plans]


def is_changed(plan: FitPlan, searched: Searched) -> bool:
    """Whether it has another format than the model's own, where that was searched too."""
    weights, kv = plan.changed
    return (weights and "auto" in searched.weights) or (kv and "auto" in searched.kv_dtypes)


def _slow(plan: FitPlan, searched: Searched) -> bool:  # noqa: ARG001 - one of five alike
    return plan.crawls


def _slow_or_apart(plan: FitPlan, searched: Searched) -> bool:  # noqa: ARG001 - one of five alike
    return plan.crawls or plan.machines > 1


def _slow_or_changed(plan: FitPlan, searched: Searched) -> bool:
    return plan.crawls or is_changed(plan, searched)


def has_catch(plan: FitPlan, searched: Searched) -> bool:
    """Whether it crawls, spreads a replica over machines, or changes a format."""
    return plan.crawls or plan.machines > 1 or is_changed(plan, searched)


def _none(plan: FitPlan, searched: Searched) -> bool:  # noqa: ARG001 - one of five alike
    return False


def _row(plan: FitPlan, hours_per_month: float) -> dict[str, Any]:
    bought, speed = plan.bought, plan.speed
    per_hour = plan.per_hour
    return {
        "rank": plan.rank,
        "frontier": plan.frontier,
        "gpu": plan.gpu,
        "gpus": plan.gpus,
        "gpus_bought": bought.gpus if bought else plan.gpus,
        "engine": plan.engine,
        "version": plan.version,
        "weights": plan.weights,
        "kv_dtype": plan.kv_dtype,
        "layout": plan.layout,
        "tp": plan.parallelism.tp,
        "pp": plan.parallelism.pp,
        "dp": plan.parallelism.dp,
        "ep": plan.parallelism.ep,
        "requests": plan.held,
        "headroom": plan.headroom,
        "instance": bought.name if bought else None,
        "instances": bought.count if bought else None,
        "machines_a_replica": plan.machines,
        "per_hour": per_hour,
        "per_month": None if per_hour is None else per_hour * hours_per_month,
        "currency": bought.currency if bought else None,
        "price_date": bought.date if bought else None,
        "tpot_bound_s": speed.tpot_s if speed else None,
        "ttft_bound_s": speed.ttft_s if speed else None,
        "tokens_per_s_bound": speed.tokens_per_s if speed else None,
        "crawls": plan.crawls,
        "remarks": "; ".join(plan.remarks),
    }
