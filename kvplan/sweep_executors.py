"""Many jobs at once: on processes of this machine, or on a Ray cluster. Same jobs, same results."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from multiprocessing import active_children, get_context
from typing import Any, Literal, TypeVar

from kvplan.errors import FactsError, UsageError, shown

Job = TypeVar("Job")
Done = TypeVar("Done")
# Jobs handed over beyond those that run: enough that nobody waits for the next.
_AHEAD = 2
_PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Executor:
    """Where jobs run.

    Attributes:
        kind: ``processes`` of this machine, or ``ray``.
        jobs: How many run at once; None: as many as there are processors.
        address: Of the Ray cluster: ``HOST:PORT``, ``auto``, or ``local`` for one that is started
            here; None: what RAY_ADDRESS says, else ``auto``.
    """

    kind: Literal["processes", "ray"] = "processes"
    jobs: int | None = None
    address: str | None = None


def run_all(
    work: Callable[[Job], Done], jobs: Sequence[Job], executor: Executor
) -> Iterator[tuple[int, Done]]:
    """Runs all jobs and yields each result with the place of its job, as they end.

    Whoever stops asking stops the jobs.

    Args:
        work: A function of a module, so that another process can find it.
        jobs: What it is called with.
        executor: Where.

    Raises:
        FactsError: the cluster can't be reached, or a process died.
        UsageError: ray is not installed.
    """
    if executor.kind == "ray":
        yield from _on_ray(work, jobs, executor)
        return
    workers = min(executor.jobs or os.cpu_count() or 1, len(jobs))
    if workers <= 1:
        yield from ((place, work(job)) for place, job in enumerate(jobs))
    else:
        yield from _on_processes(work, jobs, workers)


def _on_processes(
    work: Callable[[Job], Done], jobs: Sequence[Job], workers: int
) -> Iterator[tuple[int, Done]]:
    before = set(active_children())
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_be_quiet)
    places: dict[Future[Done], int] = {}
    waiting = iter(enumerate(jobs))
    ended = False
    try:
        while True:
            for place, job in islice(waiting, workers * _AHEAD - len(places)):
                places[pool.submit(work, job)] = place
            if not places:
                ended = True
                return
            done, _ = wait(places, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=places.__getitem__):
                yield places.pop(future), future.result()
    except BrokenProcessPool as error:
        raise FactsError(
            "A process that simulated died.", hint="It may have run out of memory: --jobs 1."
        ) from error
    finally:
        pool.shutdown(wait=ended, cancel_futures=True)
        if not ended:
            for child in set(active_children()) - before:
                child.terminate()


def _be_quiet() -> None:
    """An interrupt is for the parent, which ends its processes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _on_ray(
    work: Callable[[Job], Done], jobs: Sequence[Job], executor: Executor
) -> Iterator[tuple[int, Done]]:
    ray = _connected(executor)
    try:
        remote = ray.remote(num_cpus=1, max_retries=1)(work)
        most = executor.jobs or _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
        places: dict[Any, int] = {}
        waiting = iter(enumerate(jobs))
        while True:
            for place, job in islice(waiting, most - len(places)):
                places[remote.remote(job)] = place
            if not places:
                return
            done, _ = ray.wait(list(places), num_returns=1)
            for reference in done:
                yield places.pop(reference), _result(ray, reference)
    finally:
        ray.shutdown()


def _result(ray: Any, reference: Any) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        # The job's own error, without the cluster's traceback around it.
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise FactsError(
            f"The Ray cluster lost a simulation: {str(error).splitlines()[0]}",
            hint="kvplan has to be installed on every node; --executor processes runs here.",
        ) from error


def _connected(executor: Executor) -> Any:
    if find_spec("ray") is None:
        raise UsageError(
            "--executor ray needs ray, which is not installed.",
            hint="pip install 'kvplan-sizer[ray]', or leave --executor out.",
        )
    # Nothing is reported to anybody.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray = import_module("ray")
    address = executor.address or os.environ.get("RAY_ADDRESS") or "auto"
    _probe(address)
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address == "local":
        options |= {"num_cpus": executor.jobs, "include_dashboard": False}
    try:
        ray.init(address=address, **options)
    except (OSError, ValueError, RuntimeError) as error:
        raise _no_cluster(address, error) from error
    return ray


def _probe(address: str) -> None:
    """Ray itself asks for many minutes whether somebody answers at an address."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE_S).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str, error: Exception) -> FactsError:
    said = str(error).partition("\n")[0]
    return FactsError(
        f"No Ray cluster answers at {shown(address)}: {said}",
        hint="Start one with ray start --head, name it with --ray-address HOST:PORT, or leave"
        " --executor out.",
    )
