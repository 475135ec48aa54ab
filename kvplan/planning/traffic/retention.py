"""Idle sessions whose cache is kept for their next turn, up to a time to live.

Blocks that are kept on purpose (pinned) are not free: whoever runs has the rest. That is the cost
of a time to live. Blocks that an engine merely has not reused yet, as in an LRU cache, cost
nobody anything; a simulation shows how much of them is found again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kvplan.errors import UsageError
from kvplan.workloads.lengths import Pair


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a session's blocks are kept after an answer.

    Attributes:
        ttl_s: At most so long.
        think_s: Mean seconds until the next turn, exponentially distributed.
        last: For a request's (prompt, output) tokens the share of such requests that no turn
            follows: they are kept for the whole time to live, in vain.
    """

    ttl_s: float
    think_s: float
    last: Mapping[tuple[int, int], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (0 < self.ttl_s < math.inf and 0 <= self.think_s < math.inf):
            raise UsageError("A time to live is above 0.", hint="Write --retain 5min.")

    @property
    def found(self) -> float:
        """The share of next turns that come in time."""
        return 1 - math.exp(-self.ttl_s / self.think_s) if self.think_s else 1.0

    @property
    def until_next_s(self) -> float:
        """Mean seconds that a session is kept which goes on: the shorter of pause and limit."""
        return self.think_s * self.found

    def kept_s(self, prompt: int, output: int) -> float:
        """Mean seconds that the blocks of such a request are kept after its last token."""
        over = self.last.get((prompt, output), 0.0)
        return (1 - over) * self.until_next_s + over * self.ttl_s

    def over(self, before: Iterable[Pair], after: Iterable[Pair]) -> Retention:
        """The same rule for requests whose lengths became others: cut, or with a prefix in front.

        Args:
            before: Requests as ``last`` knows them.
            after: The same ones in the same order. Where several became alike, their shares of
                last turns are averaged.
        """
        if not self.last:
            return self
        whole: dict[tuple[int, int], float] = {}
        ended: dict[tuple[int, int], float] = {}
        for (prompt, output, share), (now_prompt, now_output, _) in zip(before, after, strict=True):
            now = (now_prompt, now_output)
            whole[now] = whole.get(now, 0.0) + share
            ended[now] = ended.get(now, 0.0) + share * self.last.get((prompt, output), 0.0)
        return replace(
            self, last={now: ended[now] / share for now, share in whole.items() if share}
        )
