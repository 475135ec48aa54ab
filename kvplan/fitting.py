"""`kvplan.fit`: which GPUs, how many, and how to run the model on them."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kvplan import api
from kvplan.asked import MAX_REQUESTS, engine_of, whole, word
from kvplan.errors import NotModelledError, UnknownNameError, UsageError, nearest, shown
from kvplan.fit_prices import HOURS_PER_MONTH, Offer, PriceList
from kvplan.fit_result import FitResult
from kvplan.hardware import GpuSpec
from kvplan.models.spec import ModelSpec
from kvplan.planning.fit.bounds import Shares
from kvplan.planning.fit.buying import Market, market_of
from kvplan.planning.fit.need import FixedLoad, Need, TrafficLoad
from kvplan.planning.fit.run import Question
from kvplan.planning.fit.run import fit as run
from kvplan.planning.fit.search import Limits
from kvplan.planning.fit.space import EngineChoice, Space
from kvplan.planning.size import MAX_RANKS, resolve_context
from kvplan.planning.spreading import SPREADING
from kvplan.planning.traffic.answer import Question as Traffic
from kvplan.planning.traffic.traffic import check_risk
from kvplan.side_by_side import engine_names
from kvplan.sources.gpus import find_gpu, fold, list_gpus
from kvplan.sources.prices import bundled_offers, read_prices, with_prices
from kvplan.units import MAX_TOKENS

# Sizes to try: powers of two, which attention heads divide by.
TENSOR, PIPELINE = (1, 2, 4, 8, 16), (1, 2, 4, 8)
MAX_GPUS, NODE = 64, 8
# Tried where none are named. Of engines that read GGUF files: llama.cpp's own names.
WEIGHTS = ("auto", "fp8", "awq")
KV_DTYPES = ("auto", "fp8")
GGUF_WEIGHTS, GGUF_KV = ("auto", "gguf:Q8_0", "gguf:Q4_K_M"), ("auto", "q8_0")
_OWN_KV = {"sglang": ("auto", "fp8_e4m3"), "transformers": ("auto",)}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a deployment has to do, and what it may cost.

    Attributes:
        context: Tokens of a request; None is the model's own maximum.
        concurrency: Requests at once.
        prompt: Tokens of a prompt, for the time until its first token; None: all of a request.
        traffic: Real traffic, instead.
        budget_per_hour: The most it may cost, in the currency of the prices.
        tpot_s, ttft_s: Longest time of a token and until the first one.
    """

    context: int | None = None
    concurrency: int | None = None
    prompt: int | None = None
    traffic: Traffic | None = None
    budget_per_hour: float | None = None
    tpot_s: float | None = None
    ttft_s: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What is searched; see `fit`."""

    gpus: str | Sequence[str | GpuSpec] | None = None
    instances: str | Sequence[str] | None = None
    prices: PriceList | str | Path | None = None
    engines: str | Sequence[str] = "vllm"
    weights: Sequence[str] | None = None
    kv_dtypes: Sequence[str] | None = None
    tensor: Sequence[int] | None = None
    pipeline: Sequence[int] | None = None
    max_gpus: int = MAX_GPUS
    gpus_per_node: int | None = None
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def fit(  # noqa: PLR0913 - one keyword for each thing that may be asked or limited
    model: str | ModelSpec,
    *,
    context: int | None = None,
    concurrency: int | None = None,
    prompt: int | None = None,
    traffic: Traffic | None = None,
    gpus: str | Sequence[str | GpuSpec] | None = None,
    instances: str | Sequence[str] | None = None,
    prices: PriceList | str | Path | None = None,
    budget_per_hour: float | None = None,
    tpot_s: float | None = None,
    ttft_s: float | None = None,
    engines: str | Sequence[str] = "vllm",
    weights: Sequence[str] | None = None,
    kv_dtypes: Sequence[str] | None = None,
    tp: Sequence[int] | None = None,
    pp: Sequence[int] | None = None,
    max_gpus: int = MAX_GPUS,
    gpus_per_node: int | None = None,
    engine_options: Mapping[str, Mapping[str, Any]] | None = None,
    bandwidth_share: float | None = None,
    flops_share: float | None = None,
    offline: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> FitResult:
    """Searches for the configurations that hold a load, the cheapest first.

    Args:
        model: A Hub id, a folder, a ``config.json`` or a `ModelSpec`.
        context: Tokens of a request; None is the model's own maximum.
        concurrency: Requests at once; None, and no traffic with a demand: one.
        prompt: Tokens of a prompt, for the bound on the first token; None: all of a request.
        traffic: Real traffic, as `kvplan traffic` takes it, in place of one length.
        gpus: Names or patterns with commas (``"H100*,L40S"``), or `GpuSpec` objects; None: those
            that ``instances`` and ``prices`` have, or else every bundled one.
        instances: Clouds whose machines may be bought: ``"aws"``, ``"aws,gcp"``, ``"all"``.
        prices: A price file (``kvplan.prices/1``) or what it says.
        budget_per_hour: The most it may cost an hour.
        tpot_s: The longest time of a token; candidates whose bound is above it are out.
        ttft_s: The same until the first token.
        engines: Names, each optionally pinned, or ``"all"``.
        weights: Formats of the weights to try; None: as they are, FP8 and AWQ.
        kv_dtypes: Cache types to try; None: the engine's default and FP8.
        tp: Tensor parallel sizes to try.
        pp: Pipeline parallel sizes to try.
        max_gpus: GPUs of a deployment at most.
        gpus_per_node: GPUs that share fast links, for tensor parallel groups, where no machine is
            bought; None: 8.
        engine_options: Options by engine: ``{"vllm": {"max_num_seqs": 256}}``.
        bandwidth_share: What the bounds take of a GPU's bandwidth; None: 0.8.
        flops_share: Of its arithmetic; None: 0.5.
        offline: Use bundled specs and the local cache only.
        progress: Told how many devices are done, and of how many.

    Raises:
        KvplanError: a bad argument, facts that can't be had, unreadable input, or a model that
            kvplan does not model. What an engine refuses is a reason to lose, and not raised.

    Example:
        >>> found = fit("Qwen/Qwen3-8B", context=8192, concurrency=20, gpus="L40S", offline=True)
        >>> found.best.gpus, found.best.parallelism.tp
        (1, 1)
    """
    wish = Wish(context, concurrency, prompt, traffic, budget_per_hour, tpot_s, ttft_s)
    choice = Choice(
        gpus=gpus,
        instances=instances,
        prices=prices,
        engines=engines,
        weights=weights,
        kv_dtypes=kv_dtypes,
        tensor=tp,
        pipeline=pp,
        max_gpus=max_gpus,
        gpus_per_node=gpus_per_node,
        options=engine_options or {},
    )
    shares = _shares(bandwidth_share, flops_share)
    _check(wish, choice)
    listed = _prices(choice.prices)
    spec = model if isinstance(model, ModelSpec) else api.read_spec(model, offline=offline)
    return run(_question(spec, wish, choice, shares, listed), progress)


def _question(
    spec: ModelSpec, wish: Wish, choice: Choice, shares: Shares, prices: PriceList | None
) -> Question:
    offers = _offers(choice, prices)
    devices = _devices(choice.gpus, offers)
    engines = _engines(choice, spec)
    need = _need(spec, wish, engines)
    node = choice.gpus_per_node or NODE
    space = Space(
        gpus=devices,
        engines=engines,
        tensor=_counts("tp", choice.tensor, _within(offers, node)),
        pipeline=_counts("pp", choice.pipeline, PIPELINE),
        max_gpus=choice.max_gpus,
    )
    return Question(
        model=spec.id,
        space=space,
        need=need,
        market=_market(choice, offers, node),
        limits=Limits(wish.budget_per_hour, wish.tpot_s, wish.ttft_s),
        shares=shares,
        specs=_specs(spec, engines),
        hours_per_month=prices.hours_per_month if prices else HOURS_PER_MONTH,
        concurrency=None if wish.traffic and wish.traffic.demand else (wish.concurrency or 1),
        traffic=None if wish.traffic is None else _named(wish.traffic),
    )


def _named(traffic: Traffic) -> str:
    return f"{traffic.name} at a risk of {100 * traffic.risk:g} %"


def _need(spec: ModelSpec, wish: Wish, engines: Sequence[EngineChoice]) -> Need:
    unstated = next((e.engine.unstated_context for e in engines), None)
    context = resolve_context(spec, wish.context, unstated=unstated)
    if wish.traffic is not None:
        check_risk(wish.traffic.risk)
        load = TrafficLoad(wish.traffic, context, wish.concurrency)
        if load.is_empty:
            raise UsageError(
                f"There is no request of less than {context:,} tokens, which is all that is"
                " planned.",
                hint="Check the traffic, or raise --context.",
            )
        return load
    prompt = min(wish.prompt or context, context)
    return FixedLoad(context, wish.concurrency or 1, prompt)


def _specs(
    spec: ModelSpec, engines: Sequence[EngineChoice]
) -> dict[str, ModelSpec | NotModelledError | UsageError]:
    """The model in every format that is tried."""
    specs: dict[str, ModelSpec | NotModelledError | UsageError] = {"auto": spec}
    for name in dict.fromkeys(name for choice in engines for name in choice.weights):
        try:
            specs[name] = api.spec_of(spec, name)
        except UnknownNameError:
            raise
        except (NotModelledError, UsageError) as refusal:
            specs[name] = refusal
    return specs


def _engines(choice: Choice, spec: ModelSpec) -> tuple[EngineChoice, ...]:
    names = engine_names(_words(choice.engines))
    plain = [name.partition("==")[0] for name in names]
    for name in choice.options:
        if name not in plain:
            raise UsageError(
                f"Options are given for {shown(name)}, which is not searched.",
                hint=f"Searched: {', '.join(plain)}.",
            )
    return tuple(_engine(name, choice, spec) for name in names)


def _engine(name: str, choice: Choice, spec: ModelSpec) -> EngineChoice:
    pinned = engine_of(name)
    options = dict(choice.options.get(pinned.name, {}))
    planner = pinned.planner()
    if planner.draft_of(options) is not None:
        raise UsageError("Drafts are not searched.", hint="Leave out speculative decoding.")
    gguf = pinned.name in SPREADING
    # A quantized checkpoint is what it is: other formats are tried only where they are asked for.
    usual = ("auto",) if spec.quantization else GGUF_WEIGHTS if gguf else WEIGHTS
    kv_dtypes = GGUF_KV if gguf else _OWN_KV.get(pinned.name, KV_DTYPES)
    return EngineChoice(
        engine=planner,
        version=pinned.version,
        weights=_formats("weights", choice.weights, usual),
        kv_dtypes=_formats("kv_dtypes", choice.kv_dtypes, kv_dtypes),
        options=options,
    )


def _formats(name: str, asked: Sequence[str] | None, otherwise: tuple[str, ...]) -> tuple[str, ...]:
    if asked is None:
        return otherwise
    given = [asked] if isinstance(asked, str) else asked
    return tuple(dict.fromkeys(word(name, one) for one in given)) or otherwise


def _words(names: str | Sequence[str]) -> str | tuple[str, ...]:
    if isinstance(names, str) and "," in names:
        return tuple(part.strip() for part in names.split(",") if part.strip())
    return names if isinstance(names, str) else tuple(names)


def _within(offers: Sequence[Offer], node: int) -> tuple[int, ...]:
    """Sizes that some machine, or else a node, has room for."""
    widest = max((offer.gpus for offer in offers if offer.whole), default=node)
    return tuple(size for size in TENSOR if size <= widest)


def _counts(name: str, asked: Sequence[int] | None, otherwise: tuple[int, ...]) -> tuple[int, ...]:
    if asked is None:
        return otherwise
    return tuple(sorted({whole(name, count, MAX_RANKS) for count in asked})) or otherwise


def _prices(prices: PriceList | str | Path | None) -> PriceList | None:
    if prices is None or isinstance(prices, PriceList):
        return prices
    return read_prices(Path(prices))


def _offers(choice: Choice, prices: PriceList | None) -> tuple[Offer, ...]:
    named = _words(choice.instances or ())
    offers = bundled_offers([named] if isinstance(named, str) else named)
    return offers if prices is None else with_prices(offers, prices)


def _market(choice: Choice, offers: tuple[Offer, ...], node: int) -> Market:
    """What is for sale; where machines are bought, they say what is near what."""
    closed = choice.instances is not None
    return market_of(offers, closed=closed, node=None if closed else node)


def _devices(
    asked: str | Sequence[str | GpuSpec] | None, offers: Sequence[Offer]
) -> tuple[GpuSpec, ...]:
    """The devices of that name or pattern; else those that are for sale, or all."""
    if asked is None:
        sold = {offer.gpu for offer in offers}
        return tuple(gpu for gpu in list_gpus() if not sold or gpu.id in sold)
    parts = asked.split(",") if isinstance(asked, str) else list(asked)
    found = [gpu for part in parts for gpu in _matching(part)]
    if not found:
        raise UsageError("No GPU is named.", hint="Write --gpus 'H100*,L40S'.", location="--gpus")
    return tuple({gpu.id: gpu for gpu in found}.values())


def _matching(part: str | GpuSpec) -> Iterable[GpuSpec]:
    if isinstance(part, GpuSpec):
        return (part,)
    name = word("A GPU's name", part).strip()
    if not name:
        return ()
    if not any(sign in name for sign in "*?["):
        return (find_gpu(name),)
    pattern = fold(name)
    every = list_gpus()
    matches = [gpu for gpu in every if fnmatch.fnmatchcase(fold(gpu.id), pattern)]
    if not matches:
        raise UnknownNameError(
            f"No GPU's id looks like {shown(name)}.",
            hint=nearest(name.strip("*?"), (gpu.id for gpu in every))
            or "`kvplan gpus list` shows all.",
            location="--gpus",
        )
    return matches


def _shares(bandwidth: float | None, flops: float | None) -> Shares:
    for name, share in (("bandwidth_share", bandwidth), ("flops_share", flops)):
        if share is not None and not 0 < share <= 1:
            raise UsageError(f"{name} is a share above 0 and at most 1, not {shown(share)}.")
    usual = Shares()
    return Shares(bandwidth or usual.bandwidth, flops or usual.flops)


def _check(wish: Wish, choice: Choice) -> None:
    for name, count, most in (
        ("context", wish.context, MAX_TOKENS),
        ("prompt", wish.prompt, MAX_TOKENS),
        ("concurrency", wish.concurrency, MAX_REQUESTS),
        ("max_gpus", choice.max_gpus, MAX_RANKS),
        ("gpus_per_node", choice.gpus_per_node, MAX_RANKS),
    ):
        if count is not None:
            whole(name, count, most)
    for name, limit in (
        ("budget_per_hour", wish.budget_per_hour),
        ("tpot_s", wish.tpot_s),
        ("ttft_s", wish.ttft_s),
    ):
        if limit is not None and not 0 < limit < float("inf"):
            raise UsageError(f"{name} is above 0, not {shown(limit)}.")
