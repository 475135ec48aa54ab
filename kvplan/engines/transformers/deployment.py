"""A prepared configuration of transformers, and the figures it gives for a length of request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from kvplan.engines.base import Answer, Figures, ReplicaPools
from kvplan.engines.transformers import answer as answers
from kvplan.engines.transformers.frame import Frame
from kvplan.engines.transformers.kept import Kept
from kvplan.engines.transformers.memory import Stage, activation, cuda_context
from kvplan.engines.transformers.sizes import Size, cache_size
from kvplan.errors import NotModelledError

End = Literal["likely", "scarce", "ample"]
# More sequences than any device holds: an end for searches where a sequence keeps nothing.
MOST_SEQUENCES = 2**31
_PACKING_STEP = 64


@dataclass(frozen=True)
class TransformersDeployment:
    """A prepared configuration (see `kvplan.engines.base.Prepared`).

    Attributes:
        stages: The devices of one replica.
        given: Bytes for the cache by stage where the caller gave them, else None.
        used_by_others: Bytes that other programs hold on the fullest card.
    """

    frame: Frame
    stages: tuple[Stage, ...]
    given: tuple[int, ...] | None
    used_by_others: int = 0

    @property
    def idle(self) -> TransformersDeployment:
        """The same configuration on cards that nobody else uses."""
        return replace(self, used_by_others=0)

    def kept(self, stage: int) -> tuple[Kept, ...]:
        """What the layers of a stage keep."""
        layers = self.stages[stage].layers
        held = (
            (part, tuple(index for index in part.layers if index in layers))
            for part in self.frame.kept
        )
        return tuple(Kept(p.kind, p.rows, p.state_bytes, own) for p, own in held if own)

    @cached_property
    def _kept(self) -> tuple[tuple[Kept, ...], ...]:
        return tuple(self.kept(stage) for stage in range(len(self.stages)))

    def size(self, stage: int, batch: int, context: int) -> Size:
        """Tensors and storage of a stage at the end of a generation."""
        frame = self.frame
        moment = frame.moment(batch, context)
        return cache_size(self._kept[stage], frame.layout(context), moment)

    def peak_storage(self, stage: int, batch: int, context: int) -> int:
        """The most storage at any time: right after the prompt views keep it whole."""
        after = self.size(stage, batch, context).storage
        if not self.frame.options.decode_steps:
            return after
        frame = self.frame
        prompt = type(frame.moment(batch, context))(batch=batch, prompt=context)
        layout = frame.layout(context)
        return max(after, cache_size(self._kept[stage], layout, prompt).storage)

    def room(self, stage: int, end: End = "likely") -> int:
        """Bytes for cache and activations; for the cache alone where they were given."""
        if self.given is not None:
            return self.given[stage]
        device, context = self.frame.device, cuda_context()
        total = {"likely": device.total, "scarce": device.low, "ample": device.high}[end]
        driver = {"likely": None, "scarce": context.high, "ample": context.low}[end]
        taken = context.value(driver) + self.used_by_others
        return total - taken - self.stages[stage].weight_bytes

    def need(self, stage: int, batch: int, context: int, end: End = "likely") -> int:
        """Bytes that ``batch`` requests take of that room."""
        cache = self.peak_storage(stage, batch, context)
        if self.given is not None:
            return cache
        draft = activation(self.frame, self.stages[stage], batch, context)
        return cache + draft.value({"likely": None, "scarce": draft.high, "ample": draft.low}[end])

    def most(self, stage: int, context: int, end: End = "likely") -> int:
        """The largest batch that a stage holds."""
        asked = (stage, context, end)
        if asked not in self._found:
            room = self.room(stage, end)
            self._found[asked] = _largest(
                lambda batch: self.need(stage, batch, context, end) <= room, MOST_SEQUENCES
            )
        return self._found[asked]

    @cached_property
    def _found(self) -> dict[tuple[int, int, End], int]:
        """What `most` found: the figures of one length ask for it several times."""
        return {}

    def fullest(self, context: int) -> int:
        """The stage that runs out first."""
        return min(
            range(len(self.stages)),
            key=lambda stage: (self.most(stage, context), self.room(stage)),
        )

    def batch(self, context: int, concurrency: int | None) -> int:
        """Sequences of one replica: as the option says, or those asked for that fit, at least 1."""
        if self.frame.options.batch_size is not None:
            return self.frame.options.batch_size
        dp = self.frame.setup.parallelism.dp
        asked = -(-(concurrency or 1) // dp)
        return max(1, min(asked, self.requests(context) // dp))

    def requests(self, context: int, end: End = "likely") -> int:
        """Whole requests over the deployment; a given batch is held whole or not at all."""
        if not self.holds_length(context):
            return 0
        stages = range(len(self.stages))
        most = min(self.most(stage, context, end) for stage in stages)
        given = self.frame.options.batch_size
        held = most if given is None else given * (given <= most)
        return held * self.frame.setup.parallelism.dp

    def holds_length(self, context: int) -> bool:
        """Whether a static cache is long enough."""
        static = self.frame.static_len(context)
        return static is None or context + self.frame.options.decode_steps <= static

    @cached_property
    def limit(self) -> int:
        """The longest context the model itself allows, or what was asked where it is longer."""
        setup = self.frame.setup
        return max(setup.model.max_context or 0, setup.context or 1)

    def longest_context(self) -> int:
        """The longest prompt that a batch can have, at most the model's own maximum."""
        return self._longest

    @cached_property
    def _longest(self) -> int:
        batch = self.frame.options.batch_size or 1
        return _largest(lambda context: self._fits(batch, context), self.limit)

    def _fits(self, batch: int, context: int) -> bool:
        return self.holds_length(context) and all(
            self.need(stage, batch, context) <= self.room(stage)
            for stage in range(len(self.stages))
        )

    def concurrency(self, context: int, end: End = "likely") -> float:
        """Requests for which there is room, the last one in part."""
        if not self.holds_length(context):
            return 0.0
        stage = self.fullest(context)
        need = self.need(stage, 1, context, end)
        return max(0, self.room(stage, end)) / need if need else float(MOST_SEQUENCES)

    def growth(self, stage: int, context: int) -> float:
        """Bytes that one more token of a prompt adds to a request."""
        step = 1 if self.frame.scheme is None else _PACKING_STEP
        before, after = (self.size(stage, 1, length) for length in (context, context + step))
        return (after.tensor - before.tensor) / step

    def figures(self, context: int) -> Figures:
        """Capacity for requests of ``context`` tokens."""
        concurrency = self.concurrency(context)
        tokens = int(concurrency * context)
        return Figures(
            blocks=tokens,
            tokens=tokens,
            max_concurrency=concurrency,
            max_context=self.longest_context(),
            requests=self.requests(context),
            starts=self._fits(self.frame.options.batch_size or 1, context),
        )

    def answer(self, context: int, concurrency: int | None) -> Answer:
        """The full answer for ``concurrency`` requests of ``context`` tokens."""
        return answers.build(self, context, concurrency)

    def pools(self, context: int) -> ReplicaPools:
        """None: a batch starts and ends together.

        Raises:
            NotModelledError: always.
        """
        raise NotModelledError(
            f"transformers has no pool that requests of up to {context:,} tokens come and go in: "
            "a batch is one piece.",
            hint="Plan traffic for an engine that serves: vllm, sglang, tensorrt-llm, llama.cpp.",
        )

    def request_units(self, tokens: int) -> tuple[int, ...]:  # noqa: ARG002  see pools
        """None: see `pools`."""
        return ()

    def own_units(self, tokens: int, shared: int) -> tuple[int, ...]:  # noqa: ARG002  see pools
        """None: see `pools`."""
        return ()


def _largest(holds: Callable[[int], bool], most: int) -> int:
    """The largest number up to ``most`` that holds, given that fewer do too; 0 if none does."""
    low, high = 0, 1
    while high <= most and holds(high):
        low, high = high, high * 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
