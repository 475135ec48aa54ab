"""Every candidate is tried or ruled out: those that hold what is asked, and why the others don't.

For each shape (device, engine, formats, layout, ranks of a replica) the fewest replicas that are
enough are taken: more would hold more and cost more. Where replicas share nothing one is
prepared and multiplied; where they do (experts of vLLM) each number is prepared, by bisection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kvplan.engines.base import Prepared, Setup
from kvplan.errors import RefusedError, UsageError
from kvplan.fit_result import Bought, FitPlan, Loser, SpeedBounds, Why
from kvplan.hardware import GpuSpec, device_memory
from kvplan.models.formats import PLAIN, ceil_div
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import Component, stored_bytes
from kvplan.planning.fit.bounds import Pace, Shares, pace_of
from kvplan.planning.fit.buying import Market
from kvplan.planning.fit.layouts import EXPERTS_ACROSS_REPLICAS
from kvplan.planning.fit.need import Held, Need
from kvplan.planning.fit.space import EngineChoice, Shape, Space, shapes
from kvplan.planning.spreading import SPREADING, as_loaded
from kvplan.units import format_bytes

# Slower than these a deployment is said to crawl: a line of this tool, no fact.
CRAWL_TPOT_S, CRAWL_TTFT_S = 0.1, 30.0
# Parts of a model that every engine loads, and that no rank beyond its own share keeps.
_ALWAYS_LOADED: tuple[Component, ...] = (
    "attention",
    "mlp",
    "shared_experts",
    "experts",
    "recurrent",
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a plan has to keep, each None: no limit."""

    budget_per_hour: float | None = None
    tpot_s: float | None = None
    ttft_s: float | None = None


@dataclass(slots=True)
class Tally:
    """How much was looked at."""

    candidates: int = 0
    prepared: int = 0


@dataclass(frozen=True, slots=True)
class Search:
    """A search, ready to run.

    Attributes:
        specs: The model with its weights in each format, or why it can't be had in it.
        progress: Told how many devices are done, and of how many.
    """

    space: Space
    need: Need
    market: Market
    limits: Limits
    shares: Shares
    specs: Mapping[str, ModelSpec | RefusedError | UsageError]
    tally: Tally
    progress: Callable[[int, int], None] | None = None

    def run(self) -> Iterator[FitPlan | Loser]:
        """Every shape's plan, or the reason why it has none."""
        for done, gpu in enumerate(self.space.gpus, 1):
            for choice in self.space.engines:
                for weights in choice.weights:
                    yield from self._of_weights(gpu, choice, weights)
            if self.progress is not None:
                self.progress(done, len(self.space.gpus))

    def _of_weights(
        self, gpu: GpuSpec, choice: EngineChoice, weights: str
    ) -> Iterator[FitPlan | Loser]:
        spec = self.specs[weights]
        if not isinstance(spec, ModelSpec):
            plain = next(one for one in self.specs.values() if isinstance(one, ModelSpec))
            for shape in shapes(self.space, gpu, choice, weights, plain):
                self._count(shape)
                yield _lost(shape, 1, "refused", spec.message)
            return
        loaded = as_loaded(spec, choice.engine.name, weights)
        for shape in shapes(self.space, gpu, choice, weights, loaded):
            self._count(shape)
            yield self._try(shape, loaded)

    def _count(self, shape: Shape) -> None:
        self.tally.candidates += self.space.max_gpus // shape.ranks

    def _try(self, shape: Shape, model: ModelSpec) -> FitPlan | Loser:
        most = self.space.max_gpus // shape.ranks
        widest = self.market.widest(shape.gpu.id)
        if widest is not None and shape.tp > widest:
            return _lost(shape, 1, "not_sold", _too_wide(widest))
        lack = self._lack(shape, model, most)
        if lack is not None:
            return _lost(shape, 1, "weights", *lack)
        trial = _Trial(shape, model, self.need, self.tally)
        try:
            held, replicas = trial.fewest(most)
        except (RefusedError, UsageError) as refusal:
            return _lost(shape, 1, "refused", refusal.message)
        if not held.enough:
            return _too_few(shape, replicas, held)
        pace = pace_of(shape, model, self.shares, context=self.need.seen, prompt=self.need.prompt)
        return self._judged(trial, pace, held, replicas, most)

    def _lack(self, shape: Shape, model: ModelSpec, most: int) -> tuple[str, float] | None:
        """Why the weights can't fit whatever the engine does, and how many times; None: may be."""
        if shape.choice.engine.name in SPREADING or any("offload" in n for n in shape.options):
            return None
        sizes = stored_bytes(model.weights, PLAIN[model.dtype])
        shared = most if shape.choice.engine.name in EXPERTS_ACROSS_REPLICAS else 1
        least = sum(
            sizes.get(part, 0) / (shared if part == "experts" else 1) for part in _ALWAYS_LOADED
        )
        each, memory = least / shape.ranks, device_memory(shape.gpu).high
        if each <= memory:
            return None
        return f"The weights alone do not fit: at least {format_bytes(each)} a GPU.", each / memory

    def _judged(
        self, trial: _Trial, pace: Pace | None, held: Held, replicas: int, most: int
    ) -> FitPlan | Loser:
        """With more replicas where a limit on the time a token asks for them; then the money."""
        shape = trial.shape
        speed = None if pace is None else pace.at(held.needed, replicas)
        slow = _slow(speed, shape, self.limits)
        if slow and pace is not None:
            for count in range(replicas + 1, most + 1):
                quick = not _slow(pace.at(held.needed, count), shape, self.limits)
                if quick and trial.takes(count):
                    replicas, held = count, trial.held(count)
                    speed, slow = pace.at(held.needed, replicas), ""
                    break
        if slow:
            time = None if speed is None else speed.tpot_s
            return _lost(shape, replicas, "misses_slo", slow, time)
        bought = self.market.buy(
            shape.gpu.id, tp=shape.tp, groups=shape.pp * replicas, most=self.space.max_gpus
        )
        if bought is None and shape.gpu.id in self.market.offers:
            return _lost(shape, replicas, "not_sold", "Whole machines would be too many GPUs.")
        over = _over(bought, self.limits.budget_per_hour)
        if over is not None:
            why: Why = "no_price" if bought is None or bought.per_hour is None else "over_budget"
            return _lost(shape, replicas, why, over, bought.per_hour if bought else None)
        together = replicas if trial.coupled else 1
        machines = _machines(shape, together, bought, self.market.node)
        return _plan(trial, held, replicas, bought, speed, machines=machines)


