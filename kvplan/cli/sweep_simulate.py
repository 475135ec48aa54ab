"""`kvplan sweep --simulate`: the workload's flags, some of them varied → simulations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from kvplan.errors import UsageError

if TYPE_CHECKING:
    import typer

    from kvplan.cli.simulate_source import Stream
    from kvplan.cli.sweep_base import BaseFlags
    from kvplan.planning.sweep.words import Kind
    from kvplan.sweep_executors import Executor
    from kvplan.sweep_simulated import SimulatedSweep
    from kvplan.sweep_simulations import Workload

# Inputs of a plan that a simulation has no use for.
_NOT_SIMULATED = ("concurrency", "images", "image_size", "image_tokens", "gpus_per_node", "profile")


@dataclass(frozen=True, slots=True)
class WorkloadFlags:
    """The flags of `kvplan simulate` that are no part of the deployment, as they were typed."""

    traffic: str | None = None
    lengths: str | None = None
    rate: str | float | None = None
    trace_columns: str | None = None
    turns: str | int | None = None
    think: str = "0s"
    prefix: str | None = None
    daily: str | None = None
    requests: str | int | None = None
    duration: str | None = None
    start_at: str = "0h"
    burst: float = 1.0
    speed: float = 1.0
    seed: int = 0
    tier: tuple[str, ...] = ()
    step_time: str | None = None
    bandwidth_efficiency: float | None = None
    flops_efficiency: float | None = None
    overhead: str = "0ms"
    first_token: str | None = None
    between_tokens: str | None = None


def run(
    context: typer.Context,
    base: BaseFlags,
    given: WorkloadFlags,
    vary: Mapping[str, str],
    executor: Executor,
) -> SimulatedSweep:
    """Simulates every combination.

    Raises:
        KvplanError: what makes no sense, facts that can't be had, a cluster that is not there.
    """
    from kvplan.cli.invocation import invocation_of
    from kvplan.cli.sweep_base import arguments_of, request_of
    from kvplan.cli.sweep_progress import ProgressBar
    from kvplan.sweep_simulations import simulate_grid
    from kvplan.sweeper import question_of

    request = request_of(context, base)
    arguments = arguments_of(request) | {"model": request.model, "gpu": request.gpu or None}
    options = arguments.pop("engine_options")
    offline = arguments.pop("offline")
    _check(arguments, vary)
    named = {name: each for name, each in arguments.items() if name not in _NOT_SIMULATED}
    question = question_of(
        named | {"concurrency": None} | _asked(given, vary),
        options,
        vary,
        offline=offline,
        kinds=_kinds(),
    )
    del question.inputs["concurrency"]
    own = [name for name in question.inputs if name not in _kinds()]
    bar = ProgressBar(quiet=invocation_of(context).quiet, noun="simulations")
    try:
        return simulate_grid(
            question.inputs,
            question.grid,
            question.names,
            options=own,
            workload=lambda inputs: workload_of(given, inputs),
            executor=executor,
            progress=bar.show,
        )
    finally:
        bar.clear()


def _check(arguments: Mapping[str, Any], vary: Mapping[str, str]) -> None:
    if arguments["context"] == "auto":
        raise UsageError("A simulation takes a length, not auto.", location="--context")
    for name in _NOT_SIMULATED:
        if name in vary or arguments.get(name):
            raise UsageError(
                f"A simulation has no {name}.",
                hint="Requests come at a --rate or as a --traffic file says; vary max_num_seqs or"
                " rate instead.",
                location=f"--vary {name}" if name in vary else f"--{name.replace('_', '-')}",
            )


def _asked(given: WorkloadFlags, vary: Mapping[str, str]) -> dict[str, Any]:
    """The workload's inputs that somebody gave, and the seed of drawn requests."""
    usual = asdict(WorkloadFlags())
    found = {
        name: value for name, value in asdict(given).items() if value != usual[name] or name in vary
    }
    drawn = given.traffic is None and "traffic" not in vary
    return found | ({"seed": given.seed} if drawn else {})


def _kinds() -> Mapping[str, Kind]:
    from kvplan.planning.sweep.words import KINDS, Kind, read_from_zero, read_option, read_whole

    number, text = Kind(read_option, ranges=True), Kind(str)
    count, whole = Kind(read_from_zero, ranges=True), Kind(read_whole, ranges=True)
    texts = (
        "traffic", "lengths", "trace_columns", "think", "prefix", "daily", "duration", "start_at",
        "tier", "step_time", "overhead", "first_token", "between_tokens",
    )  # fmt: skip
    numbers = ("rate", "burst", "speed", "bandwidth_efficiency", "flops_efficiency")
    return {
        **KINDS,
        **dict.fromkeys(texts, text),
        **dict.fromkeys(numbers, number),
        **dict.fromkeys(("turns", "requests"), whole),
        "seed": count,
    }


def workload_of(given: WorkloadFlags, inputs: Mapping[str, Any]) -> Workload:
    """The workload at some point.

    Raises:
        UsageError: words that make no sense.
    """
    from kvplan.cli import simulate_words
    from kvplan.simulator import Speed
    from kvplan.sweep_simulations import Workload

    own = {name: inputs.get(name, value) for name, value in asdict(given).items()}
    for name in _RANGES:
        if own[name] is not None:
            own[name] = _in_range(name, own[name])
    drawn = own["traffic"] is None
    tier = own["tier"]
    return Workload(
        requests=_stream(own).stream,
        speed=Speed(
            simulate_words.parse_step_time(own["step_time"]),
            own["bandwidth_efficiency"],
            own["flops_efficiency"],
            simulate_words.parse_span("--overhead", own["overhead"]),
        ),
        tiers=simulate_words.parse_tiers((tier,) if isinstance(tier, str) else tier),
        limits=simulate_words.parse_limits(own["first_token"], own["between_tokens"]),
        seed=own["seed"] if drawn else None,
    )


def _stream(own: Mapping[str, Any]) -> Stream:
    """The requests; what can be read now is, so that a mistake is said before anything runs."""
    from kvplan.cli.simulate_source import Stream
    from kvplan.cli.traffic_source import TrafficFlags

    words = ("lengths", "prefix", "think", "daily")
    flags = TrafficFlags(
        trace=own["traffic"],
        columns=own["trace_columns"],
        turns=_words(own["turns"]),
        rate=_rate(own["rate"]),
        **{name: own[name] for name in words},
    )
    stream = Stream(
        flags,
        own["seed"],
        requests=_words(own["requests"]),
        **{name: own[name] for name in ("duration", "start_at", "burst", "speed")},
    )
    stream.check()
    if own["traffic"] is None:
        stream.stream()
    elif own["traffic"] == "-":
        raise UsageError(
            "Standard input can be read only once.",
            hint="Write the trace to a file.",
            location="--traffic",
        )
    return stream


def _words(value: str | int | None) -> str | None:
    return None if value is None else str(value)


def _rate(value: str | float | None) -> str | None:
    """A plain number is one of requests a second, so that a rate can be a range."""
    return f"{value:g}/s" if isinstance(value, int | float) else value


_RANGES = {
    "burst": (0.0, 100.0),
    "speed": (1e-6, 1e6),
    "bandwidth_efficiency": (0.01, 1.0),
    "flops_efficiency": (0.01, 1.0),
}


def _in_range(name: str, value: Any) -> float:
    low, high = _RANGES[name]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        raise UsageError(
            f"{name} is a number from {low:g} to {high:g}, not {value!r}.",
            location=f"--vary {name}",
        )
    return float(value)
