"""The traffic flags → the requests that they mean."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.cli import traffic_words
from kvplan.cli.arguments import parse_count
from kvplan.errors import UsageError
from kvplan.planning.traffic.answer import Question
from kvplan.planning.traffic.traffic import Demand, Service, Traffic
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


@dataclass(frozen=True, slots=True)
class _Read:
    pairs: tuple[Pair, ...]
    requests: int | None = None
    failed: int = 0
    rate_per_s: float | None = None
    grows: bool = True


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
        traffic=Traffic(read.pairs, read.grows, prefix, prefix_in_front=worded is not None),
        name=flags.trace or flags.lengths or "",
        risk=traffic_words.parse_share("--risk", flags.risk),
        service=Service(
            decode_tokens_per_s=traffic_words.parse_speed("--decode-rate", flags.decode_rate),
            prefill_tokens_per_s=traffic_words.parse_speed("--prefill-rate", flags.prefill_rate),
        ),
        demand=_demand(flags, read),
        fits=worded.fits if worded else (),
        requests_read=read.requests,
        requests_failed=read.failed,
    )


def _trace(flags: TrafficFlags) -> _Read:
    if flags.turns is not None:
        raise UsageError("A trace has its own turns.", hint="Leave out --turns.")
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
    return _Read(Sessions(Fixed(turns), kinds[0].prompt, kinds[0].output).pairs())


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
