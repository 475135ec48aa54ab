"""The changes worth trying where a plan falls short, each with what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvplan.engines.base import Engine, Setup
from kvplan.errors import RefusedError
from kvplan.hardware import GpuSpec
from kvplan.plan import Capacity, Plan
from kvplan.planning.elsewhere import Elsewhere, larger_gpus, other_engines
from kvplan.planning.sharing import shortest_prefix
from kvplan.planning.spreading import SPREADING

MAX_TP = 16
# Options that limit the tokens of a step, by engine, and what is tried instead of larger ones.
BATCHES = ("max_num_batched_tokens", "chunked_prefill_size", "max_num_tokens")
SMALLER_BATCHES = (4096, 2048)
HIGH_UTILIZATION = 0.95
# What llama.cpp and Ollama call the slots, and the cells of all of them.
_SLOTS_BY_ENGINE = {"llama.cpp": "n_seq_max", "ollama": "num_parallel"}
_SLOTS = ("n_seq_max", "parallel", "n_parallel", "np", "num_parallel")
_CELLS_OF_ALL = ("n_ctx", "ctx_size", "c")


@dataclass(frozen=True, slots=True)
class Case:
    """A configuration that falls short.

    Attributes:
        capacity: That of the plan.
        context: Tokens a request that were planned for.
        longest: Whether that was to be the longest that fits: a change then moves it.
        target: Requests that were asked for; 1 if none were.
        elsewhere: Other GPUs and engines, or None: they are not tried.
    """

    engine: Engine
    setup: Setup
    plan: Plan
    capacity: Capacity
    context: int
    longest: bool
    target: int
    elsewhere: Elsewhere | None = None

    @property
    def nothing_fits(self) -> bool:
        """Whether not even one token fits where the longest context was asked for."""
        return self.longest and self.capacity.max_context < 1

    @property
    def planned_context(self) -> int | None:
        """Tokens that a changed configuration is prepared for."""
        return self.context if self.longest and not self.nothing_fits else self.setup.context


@dataclass(frozen=True, slots=True)
class Trial:
    """A change to try.

    Attributes:
        change: Arguments of `kvplan.size` by name.
        options: Engine options to set.
        context: A shorter length to plan for, or None for the one that was asked.
        gpus: Devices it adds.
        last_resort: It changes what was asked for, or only multiplies what there is.
        ladder: Steps of one name go on only until one of them reaches the target.
        pairs: It may be combined with another change.
        gpu, engine: What it runs on instead.
        shared: Tokens that all requests have in common at their beginning; nothing is changed
            but the requests.
        held: The requests then.
    """

    action: str
    change: Mapping[str, Any]
    cost: str
    options: Mapping[str, Any] = field(default_factory=dict)
    context: int | None = None
    gpus: int = 0
    last_resort: bool = False
    ladder: str | None = None
    pairs: bool = False
    gpu: GpuSpec | None = None
    engine: Engine | None = None
    shared: int = 0
    held: int = 0

    @property
    def moves(self) -> bool:
        """Whether it takes other hardware or another server, rather than more of the same."""
        return self.gpu is not None or self.engine is not None


def single_changes(case: Case) -> Iterator[Trial]:
    """Single changes, the gentlest first."""
    yield from _more_seqs(case)
    yield from _more_slots(case)
    yield from _smaller_batch(case)
    yield from _blocks(case) if case.engine.name in SPREADING else _formats(case.setup)
    yield from _shared_prefix(case)
    yield from _on_host(case)
    yield from other_engines(case, Trial)
    yield from larger_gpus(case, Trial)
    yield from _more_gpus(case)
    yield from _utilization()
    yield from _shorter(case)


def _more_seqs(case: Case) -> Iterator[Trial]:
    if any(reason.code == "max_num_seqs" for reason in case.plan.reasons):
        seqs = -(-case.target // case.setup.parallelism.dp)
        options = {"max_num_seqs": seqs}
        if seqs > case.plan.engine.options.get("max_num_batched_tokens", seqs):
            # The engine refuses fewer batched tokens than requests.
            options["max_num_batched_tokens"] = seqs
        shown = ", ".join(f"{name}={value:,}" for name, value in options.items())
        yield Trial(
            action=f"Admit more requests at once: {shown}",
            change={"engine_options": options},
            options=options,
            pairs=True,
            cost="A larger sampling buffer, which the gain accounts for.",
        )


def _more_slots(case: Case) -> Iterator[Trial]:
    """Of servers that are started with a number of slots."""
    if not any(reason.code == "slots_full" for reason in case.plan.reasons):
        return
    given = case.setup.options
    slots = -(-case.target // case.setup.parallelism.dp)
    own = next((name for name in _SLOTS if name in given), None)
    options: dict[str, int] = {own or _SLOTS_BY_ENGINE[case.engine.name]: slots}
    for name in _CELLS_OF_ALL:
        if name in given:
            options[name] = slots * case.context
    shown = ", ".join(f"{name}={value:,}" for name, value in options.items())
    yield Trial(
        action=f"Start with more slots: {shown}",
        change={"engine_options": options},
        options=options,
        pairs=True,
        cost="Memory for each, which the gain accounts for.",
    )


def _smaller_batch(case: Case) -> Iterator[Trial]:
    """Fewer tokens a step: less memory for activations, and fewer blocks in flight."""
    for name in BATCHES:
        now = case.plan.engine.options.get(name)
        for tokens in SMALLER_BATCHES:
            if isinstance(now, int) and now > tokens:
                yield Trial(
                    action=f"Compute fewer tokens a step: {name}={tokens:,}",
                    change={"engine_options": {name: tokens}},
                    options={name: tokens},
                    ladder="batch",
                    pairs=tokens == SMALLER_BATCHES[0],
                    cost="Long prompts take more steps, so their first token comes later.",
                )


def _shared_prefix(case: Case) -> Iterator[Trial]:
    """What traffic whose requests begin alike would need to have in common."""
    if case.longest or case.capacity.requests < 1:
        return
    try:
        prepared = case.engine.prepare(case.setup)
    except RefusedError:
        return
    found = shortest_prefix(prepared, case.context, case.target, case.capacity.requests)
    if found is None:
        return
    shared, held = found
    yield Trial(
        action=f"Let all requests begin with the same {shared:,} tokens",
        change={},
        last_resort=True,
        shared=shared,
        held=held,
        cost=f"Nothing, if {shared / case.context:.0%} of every request is one shared prompt.",
    )


def _on_host(case: Case) -> Iterator[Trial]:
    """The cache in the host's memory, where an engine can attend to it there."""
    if case.plan.engine.options.get("no_kv_offload") is False:
        options = {"no_kv_offload": True}
        yield Trial(
            action="Keep the cache in the host's memory",
            change={"engine_options": options},
            options=options,
            cost="Attention runs on the CPU: many times slower. The host needs the memory.",
        )


