"""Work that is given up when its time is over."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

ResultT = TypeVar("ResultT")

THREAD_NAME = "kvplan-within-time"


def all_within(
    jobs: Sequence[Callable[[], ResultT]], *, seconds: float, workers: int = 1
) -> list[ResultT]:
    """Runs jobs in threads, and leaves them behind when ``seconds`` are over.

    A network call can outlast every time-out it is given: clients retry, and a server may send
    one byte at a time. The threads are daemons, so one left behind keeps no process alive.

    Returns:
        The jobs' results, in their order.

    Raises:
        TimeoutError: time was over before all were done.
        Exception: whatever the first failing job raised; jobs not begun are dropped.
    """
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, ResultT] | Exception] = queue.SimpleQueue()
    for number in range(len(jobs)):
        todo.put(number)
    for _ in range(min(workers, len(jobs))):
        arguments = (jobs, todo, done)
        threading.Thread(target=_work, args=arguments, name=THREAD_NAME, daemon=True).start()
    return _collect(len(jobs), done, todo, time.monotonic() + seconds)


def _work(
    jobs: Sequence[Callable[[], ResultT]],
    todo: queue.SimpleQueue[int],
    done: queue.SimpleQueue[tuple[int, ResultT] | Exception],
) -> None:
    while True:
        try:
            number = todo.get_nowait()
        except queue.Empty:
            return
        try:
            done.put((number, jobs[number]()))
        except Exception as error:  # noqa: BLE001  raised again where the caller waits
            done.put(error)


def _collect(
    count: int,
    done: queue.SimpleQueue[tuple[int, ResultT] | Exception],
    todo: queue.SimpleQueue[int],
    until: float,
) -> list[ResultT]:
    results: dict[int, ResultT] = {}
    try:
        while len(results) < count:
            match done.get(timeout=max(0.0, until - time.monotonic())):
                case Exception() as error:
                    raise error
                case (number, result):
                    results[number] = result
    except queue.Empty:
        raise TimeoutError from None
    finally:
        _empty(todo)
    return [results[number] for number in range(count)]


def _empty(todo: queue.SimpleQueue[int]) -> None:
    while True:
        try:
            todo.get_nowait()
        except queue.Empty:
            return
