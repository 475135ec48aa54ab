"""From what is asked about separate pools to `kvplan.planning.traffic.apart`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from kvplan.engines.base import Prepared, Setup
from kvplan.errors import UsageError
from kvplan.planning.traffic.apart import Apart, Side, disaggregated
from kvplan.planning.traffic.links import LINK_EFFICIENCY, link_of
from kvplan.planning.traffic.replica import Measured
from kvplan.planning.traffic.speeds import Machine, machine_of, prompts_of
from kvplan.planning.traffic.traffic import Demand, Service, Traffic
from kvplan.traffic_parts import DisaggregatedPools
from kvplan.traffic_plan import LoadOnPools


@dataclass(frozen=True, slots=True)
class ApartAsked:
    """Separate pools as the user says them.

    Attributes:
        link: The name of a link, or a rate; of one GPU.
        efficiency: Share of it that a transfer gets.
        first_token_s: Limit of the time to the first token, or None.
        between_tokens_s: Limit of a decoding step, or None: what the rate of decoding says.
    """

    link: str
    efficiency: float = LINK_EFFICIENCY
    first_token_s: float | None = None
    between_tokens_s: float | None = None


@dataclass(frozen=True, slots=True)
class Prefill:
    """A replica that computes prompts: its configuration, and what that was prepared from."""

    prepared: Prepared
    setup: Setup


@dataclass(frozen=True, slots=True)
class Known:
    """What the pools are, and how requests are served by the one that generates."""

    asked: ApartAsked
    prefill: Side
    decode: Side
    setup: Setup
    decoding: Service


def apart_of(
    asked: ApartAsked,
    decode: tuple[Prepared, Setup],
    prefill: Prefill | None,
    traffic: Traffic,
    service: Service,
) -> Known:
    """Works out both replicas and how the decode pool is served.

    Raises:
        NotModelledError: the engine has no pool of blocks that is modelled here.
        UsageError: nothing says how long a step may take, or there is no such link.
    """
    prepared, setup = decode
    first = prefill or Prefill(prepared, setup)
    limit = asked.between_tokens_s
    rate = service.decode_tokens_per_s or (1 / limit if limit else None)
    if rate is None:
        raise UsageError(
            "How long a step of the decode pool may take is not stated.",
            hint="Add --between-tokens 50ms, or --decode-rate 20.",
        )
    machine = machine_of(prepared, setup)
    computing = machine_of(first.prepared, first.setup, prompt_rate=service.prefill_tokens_per_s)
    bytes_per_s = link_of(asked.link, setup.gpu).bytes_per_s * asked.efficiency
    prompt = max(1, round(prompts_of(traffic.pairs, traffic.in_front).mean))
    return Known(
        asked,
        _side(computing, first.setup),
        _side(machine, setup),
        setup,
        replace(
            service,
            decode_tokens_per_s=rate,
            prefill_tokens_per_s=None,
            arriving_tokens_per_s=bytes_per_s / (machine.gpu_bytes(prompt) / prompt),
        ),
    )


def _side(machine: Machine, setup: Setup) -> Side:
    return Side(machine, setup.gpu.id, setup.parallelism.tp)


def pools_of(
    known: Known,
    measured: Measured,
    traffic: Traffic,
    demand: Demand | None,
    load: LoadOnPools | None,
) -> DisaggregatedPools:
    """Sizes both pools for the busiest hour.

    Raises:
        UsageError: no rate is stated.
    """
    rate = known.decoding.decode_tokens_per_s
    if demand is None or load is None or rate is None:
        raise UsageError(
            "How many requests come is not stated, so pools can't be sized.",
            hint="Add --rate 20/s, or --users 500 --think 30s.",
        )
    asked, peak = known.asked, load.rate_per_s * load.peak_factor
    whole = math.fsum(share for _, _, share in traffic.pairs)
    output = math.fsum(made * share for _, made, share in traffic.pairs) / whole
    apart = Apart(
        prefill=known.prefill,
        decode=known.decode,
        link=link_of(asked.link, known.setup.gpu),
        efficiency=asked.efficiency,
        layers=len(known.setup.model.layers),
        prompts=prompts_of(traffic.pairs, traffic.in_front),
        rate_per_s=peak,
        first_token_s=asked.first_token_s,
        step_s=asked.between_tokens_s or 1 / rate,
    )
    return disaggregated(apart, load, measured.tokens, peak * output / rate)