def _blocks(case: Case) -> Iterator[Trial]:
    """Of engines that read GGUF files, whose caches have their types."""
    if case.setup.kv_dtype == "auto":
        yield Trial(
            action="Store the KV cache in q8_0",
            change={"kv_dtype": "q8_0"},
            pairs=True,
            cost="Hardly any accuracy; needs flash attention.",
        )


def _formats(setup: Setup) -> Iterator[Trial]:
    if setup.kv_dtype == "auto":
        yield Trial(
            action="Store the KV cache in FP8",
            change={"kv_dtype": "fp8"},
            pairs=True,
            cost="Some accuracy on long contexts; check on your own prompts.",
        )
    if setup.kv_budget is None and setup.model.quantization is None:
        yield Trial(
            action="Quantize the weights to FP8",
            change={"weights": "fp8"},
            pairs=True,
            cost="A little accuracy; a quantized checkpoint has to exist or be made.",
        )
        yield Trial(
            action="Quantize the weights to 4 bits (AWQ)",
            change={"weights": "awq"},
            pairs=True,
            cost="More accuracy than FP8 loses; a quantized checkpoint has to exist or be made.",
        )


def _more_gpus(case: Case) -> Iterator[Trial]:
    parallel = case.setup.parallelism
    if case.setup.kv_budget is None:
        yield from _wider(case)
    held = case.capacity.requests // parallel.dp
    if held:
        dp = -(-case.target // held)
        added = (dp - parallel.dp) * parallel.tp * parallel.pp
        yield Trial(
            action=f"Run {dp} replicas instead of {parallel.dp} (data parallel)",
            change={"dp": dp},
            gpus=added,
            last_resort=True,
            cost=f"{_gpus(added)}.",
        )


def _wider(case: Case) -> Iterator[Trial]:
    """More ranks a replica: twice, four times ... as many; and twice as many stages."""
    parallel = case.setup.parallelism
    tp = parallel.tp * 2
    while tp <= MAX_TP:
        added = (tp - parallel.tp) * parallel.pp * parallel.dp
        yield Trial(
            action=f"Split over {tp} GPUs instead of {parallel.tp} (tensor parallel)",
            change={"tp": tp},
            gpus=added,
            ladder="tp",
            pairs=True,
            cost=f"{_gpus(added)}, and more traffic between them.",
        )
        tp *= 2
    yield Trial(
        action=f"Split the layers over {parallel.pp * 2} stages (pipeline parallel)",
        change={"pp": parallel.pp * 2},
        gpus=parallel.gpus,
        cost=f"{_gpus(parallel.gpus)}, and bubbles between the stages.",
    )


def _gpus(count: int) -> str:
    return "1 more GPU" if count == 1 else f"{count:,} more GPUs"


def _utilization() -> Iterator[Trial]:
    # Where it is as high already, or does not count, there is no gain and so no advice.
    options = {"gpu_memory_utilization": HIGH_UTILIZATION}
    yield Trial(
        action=f"Raise gpu_memory_utilization to {HIGH_UTILIZATION}",
        change={"engine_options": options},
        options=options,
        cost="Less room for what the budget does not count; risky where others use the GPU.",
    )


def _shorter(case: Case) -> Iterator[Trial]:
    """The longest context at which the asked concurrency is held."""
    if case.nothing_fits:
        return
    try:
        prepared = case.engine.prepare(case.setup)
    except RefusedError:
        return
    low, high = 0, case.context - 1
    while low < high:
        middle = (low + high + 1) // 2
        if prepared.figures(middle).requests >= case.target:
            low = middle
        else:
            high = middle - 1
    if low:
        yield Trial(
            action=f"Cap requests at {low:,} tokens",
            change={"context": low},
            last_resort=True,
            context=low,
            cost="Longer requests are refused.",
        )


def pairs_of(trials: Sequence[Trial]) -> Iterator[Trial]:
    """A cheaper format together with each other change that can go with it."""
    for index, first in enumerate(trials):
        for second in trials[index + 1 :]:
            if first.pairs and second.pairs and not set(first.change) & set(second.change):
                yield Trial(
                    action=f"{first.action}, and {second.action[0].lower()}{second.action[1:]}",
                    change={**first.change, **second.change},
                    options={**first.options, **second.options},
                    cost=f"{first.cost} {second.cost}",
                    gpus=first.gpus + second.gpus,
                    # Steps that go with one format end where they are enough.
                    ladder=f"{first.action} and {second.ladder}" if second.ladder else None,
                )
