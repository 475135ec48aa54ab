"""What is to be measured: one rank of a plan, as sizes that torch can allocate."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kvplan.engines.vllm.groups import pipeline_stages
from kvplan.engines.vllm.parallel import rank_layout
from kvplan.errors import UsageError
from kvplan.ledger import LedgerLine
from kvplan.models.formats import DTYPE_BYTES, PLAIN, Dtype
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout, RankPart, rank_parts
from kvplan.plan import CacheGroup, Plan

WEIGHTS = "weights."
# MLA's profile run sets aside room for the keys and values of that many tokens of context.
# Source: vLLM 0.33.0, determine_chunked_prefill_workspace_size in
# vllm/model_executor/layers/attention/mla_attention.py.
LATENT_REQUESTS, LATENT_PAGES, LATENT_MOST = 8, 4, 64 * 1024


@dataclass(frozen=True, slots=True)
class Job:
    """One rank of a plan.

    Attributes:
        dtype: The type that the model computes in.
        layout: The rank's part of the model; ``layers`` may be fewer than planned.
        planned_layers: Layers of the rank as planned.
        tokens, requests: Shape of the profile run: tokens of a batch, requests that sample.
        context: Tokens a request may have.
        blocks, bytes_per_block: The planned pool.
        groups: The pool's groups.
        ledger: The plan's lines.
    """

    model: ModelSpec
    dtype: Dtype
    layout: RankLayout
    planned_layers: int
    tokens: int
    requests: int
    context: int
    blocks: int
    bytes_per_block: int
    block_size: int
    groups: tuple[CacheGroup, ...]
    ledger: tuple[LedgerLine, ...]

    @property
    def layer_indices(self) -> range:
        """The layers that are allocated."""
        return range(*self.layout.layers)

    @property
    def scaled(self) -> bool:
        """Whether fewer layers are allocated than planned."""
        return len(self.layer_indices) < self.planned_layers

    @property
    def pool_bytes(self) -> int:
        """The planned pool."""
        return self.blocks * self.bytes_per_block

    @property
    def latent_rows(self) -> int:
        """Tokens of context whose keys and values MLA's profile run makes room for."""
        wanted = max(LATENT_REQUESTS * self.context, LATENT_PAGES * self.requests * self.block_size)
        return min(wanted, LATENT_MOST)

    def weight_bytes(self) -> int:
        """Bytes of the inventory on the allocated layers."""
        return sum(part.bytes for part in self._parts())

    def component_bytes(self) -> dict[str, int]:
        """The same by the ledger's names."""
        sizes: dict[str, int] = {}
        for part in self._parts():
            name = f"{WEIGHTS}{part.component}"
            sizes[name] = sizes.get(name, 0) + part.bytes
        return sizes

    def _parts(self) -> tuple[RankPart, ...]:
        model = self.model
        return rank_parts(model.weights, PLAIN[self.dtype], self.layout, tied=model.tied_embeddings)

    def with_layers(self, count: int) -> Job:
        """The same with only the first ``count`` layers of the rank."""
        if not 1 <= count <= self.planned_layers:
            raise UsageError(
                f"The planned rank has {self.planned_layers} layers, not {count}.",
                hint=f"Give a number from 1 to {self.planned_layers}.",
                location="--layers",
            )
        start = self.layout.layers[0]
        layout = self.layout.model_copy(update={"layers": (start, start + count)})
        return replace(self, layout=layout)


def job_of(plan: Plan, model: ModelSpec) -> Job:
    """The rank that the plan's ledger shows.

    Args:
        plan: An answer with a ledger: not a refusal, not one for a given pool.
        model: What was planned, in the planned format.

    Raises:
        UsageError: the plan has no memory to measure, or is of another engine than vLLM.
    """
    if plan.engine.name != "vllm":
        raise UsageError(
            f"Plans for {plan.engine.name} can't be measured yet.", hint="Use --engine vllm."
        )
    weights = {line.name: line.bytes for line in plan.ledger if line.name.startswith(WEIGHTS)}
    if plan.capacity is None or not weights:
        raise UsageError(
            "This plan says nothing of weights and activations, so there is nothing to measure.",
            hint="Plan a model that is modelled, without --kv-budget.",
        )
    options = plan.engine.options
    dtype: Dtype = next(name for name in DTYPE_BYTES if name == options["dtype"])
    layout = _layout(plan, model, dtype, weights)
    capacity = plan.capacity
    return Job(
        model=model,
        dtype=dtype,
        layout=layout,
        planned_layers=layout.layers[1] - layout.layers[0],
        tokens=int(options["max_num_batched_tokens"]),
        requests=min(int(options["max_num_seqs"]), int(options["max_num_batched_tokens"])),
        context=plan.workload.context or model.max_context or 1,
        blocks=capacity.blocks,
        bytes_per_block=capacity.bytes_per_block,
        block_size=capacity.block_size,
        groups=capacity.groups,
        ledger=plan.ledger,
    )


def _layout(plan: Plan, model: ModelSpec, dtype: Dtype, weights: dict[str, int]) -> RankLayout:
    """The stage whose weights the ledger shows: the fullest one."""
    stages = pipeline_stages(len(model.layers), plan.parallelism.pp)
    layouts = [
        rank_layout(plan.parallelism, stage, index, len(stages))
        for index, stage in enumerate(stages)
    ]

    def distance(layout: RankLayout) -> int:
        parts = rank_parts(model.weights, PLAIN[dtype], layout, tied=model.tied_embeddings)
        found = sum(part.bytes for part in parts)
        return abs(
            found
            - sum(
                weights.get(f"{WEIGHTS}{part.component}", 0)
                for part in {part.component: part for part in parts}.values()
            )
        )

    return min(layouts, key=distance)
