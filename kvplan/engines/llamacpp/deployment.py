"""A prepared llama.cpp configuration, and the figures it gives for a length of request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from kvplan.engines.base import Answer, Figures, PoolUnits, ReplicaPools, Setup
from kvplan.engines.llamacpp import answer as answers
from kvplan.engines.llamacpp import fit
from kvplan.engines.llamacpp.allocation import Allocation, End, allocate
from kvplan.engines.llamacpp.context import Context, context_of
from kvplan.engines.llamacpp.devices import Machine
from kvplan.engines.llamacpp.fit import Choice
from kvplan.engines.llamacpp.history import Rules
from kvplan.engines.llamacpp.layout import Body, Layout, lay_out
from kvplan.engines.llamacpp.placement import place
from kvplan.engines.llamacpp.settings import MAX_SEQUENCES, Settings
from kvplan.engines.llamacpp.wording import OWN, Wording


@dataclass(frozen=True)
class LlamaCppDeployment:
    """A prepared configuration (see `kvplan.engines.base.Prepared`).

    Attributes:
        body: The model as it is loaded.
        draft: What drafts tokens for it, or None.
    """

    setup: Setup
    version: str
    rules: Rules
    settings: Settings
    machine: Machine
    body: Body
    draft: Body | None
    wording: Wording = OWN
    _made: dict[tuple[int, int, Choice | None], Allocation] = field(
        default_factory=dict, compare=False, repr=False
    )
    _laid: dict[Choice, Layout] = field(default_factory=dict, compare=False, repr=False)

    def slots(self, context: int, concurrency: int | None) -> int:
        """Sequences of one server.

        As given; as many as are asked of a replica; as many of ``context`` tokens, if anyone asked
        for a length, as a given n_ctx has room for; or one.
        """
        if self.settings.n_seq_max is not None:
            return self.settings.n_seq_max
        if concurrency is not None:
            return min(MAX_SEQUENCES, -(-concurrency // self.setup.parallelism.dp))
        if self.settings.n_ctx is None or context == self.setup.model.max_context:
            return 1
        return min(MAX_SEQUENCES, max(1, self.requested(context, 1) // context))

    @property
    def open_ended(self) -> bool:
        """Whether nobody says how many slots there are, so that memory limits them."""
        return self.settings.n_seq_max is None and self.settings.n_ctx is None

    def requested(self, context: int, sequences: int) -> int:
        """Cells that the server is started with: n_ctx, or enough for all sequences."""
        n_ctx = self.settings.n_ctx
        if n_ctx is None:
            return context * sequences
        return n_ctx or self.setup.model.max_context or context

    def context(self, requested: int, sequences: int) -> Context:
        """The context as it is allocated."""
        return context_of(
            requested,
            sequences,
            unified=self.settings.kv_unified,
            n_batch=self.settings.n_batch,
            n_ubatch=self.settings.n_ubatch,
        )

    def allocation(
        self, requested: int, sequences: int, choice: Choice | None = None
    ) -> Allocation:
        """One start with so many cells; ``choice`` places it otherwise than was asked for."""
        key = (requested, sequences, choice)
        if key not in self._made:
            self._made[key] = self._allocate(requested, sequences, choice)
        return self._made[key]

    def _allocate(self, requested: int, sequences: int, choice: Choice | None) -> Allocation:
        context = self.context(requested, sequences)
        return allocate(
            self.body,
            self.draft,
            machine=self.machine,
            settings=self.settings,
            context=context,
            layout=self._layout(choice or self._chosen(requested, sequences)),
            n_outputs=self._outputs(context),
            budget=self.setup.kv_budget,
        )

    def _layout(self, choice: Choice) -> Layout:
        """Where everything lies; a search asks for few choices with many lengths."""
        if choice not in self._laid:
            shares = list(choice.tensor_split) or self._free_shares()
            shares += [0.0] * (len(self.machine.gpus) - len(shares))
            self._laid[choice] = lay_out(
                self.body,
                self.draft,
                gpus=len(self.machine.gpus),
                settings=self.settings,
                placement=place(self.body.file_layers, choice.n_gpu_layers, shares),
                experts_on_host=choice.experts_on_host,
            )
        return self._laid[choice]

    def _free_shares(self) -> list[float]:
        """What each GPU takes without tensor_split: by free memory; alike where none has any."""
        free = [float(gpu.free) for gpu in self.machine.gpus]
        return free if any(free) else [1.0] * len(free)

    @property
    def idle(self) -> LlamaCppDeployment:
        """The same configuration on GPUs that nobody else uses."""
        return replace(self, machine=self.machine.idle, _made={}, _laid={})

    def _outputs(self, context: Context) -> int:
        """Tokens of a batch whose logits have room."""
        given = self.settings.n_outputs_max
        if given is not None:
            return given or context.n_ubatch
        if not self.rules.outputs_limited:
            return context.n_ubatch
        drafted = self.settings.spec_draft_n_max if self.settings.drafts else 0
        return context.sequences * (1 + drafted)

    def _chosen(self, requested: int, sequences: int) -> Choice:
        settings, layers = self.settings, self.body.file_layers
        if settings.n_gpu_layers == "auto" and self.machine.gpus:
            return self.fitted(requested, sequences)
        wanted = settings.n_gpu_layers
        count = wanted if isinstance(wanted, int) else layers + 1
        held = layers if settings.cpu_moe else settings.n_cpu_moe
        return Choice(count, settings.tensor_split, frozenset(range(min(held, layers))))

    def fitted(self, requested: int, sequences: int) -> Choice:
        """What ``--fit`` chooses for so many cells."""
        experts = [index for index, part in enumerate(self.body.weights.experts) if part]
        return fit.choose(
            lambda choice: self.allocation(requested, sequences, choice),
            layers=self.body.file_layers,
            gpus=len(self.machine.gpus),
            margin=self.settings.fit_target_bytes,
            experts=experts,
        )

    @cached_property
    def limit(self) -> int:
        """The longest context the model allows, or what was asked where it is longer."""
        return max(self.setup.model.max_context or 0, self.setup.context or 1)

    def length(self, context: int, sequences: int) -> int:
        """The length a request may have: n_ctx overrides what was asked for.

        The model's own maximum stands for a length that nobody asked for.
        """
        if self.settings.n_ctx is None:
            return context
        start = self.context(self.requested(context, sequences), sequences)
        unstated = context == self.setup.model.max_context
        return start.n_ctx_seq if unstated else min(context, start.n_ctx_seq)

    def longest_context(self) -> int:
        """The longest request that a start of so many sequences holds; 0: none."""
        sequences = self.settings.n_seq_max or 1
        start = self.allocation(self.requested(self.limit, sequences), sequences)
        if start.fits:
            return min(self.limit, start.context.n_ctx_seq)
        return largest(
            self.limit, lambda context: self.allocation(context * sequences, sequences).fits
        )

    def held(self, context: int, sequences: int, end: End = "likely") -> int:
        """Requests of ``context`` tokens that one server holds at once.

        Args:
            context: Tokens.
            sequences: Slots of the start, which count where they or n_ctx are given, or where a
                host whose memory nobody stated has to take a part.
            end: Of the ranges of what is not exact.
        """
        if not self.open_ended:
            return self._served(context, sequences, end)
        return max(self._served(context, sequences, end), self._most(context, end))

    def _most(self, context: int, end: End) -> int:
        """Slots that the memory holds, as far as it is known."""
        return largest(
            MAX_SEQUENCES,
            lambda count: (
                self._served(context, count, end) >= count
                and not self.allocation(self.requested(context, count), count).on_unknown_host
            ),
        )

    def _served(self, context: int, sequences: int, end: End) -> int:
        """Requests that a start of so many slots holds; 0 where it does not fit."""
        start = self.allocation(self.requested(context, sequences), sequences)
        if not start.fits_at(end):
            return 0
        if self.settings.kv_unified:
            return min(sequences, start.context.n_ctx // context)
        return sequences if start.context.n_ctx_seq >= context else 0

    def tokens(self, start: Allocation, context: int, held: int) -> int:
        """Cells of a start with so many requests: what n_ctx is, or would have to be."""
        if self.open_ended:
            return self.context(self.requested(context, held), held).n_ctx if held else 0
        return start.context.n_ctx if start.fits else 0

    def figures(self, context: int) -> Figures:
        """Capacity for requests of ``context`` tokens."""
        sequences = self.slots(context, None)
        context = self.length(context, sequences)
        start = self.allocation(self.requested(context, sequences), sequences)
        held = self.held(context, sequences)
        tokens = self.tokens(start, context, held)
        return Figures(
            blocks=tokens // answers.BLOCK,
            tokens=tokens,
            max_concurrency=tokens / context,
            max_context=self.longest_context(),
            requests=held * self.setup.parallelism.dp,
            starts=start.fits,
        )

    def answer(self, context: int, concurrency: int | None) -> Answer:
        """The full answer for ``concurrency`` requests of ``context`` tokens."""
        return answers.build(self, context, concurrency)

    def pools(self, context: int) -> ReplicaPools:
        """Cells that all sequences share, or else a slot of its own for each."""
        slots = self.slots(context, None)
        context = self.length(context, slots)
        held = count = self.held(context, slots)
        unit = "slot"
        if self.settings.kv_unified:
            start = self.allocation(self.requested(context, slots), slots)
            count, unit = self.tokens(start, context, held), "cell"
        return ReplicaPools(
            pools=(PoolUnits("kv", unit, count),),
            sequences=self.settings.n_seq_max or held,
            replicas=self.setup.parallelism.dp,
            step=1 if self.settings.kv_unified else answers.BLOCK,
        )

    def request_units(self, tokens: int) -> tuple[int, ...]:
        """Cells of a shared cache, or one slot whatever its length."""
        return (tokens if self.settings.kv_unified else 1,)

    def own_units(self, tokens: int, shared: int) -> tuple[int, ...]:  # noqa: ARG002
        """The same: sequences share no cells."""
        return self.request_units(tokens)


def largest(most: int, holds: Callable[[int], bool]) -> int:
    """The largest number from 1 to ``most`` that holds, or 0. Bisection."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low