class _Trial:
    """One shape with any number of replicas."""

    def __init__(self, shape: Shape, model: ModelSpec, need: Need, tally: Tally) -> None:
        self.shape = shape
        self._model = model
        self._need = need
        self._tally = tally
        self._prepared: dict[int, Prepared] = {}
        self._refusal: RefusedError | UsageError | None = None
        across = shape.choice.engine.name in EXPERTS_ACROSS_REPLICAS
        # Whether replicas share the weights of their experts.
        self.coupled = bool(model.experts) and across

    def fewest(self, most: int) -> tuple[Held, int]:
        """The fewest replicas that are enough, or the most there may be, with what they hold.

        Raises:
            RefusedError, UsageError: the engine takes no number of them.
        """
        top = next((count for count in range(most, 0, -1) if self.takes(count)), None)
        if top is None:
            raise self._refusal or UsageError("No replica was tried.")
        last = self.held(top)
        if not last.enough:
            return last, top
        if not self.coupled:
            found = _first(lambda count: self.held(count).enough, 0, top) or top
            return self.held(found), found
        # A replica never holds less where there are more of them, so fewer than these can't do.
        least = max(1, -(-last.needed * top // max(1, last.requests)))
        for count in range(min(least, top), top):
            if self.takes(count) and self.held(count).enough:
                return self.held(count), count
        return last, top

    def takes(self, replicas: int) -> bool:
        """Whether the engine runs so many; where replicas are alone it is all or none."""
        if self._refusal is not None and not self.coupled:
            return False
        try:
            self.prepared(replicas if self.coupled else 1)
        except (RefusedError, UsageError) as refusal:
            self._refusal = self._refusal or refusal
            return False
        return True

    def held(self, replicas: int) -> Held:
        """What so many hold."""
        own = replicas if self.coupled else 1
        return self._need.held(self.prepared(own), own, replicas)

    def prepared(self, own: int) -> Prepared:
        """The configuration with so many replicas."""
        if own not in self._prepared:
            self._tally.prepared += 1
            self._prepared[own] = self.shape.choice.engine.prepare(self._setup(own))
        return self._prepared[own]

    def _setup(self, own: int) -> Setup:
        shape = self.shape
        return Setup(
            model=self._model,
            gpu=shape.gpu,
            version=shape.choice.version,
            parallelism=shape.parallelism(own),
            kv_dtype=shape.kv_dtype,
            options=shape.options,
            context=self._need.context,
        )


def _first(enough: Callable[[int], bool], low: int, high: int) -> int | None:
    """The smallest count above ``low`` and up to ``high`` that is enough. Bisection."""
    if not enough(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _slow(speed: SpeedBounds | None, shape: Shape, limits: Limits) -> str:
    """What is not kept, as a sentence; empty where all is."""
    if limits.tpot_s is None and limits.ttft_s is None:
        return ""
    if speed is None:
        return f"The speed of {shape.gpu.id} is not known, so no limit on time can be checked."
    if limits.tpot_s is not None and speed.tpot_s > limits.tpot_s:
        return f"A token takes at least {1000 * speed.tpot_s:,.0f} ms."
    if limits.ttft_s is not None and speed.ttft_s > limits.ttft_s:
        return f"A prompt takes at least {speed.ttft_s:,.1f} s."
    return ""


def _over(bought: Bought | None, budget: float | None) -> str | None:
    if budget is None:
        return None
    if bought is None or bought.per_hour is None:
        return "It has no price, so the budget can't be checked: name --instances or --prices."
    if bought.per_hour > budget:
        return f"It costs {bought.per_hour:,.2f} {bought.currency} an hour."
    return None


def _too_wide(widest: int) -> str:
    if not widest:
        return "No machine on offer has this GPU."
    return f"No machine has more than {widest} of this GPU."


def _too_few(shape: Shape, replicas: int, held: Held) -> Loser:
    if held.why is not None:
        figure = 1.0 if held.why == "weights" else float(held.longest)
        return _lost(shape, 1, held.why, held.message, figure)
    message = f"Holds {held.requests:,} of {held.needed:,} requests."
    return _lost(shape, replicas, "holds_too_few", message, held.requests)


def _lost(
    shape: Shape, replicas: int, why: Why, message: str, figure: float | None = None
) -> Loser:
    return Loser(
        why=why,
        gpu=shape.gpu.id,
        engine=shape.choice.engine.name,
        weights=shape.weights,
        kv_dtype=shape.kv_dtype,
        layout=shape.layout.name,
        tp=shape.tp,
        pp=shape.pp,
        dp=replicas,
        message=message,
        figure=figure,
    )


def _plan(
    trial: _Trial,
    held: Held,
    replicas: int,
    bought: Bought | None,
    speed: SpeedBounds | None,
    *,
    machines: int,
) -> FitPlan:
    shape = trial.shape
    crawls = _crawls(speed)
    return FitPlan(
        gpu=shape.gpu.id,
        gpus=shape.ranks * replicas,
        engine=shape.choice.engine.name,
        version=shape.choice.version or shape.choice.engine.newest,
        weights=shape.weights,
        kv_dtype=shape.kv_dtype,
        layout=shape.layout.name,
        parallelism=shape.parallelism(replicas),
        options=shape.options,
        held=held.requests,
        headroom=held.requests / held.needed - 1.0,
        bought=bought,
        speed=speed,
        machines=machines,
        crawls=bool(crawls),
        remarks=tuple(_remarks(crawls, machines, speed, bought, shape.ranks * replicas)),
    )


def _machines(shape: Shape, together: int, bought: Bought | None, node: int | None) -> int:
    """Machines that the stages of one replica, or of replicas that share experts, lie on."""
    within = node
    if bought is not None and bought.name != shape.gpu.id:
        within = bought.gpus // bought.count
    return 1 if within is None else ceil_div(shape.pp * together, max(1, within // shape.tp))


def _crawls(speed: SpeedBounds | None) -> str:
    """How it crawls, as words; empty where it does not or that is not known."""
    if speed is None:
        return ""
    if speed.tpot_s > CRAWL_TPOT_S:
        return f"crawls: at most {1 / speed.tpot_s:,.1f} tokens a second for each request"
    if speed.ttft_s > CRAWL_TTFT_S:
        return f"crawls: a prompt takes at least {speed.ttft_s:,.0f} s"
    return ""


def _remarks(
    crawls: str, machines: int, speed: SpeedBounds | None, bought: Bought | None, used: int
) -> Iterator[str]:
    if speed is None:
        yield "how fast this GPU is is not known"
    elif crawls:
        yield crawls
    if machines > 1:
        yield f"GPUs that work on one request lie on {machines} machines"
    if bought is not None and bought.gpus > used:
        yield f"{bought.gpus - used} of {bought.gpus} GPUs stay unused"
    if bought is None or bought.per_hour is None:
        yield "no price"
