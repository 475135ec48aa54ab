"""A grid of simulations: each point's pool is worked out here, and the simulations run anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvplan.errors import NotModelledError, RefusedError, UsageError
from kvplan.plan import Reason
from kvplan.planning.simulate.recorder import Limits
from kvplan.planning.sweep.axes import raise_all
from kvplan.planning.sweep.typos import typos
from kvplan.planning.sweep.words import KINDS
from kvplan.simulation import Simulation
from kvplan.simulator import Deployment, Speed, TierMemory, deploy, simulate
from kvplan.sweep_executors import Executor, run_all
from kvplan.sweep_grid import Grid
from kvplan.sweep_names import Names
from kvplan.sweep_simulated import Result, SimulatedSweep
from kvplan.sweeper import spec_of
from kvplan.workloads.requests import Request

_DEPLOYED = (
    "tp", "pp", "dp", "dcp", "context", "kv_dtype", "dtype", "kv_budget", "engine",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Workload:
    """What one simulation is run with; it can be sent to another process.

    Attributes:
        requests: Makes the requests, from the start.
        seed: Theirs, for the record.
    """

    requests: Callable[[], Iterable[Request]]
    speed: Speed
    tiers: tuple[TierMemory, ...] = ()
    limits: Limits = field(default_factory=Limits)
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One simulation."""

    deployment: Deployment
    workload: Workload


def simulate_job(job: Job) -> Simulation | Reason:
    """Runs one simulation. What is refused on the way is the result.

    Raises:
        UsageError, InputError: requests that make no sense, or a trace that can't be read.
    """
    work = job.workload
    try:
        return simulate(
            job.deployment,
            work.requests(),
            speed=work.speed,
            tiers=work.tiers,
            limits=work.limits,
            seed=work.seed,
        )
    except RefusedError as refusal:
        return _reason(refusal)


def simulate_grid(
    inputs: Mapping[str, Any],
    grid: Grid,
    names: Names,
    *,
    options: Sequence[str],
    workload: Callable[[Mapping[str, Any]], Workload],
    executor: Executor,
    progress: Callable[[int, int], None] | None = None,
) -> SimulatedSweep:
    """Simulates every point of a grid.

    The results are those of each point alone: neither the order nor the place they ran at
    changes them.

    Args:
        inputs: All inputs by name.
        grid: What is varied.
        names: The models and devices that the inputs name.
        options: Which inputs are options of the engine.
        workload: Makes the workload for some inputs.
        executor: Where simulations run.
        progress: Told how many points are done, of how many.

    Raises:
        KvplanError: a workload that makes no sense, or a cluster that can't be reached.
    """
    results: list[Result] = [None] * grid.size
    first = dict(inputs) | grid.at(0)
    interrupted = False
    places: list[int] = []
    jobs: list[Job] = []
    try:
        for point in range(grid.size):
            made = _job(dict(inputs) | grid.at(point), names, options, workload)
            if isinstance(made, Job):
                places.append(point)
                jobs.append(made)
            else:
                results[point] = made
        raise_all(list(typos(grid, _whys(places, results), (*KINDS, *_workload(inputs, options)))))
        interrupted = not _simulated(places, jobs, executor, results, progress)
    except KeyboardInterrupt:
        interrupted = True
    return SimulatedSweep(
        inputs=tuple(first.items()),
        grid=grid,
        results=tuple(results),
        status="interrupted" if interrupted else "finished",
    )


def _whys(places: Sequence[int], results: Sequence[Result]) -> dict[int, Reason | None]:
    refused = {point: found for point, found in enumerate(results) if isinstance(found, Reason)}
    return dict.fromkeys(places) | refused


def _workload(inputs: Mapping[str, Any], options: Sequence[str]) -> list[str]:
    return [name for name in inputs if name not in options]


def _simulated(
    places: Sequence[int],
    jobs: Sequence[Job],
    executor: Executor,
    results: list[Result],
    progress: Callable[[int, int], None] | None,
) -> bool:
    """Fills in the results; False where a simulation was interrupted."""
    refused = len(results) - len(jobs)
    for done, (place, found) in enumerate(run_all(simulate_job, jobs, executor), start=1):
        if isinstance(found, Simulation) and found.status == "interrupted":
            return False
        results[places[place]] = found
        if progress is not None:
            progress(refused + done, len(results))
    return True


def _job(
    given: Mapping[str, Any],
    names: Names,
    options: Sequence[str],
    workload: Callable[[Mapping[str, Any]], Workload],
) -> Job | Reason:
    work = workload(given)
    try:
        return Job(_deployment(given, names, options), work)
    except (RefusedError, UsageError) as refusal:
        return _reason(refusal)


def _deployment(given: Mapping[str, Any], names: Names, options: Sequence[str]) -> Deployment:
    devices = names.devices[given["gpu"]]
    if len(devices) > 1:
        raise NotModelledError("Unlike devices are not simulated.", hint="Name one GPU.")
    spec = spec_of(names, given["model"], given["weights"])
    arguments = {name: given[name] for name in _DEPLOYED if name in given}
    chosen = {name: given[name] for name in options}
    return deploy(spec, devices[0], engine_options=chosen, **arguments)


def _reason(refusal: RefusedError | UsageError) -> Reason:
    return Reason(code=refusal.slug, message=refusal.message, hint=refusal.hint)
