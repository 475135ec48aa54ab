"""What changed between vLLM releases, as one table of dated rows.

Each row names the minor release in which the value first appears; `rules_for` folds the rows
up to a version into one flat record. Dates were read from one wheel of every minor release
(0.9.2 to 0.33.0); patch releases inside a minor were not compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

from kvplan.engines.base import Version, parse_version
from kvplan.errors import EngineRefusesError

NEWEST = "0.33.0"


@dataclass(frozen=True, slots=True)
class Rules:
    """How one release plans its cache. The defaults are those of the oldest modelled, 0.9.

    Attributes:
        utilization: Default of gpu_memory_utilization.
        nccl_in_budget: The memory snapshot precedes NCCL, so that its buffers are subtracted.
        graphs_in_budget: The CUDA-graph estimate is subtracted from the budget.
        window_tokens: What a window layer keeps besides its window: the tokens of one batch or
            of all batches in flight.
        async_scheduling: Default of the option of that name.
        tokens: How "GPU KV cache size" is counted.
        group_slack: Uneven buckets are padded to the largest if it is below this multiple of
            the smallest; None: the smallest always sets the group size.
        strided_groups: Groups take every n-th layer, else consecutive slices.
        uniform_type: Layers of one kind with unequal pages form one group.
        null_block_reserved: Admission sets one block aside.
        decode_context: There is decode context parallelism.
        key_twice: Kinds of layer whose page counts the key's size for the value too, where the
            two differ; ``kept_whole``: windows that are paged as full attention because the
            hybrid manager is off.
    """

    utilization: float = 0.90
    nccl_in_budget: bool = True
    graphs_in_budget: bool = False
    window_tokens: Literal["batch", "in_flight"] = "batch"
    async_scheduling: bool = False
    tokens: Literal["per_group", "concurrency"] = "per_group"
    group_slack: float | None = None
    strided_groups: bool = False
    uniform_type: bool = False
    null_block_reserved: bool = False
    decode_context: bool = False
    key_twice: frozenset[str] = frozenset({"full", "window", "kept_whole"})


@dataclass(frozen=True, slots=True)
class Change:
    """One row: since which release which rule has which value, and where that can be read."""

    since: Version
    rule: str
    value: Any
    source: str


_UTILS = "vllm/v1/core/kv_cache_utils.py"
_WORKER = "vllm/v1/worker/gpu_worker.py"
_SPECS = "vllm/v1/kv_cache_interface.py"
_WINDOWS = frozenset({"window", "kept_whole"})

CHANGES: tuple[Change, ...] = (
    Change((0, 10), "decode_context", value=True, source="vllm/config/parallel.py"),
    Change((0, 11), "nccl_in_budget", value=False, source=f"{_WORKER}: snapshot after init"),
    Change((0, 11), "uniform_type", value=True, source=f"{_UTILS}: UniformTypeKVCacheSpecs"),
    Change((0, 11), "strided_groups", value=True, source=f"{_UTILS}: layers[i::n]"),
    Change((0, 12), "group_slack", value=1.25, source=f"{_UTILS}: padding heuristic"),
    Change((0, 14), "async_scheduling", value=True, source="vllm/config: async by default"),
    Change((0, 14), "key_twice", value=_WINDOWS, source=f"{_SPECS}: FullAttentionSpec.head_size_v"),
    Change((0, 18), "group_slack", value=1.5, source=f"{_UTILS}: padding heuristic"),
    Change((0, 20), "utilization", value=0.92, source="vllm/config/cache.py"),
    Change((0, 20), "graphs_in_budget", value=True, source="vllm/envs.py: estimate on by default"),
    Change(
        (0, 20),
        "key_twice",
        value=frozenset({"kept_whole"}),
        source=f"{_SPECS}: SlidingWindowSpec.head_size_v",
    ),
    Change(
        (0, 21), "key_twice", value=frozenset(), source=f"{_UTILS}: unify_hybrid_kv_cache_specs"
    ),
    Change((0, 21), "tokens", value="concurrency", source=f"{_UTILS}: int(concurrency * length)"),
    Change((0, 26), "window_tokens", value="in_flight", source="max_in_flight_tokens"),
    Change((0, 29), "null_block_reserved", value=True, source=f"{_UTILS}: check_memory"),
)

OLDEST: Version = (0, 9)


@lru_cache(maxsize=64)
def rules_for(version: str) -> Rules:
    """The rules of a release; between two modelled ones those of the older.

    Raises:
        EngineRefusesError: older than 0.9, which plans in another way.
    """
    number = parse_version(version)
    if number < OLDEST:
        raise EngineRefusesError(
            f"vLLM {version} is older than the oldest release kvplan models (0.9).",
            hint=f"Plan for a newer one, for example vllm=={NEWEST}.",
        )
    rules = Rules()
    for change in CHANGES:
        if change.since <= number:
            rules = replace(rules, **{change.rule: change.value})
    return rules


def is_newer_than_modelled(version: str) -> bool:
    """Whether the release is newer than the newest whose rules are known."""
    return parse_version(version)[:2] > parse_version(NEWEST)[:2]
