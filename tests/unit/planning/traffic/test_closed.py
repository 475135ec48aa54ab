"""Requests held by the analysis, and those that a walk through time holds at the same risk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kvplan import api
from kvplan.engines.base import PoolUnits, Prepared, ReplicaPools
from kvplan.planning.traffic.closed import Part, agrees, closed_requests
from kvplan.planning.traffic.replica import measure
from kvplan.planning.traffic.retention import Retention
from kvplan.planning.traffic.seen import Life
from kvplan.planning.traffic.traffic import Service, Traffic
from kvplan.planning.traffic.verified import verified
from kvplan.sources.gpus import find_gpus
from kvplan.sources.traces import open_trace
from kvplan.workloads.lengths import Pair
from kvplan.workloads.sharing import PrefixRule
from kvplan.workloads.wording import parse_lengths

CONTEXT = 131_072
DRAWN = {
    "fixed": "1000/300",
    "lognormal": "lognormal:median=1k,sigma=0.9/lognormal:median=200,sigma=0.7",
    "mixture": "70% 1k/300 + 30% 8k/100",
    "Pareto": "pareto:min=200,alpha=1.8/64",
}
TRACES = {
    "Azure code": "azure2023_code.head5000.csv",
    "Azure conversation": "azure2023_conv.head5000.csv",
    "Mooncake conversation": "mooncake_conversation.head5000.jsonl",
    "Mooncake synthetic": "mooncake_synthetic.head5000.jsonl",
}
RISKS = (0.01, 0.001)


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    """An 8B model with so much cache that 2 % are several requests of any workload."""
    return api.prepare(
        api.read_spec("meta-llama/Llama-3.1-8B-Instruct", offline=True),
        find_gpus("H100")[0],
        options={"max_num_seqs": 8192, "max_num_batched_tokens": 8192},
        kv_budget=(64 * 2**30,),
    )


def both(
    prepared: Prepared, traffic: Traffic, risk: float, service: Service | None = None
) -> tuple[int, int]:
    """Requests by analysis and by walking."""
    service = service or Service()
    measured = measure(prepared, CONTEXT, traffic, service)
    held = measured.replica().constant(risk)
    walked = verified(prepared, measured, (traffic, service), held, risk)
    assert walked.agrees
    assert walked.risk <= risk
    return int(held.requests), walked.requests


def check(prepared: Prepared, pairs: tuple[Pair, ...], risk: float) -> None:
    analysed, walked = both(prepared, Traffic(pairs), risk)
    assert analysed > 10
    # Two percent, where that is at least one request.
    assert abs(analysed - walked) <= max(1, 0.02 * walked)


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("text", DRAWN.values(), ids=DRAWN)
def test_drawn_lengths(prepared: Prepared, text: str, risk: float) -> None:
    check(prepared, parse_lengths(text, limit=CONTEXT).lengths.pairs(), risk)


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("name", TRACES.values(), ids=TRACES)
def test_traces(prepared: Prepared, name: str, risk: float, shared: Path) -> None:
    with open_trace(str(shared / "traces" / name)) as trace:
        pairs = tuple((one.prompt_tokens, one.output_tokens, 1.0) for one in trace.requests)
    check(prepared, pairs, risk)


def test_prompts_that_take_time_and_sessions_that_are_kept(prepared: Prepared) -> None:
    pairs = parse_lengths(DRAWN["mixture"], limit=CONTEXT).lengths.pairs()
    service = Service(decode_tokens_per_s=30.0, prefill_tokens_per_s=4000.0)
    slow = both(prepared, Traffic(pairs), 0.01, service)
    kept = both(prepared, Traffic(pairs, retention=Retention(60.0, 20.0)), 0.01, service)
    arriving = both(
        prepared, Traffic(pairs), 0.01, Service(30.0, None, arriving_tokens_per_s=2000.0)
    )
    plain = both(prepared, Traffic(pairs), 0.01)
    # Who is only kept is there at full length: fewer fit.
    assert kept[0] < slow[0]
    assert len({plain, slow, kept, arriving}) == 4


def test_a_shared_prefix_is_held_once(prepared: Prepared) -> None:
    pairs = parse_lengths("1k/300").lengths.pairs()
    rule = PrefixRule("prefix", 2048, scope="global", share=0.8)
    shared = both(prepared, Traffic(pairs, prefix=rule, prefix_in_front=True), 0.01)
    longer = tuple((prompt + 2048, output, share) for prompt, output, share in pairs)
    assert shared[0] > 1.5 * both(prepared, Traffic(longer), 0.01)[0]


def test_a_wrong_analysis_is_found_out(prepared: Prepared) -> None:
    traffic = Traffic(parse_lengths("1k/300").lengths.pairs())
    measured = measure(prepared, CONTEXT, traffic, Service())
    held = measured.replica().constant(0.01)
    wrong = replace(held, requests=held.requests * 1.03)
    assert not verified(prepared, measured, (traffic, Service()), wrong, 0.01).agrees


def test_a_pool_for_three_requests_of_one_length_holds_three() -> None:
    part = Part(((10, 1, 1.0),), lambda _: (4,), Life())
    pools = ReplicaPools((PoolUnits("kv", "block", 14),), 100, 1, 16)
    assert closed_requests([part], pools, 0.01)[0] == 3
    few = ReplicaPools((PoolUnits("kv", "block", 14),), 2, 1, 16)
    assert closed_requests([part], few, 0.01)[0] == 2


def test_two_pools_run_out_together() -> None:
    """The larger of two needs decides; a bound that adds risks would hold fewer."""
    part = Part(((1, 100, 1.0),), lambda tokens: (tokens, tokens), Life())
    pools = ReplicaPools(
        (PoolUnits("kv", "block", 6000), PoolUnits("windows", "token", 6000)), 1000, 1, 1
    )
    one = ReplicaPools(pools.pools[:1], 1000, 1, 1)
    only = Part(((1, 100, 1.0),), lambda tokens: (tokens,), Life())
    assert closed_requests([part], pools, 0.01)[0] == closed_requests([only], one, 0.01)[0]


def test_the_same_seed_walks_the_same_way() -> None:
    part = Part(((10, 50, 1.0), (900, 20, 0.5)), lambda tokens: (tokens,), Life())
    pools = ReplicaPools((PoolUnits("kv", "token", 20_000),), 1000, 1, 1)
    assert closed_requests([part], pools, 0.01) == closed_requests([part], pools, 0.01)


def test_of_few_requests_one_more_or_less_is_agreement() -> None:
    assert agrees(12, 13)
    assert not agrees(12, 14)
    assert agrees(400, 408)
    assert not agrees(400, 409)
