"""What comes when: requests at their times, and turns that wait for the answer before them."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush

from kvplan.workloads.requests import Request


class Arriving:
    """Requests on their way to the engine.

    Args:
        requests: In order of arrival.

    Attributes:
        next_s: When something comes; infinity: nothing does, unless an answer ends.
    """

    def __init__(self, requests: Iterator[Request]) -> None:
        self._requests = requests
        self._next = next(requests, None)
        self._count = 0
        self._due: list[tuple[float, int, Request]] = []
        # Of each conversation that waits for its answers: turns behind the one that runs, ...
        self._behind: defaultdict[str, deque[Request]] = defaultdict(deque)
        # ... and when its last answer ended; infinity while one is on its way.
        self._ended: dict[str, float] = {}
        self.next_s: float = self._soonest()

    def until(self, now: float) -> Iterator[Request]:
        """Takes who has come by now, in order."""
        while self.next_s <= now:
            if self._next is not None and self._next.arrival_s <= self.next_s:
                self._take(self._next)
                self._next = next(self._requests, None)
            else:
                time_s, _, request = heappop(self._due)
                late = time_s > request.arrival_s
                yield replace(request, arrival_s=time_s) if late else request
            self.next_s = self._soonest()

    def answered(self, request: Request, now: float) -> None:
        """A request is done, or was refused: the next turn of its conversation may come."""
        session = request.session
        if session is None or session not in self._ended:
            return
        self._ended[session] = now
        if self._behind[session]:
            self._after(self._behind[session].popleft(), session)
        self.next_s = self._soonest()

    def _take(self, request: Request) -> None:
        session = request.session
        if session is None or request.pause_s is None:
            self._push(request.arrival_s, request)
        elif self._ended.get(session, -math.inf) == math.inf:
            self._behind[session].append(request)
        else:
            self._after(request, session)

    def _after(self, request: Request, session: str) -> None:
        """Lets a turn come a pause after the answer before it, and not before its own time."""
        ended = self._ended.get(session, -math.inf)
        self._ended[session] = math.inf
        self._push(max(request.arrival_s, ended + (request.pause_s or 0.0)), request)

    def _push(self, time_s: float, request: Request) -> None:
        heappush(self._due, (time_s, self._count, request))
        self._count += 1

    def _soonest(self) -> float:
        due = self._due[0][0] if self._due else math.inf
        return due if self._next is None else min(due, self._next.arrival_s)
