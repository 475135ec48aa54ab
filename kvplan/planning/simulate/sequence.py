"""A request on its way through the engine."""

from __future__ import annotations

from kvplan.planning.simulate.content import Chain
from kvplan.workloads.requests import Request


class Holding:
    """Blocks that a request holds of one group.

    Attributes:
        first, last: Its blocks, counted from the start of the prompt; ``last`` not included.
        stored: Blocks up to here can be found by their content.
        copies: Stretches that are a second copy of resident content, as (low, high, blocks).
    """

    __slots__ = ("copies", "first", "last", "stored")

    def __init__(self) -> None:
        self.first: int = 0
        self.last: int = 0
        self.stored: int = 0
        self.copies: list[tuple[int, int, int]] = []


class Sequence:
    """A request and how far it is.

    Attributes:
        number: Its place in the order of arrival.
        length: Tokens at its end, as far as the engine lets it come.
        computed: Tokens whose keys and values are there.
        target: Tokens to compute before the next one is generated.
        generated: Tokens of output so far.
        holdings: One a group.
        joined: Step in which it began to decode.
        admitted_s, first_token_s: Times, or None so far.
        refusals: How often the first in line had been refused when it arrived, by reason.
        lost: Tokens that its preemptions threw away.
    """

    __slots__ = (
        "admitted_s", "chain", "computed", "first_token_s", "generated", "holdings",
        "joined", "length", "lost", "number", "preemptions", "refusals", "request",
        "target",
    )  # fmt: skip

    def __init__(
        self, number: int, request: Request, chain: Chain, *, groups: int, length: int
    ) -> None:
        self.number: int = number
        self.request: Request = request
        self.chain: Chain = chain
        self.length: int = length
        self.computed: int = 0
        self.target: int = request.prompt_tokens
        self.generated: int = 0
        self.holdings: list[Holding] = [Holding() for _ in range(groups)]
        self.joined: int = -1
        self.admitted_s: float | None = None
        self.first_token_s: float | None = None
        self.refusals: tuple[int, int] = (0, 0)
        self.preemptions: int = 0
        self.lost: int = 0

    @property
    def output(self) -> int:
        """Tokens it will have generated at its end."""
        return self.length - self.request.prompt_tokens
