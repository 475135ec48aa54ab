"""The traffic flags → the requests that they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kvplan.cli import traffic_words
from kvplan.cli.arguments import parse_count
from kvplan.errors import UsageError
from kvplan.planning.policy import parse_policy
from kvplan.planning.traffic.answer import Question
from kvplan.planning.traffic.links import LINK_EFFICIENCY
from kvplan.planning.traffic.pools_apart import ApartAsked
from kvplan.planning.traffic.retention import Retention
from kvplan.planning.traffic.traffic import Demand, Service, Traffic
from kvplan.sources.length_tables import length_table
from kvplan.sources.trace_columns import parse_columns
from kvplan.sources.traces import open_trace
from kvplan.units import MAX_TOKENS
from kvplan.workloads.distributions import Fixed
from kvplan.workloads.lengths import Pair, gathered
from kvplan.workloads.sessions import Sessions
from kvplan.workloads.wording import Worded, parse_lengths


@dataclass(frozen=True, slots=True)
class TrafficFlags:
    """The flags as they were typed; None: not given."""

    trace: str | None = None
    columns: str | None = None
    lengths: str | None = None
    turns: str | None = None
    prefix: str | None = None
    rate: str | None = None
    users: str | None = None
    think: str = "0s"
    daily: str | None = None
    decode_rate: str | None = None
    prefill_rate: str | None = None
    risk: str = "0.1%"
    retain: str | None = None
    tiers: tuple[str, ...] = ()
    kv_link: str | None = None
    link_efficiency: float | None = None
    first_token: str | None = None
    between_tokens: str | None = None
    kv_policy: str | None = None
    verify: bool = False


@dataclass(frozen=True, slots=True)
class _Read:
    pairs: tuple[Pair, ...]
    requests: int | None = None
    failed: int = 0
    rate_per_s: float | None = None
    grows: bool = True
    last: Mapping[tuple[int, int], float] | None = None


def question_of(flags: TrafficFlags) -> Question:
    """What the flags ask; a trace is read here.

    Raises:
        UsageError: flags that make no sense, or none that says what traffic there is.
        InputError: a trace that can't be read.
    """
    if (flags.trace is None) == (flags.lengths is None):
        raise UsageError(
            "Say what traffic there is: a trace or lengths, one of the two.",
            hint="Write --traffic FILE, or --lengths p50=1k,p95=8k/300.",
        )
    worded = None if flags.lengths is None else parse_lengths(flags.lengths, limit=MAX_TOKENS)
    read = _trace(flags) if worded is None else _lengths(worded, flags)
    prefix = traffic_words.parse_prefix(flags.prefix)
    return Question(
        traffic=Traffic(
            read.pairs,
            read.grows,
            prefix,
            prefix_in_front=worded is not None,
            retention=_retention(flags, read),
        ),
        name=flags.trace or flags.lengths or "",
        risk=traffic_words.parse_share("--risk", flags.risk),
        service=Service(
            decode_tokens_per_s=_decode_rate(flags),
            prefill_tokens_per_s=traffic_words.parse_speed("--prefill-rate", flags.prefill_rate),
        ),
        demand=_demand(flags, read),
        fits=worded.fits if worded else (),
        requests_read=read.requests,
        requests_failed=read.failed,
        tiers=traffic_words.parse_planned_tiers(flags.tiers),
        apart=_apart(flags),
        policy=None if flags.kv_policy is None else parse_policy(flags.kv_policy),
        verify=flags.verify,
    )


def _decode_rate(flags: TrafficFlags) -> float | None:
    """Tokens a second of one request: as stated, or what a decode pool promises."""
    rate = traffic_words.parse_speed("--decode-rate", flags.decode_rate)
    if rate is not None or flags.kv_link is None:
        return rate
    between = traffic_words.parse_limit("--between-tokens", flags.between_tokens)
    return 1 / between if between else None


def _apart(flags: TrafficFlags) -> ApartAsked | None:
    if flags.kv_link is None:
        if flags.first_token or flags.between_tokens or flags.link_efficiency:
            raise UsageError(
                "Limits of tokens are for separate pools of prompts and answers.",
                hint="Add --kv-link ib-400; kvplan simulate knows them for one pool.",
            )
        return None
    return ApartAsked(
        flags.kv_link,
        LINK_EFFICIENCY if flags.link_efficiency is None else flags.link_efficiency,
        traffic_words.parse_limit("--first-token", flags.first_token),
        traffic_words.parse_limit("--between-tokens", flags.between_tokens),
    )


def _retention(flags: TrafficFlags, read: _Read) -> Retention | None:
    if flags.retain is None:
        return None
    if read.last is None and flags.users is None:
        raise UsageError(
            "Nothing says which requests are followed by a next turn.",
            hint="Add --turns 6 and --think 30s, or --users 500 --think 30s.",
            location="--retain",
        )
    return Retention(
        traffic_words.parse_time("--retain", flags.retain),
        traffic_words.parse_time("--think", flags.think),
        read.last or {},
    )


def _trace(flags: TrafficFlags) -> _Read:
    if flags.turns is not None:
        raise UsageError("A trace has its own turns.", hint="Leave out --turns.")
    table = None if flags.trace in (None, "-") else length_table(flags.trace or "")
    if table is not None:
        return _Read(table.pairs())
    columns = parse_columns(flags.columns) if flags.columns else {}
    with open_trace(flags.trace or "", columns=columns) as trace:
        pairs = gathered((one.prompt_tokens, one.output_tokens, 1.0) for one in trace.requests)
        tally = trace.tally
    timed = tally.timed and tally.last_s > 0
    rate = tally.requests / tally.last_s if timed else None
    return _Read(pairs, tally.requests, tally.failed, rate)


def _lengths(worded: Worded, flags: TrafficFlags) -> _Read:
    if flags.turns is None:
        return _Read(worded.lengths.pairs(), grows=worded.lengths.grows)
    kinds = worded.lengths.kinds
    if len(kinds) > 1 or kinds[0].output is None:
        raise UsageError(
            "Conversations need one kind of message and of answer.",
            hint="Write --turns 6 --lengths 200/300.",
        )
    turns = parse_count("--turns", flags.turns)
    pairs, last = Sessions(Fixed(turns), kinds[0].prompt, kinds[0].output).turns_of()
    return _Read(pairs, last=last)


def _demand(flags: TrafficFlags, read: _Read) -> Demand | None:
    profile = traffic_words.parse_daily(flags.daily)
    if flags.users is not None:
        if flags.rate is not None:
            raise UsageError("Give a rate or users, not both.", hint="Leave out --rate.")
        users, think = parse_count("--users", flags.users), flags.think
        return Demand(None, users, traffic_words.parse_time("--think", think), profile)
    rate = read.rate_per_s if flags.rate is None else traffic_words.parse_rate(flags.rate)
    # A trace's own rate says something only with the time that requests take.
    if rate is None or (flags.rate is None and flags.decode_rate is None):
        if flags.daily is not None:
            raise UsageError(
                "A day's profile says nothing without a rate.",
                hint="Add --rate 5/s and --decode-rate 30.",
                location="--daily",
            )
        return None
    return Demand(rate_per_s=rate, profile=profile)
