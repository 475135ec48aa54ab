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
    """How one release plans its cache. The defaults are those of the oldest modelled, 0.6 (V0).

    Attributes:
        utilization: Default of gpu_memory_utilization.
        nccl_in_budget: The memory snapshot precedes NCCL, so that its buffers are subtracted.
        graphs_in_budget: The CUDA-graph estimate is subtracted from the budget.
        window_tokens: What a window layer keeps besides its window: the tokens of one batch or
            of all batches in flight.
        async_scheduling: Default of the option of that name.
        tokens: How "GPU KV cache size" is counted.
        one_group: All layers share one block table: windows beside full layers are kept whole.
        chunks_whole: Chunked layers are paged as full attention by default.
        latent_alignment: Bytes that a token of a latent cache is rounded up to.
        v0: The engine before V1: every window is kept whole, states lie outside the cache.
        context_in_budget: The CUDA context is subtracted from the budget.
        group_slack: Uneven buckets are padded to the largest if it is below this multiple of
            the smallest; None: the smallest always sets the group size.
        strided_groups: Groups take every n-th layer, else consecutive slices.
        uniform_type: Layers of one kind with unequal pages form one group.
        null_block_reserved: Admission sets one block aside.
        decode_context: There is decode context parallelism.
        key_twice: Kinds of layer whose page counts the key's size for the value too, where the
            two differ; ``kept_whole``: windows that are paged as full attention because the
            hybrid manager is off.
        pads: Caches whose pages are padded to the largest where no block size makes them equal.
        full_fallback: Windows beside a latent cache are paged as full attention where nothing
            else makes the pages equal.
        packed: Pages of unequal sizes may lie side by side in a block.
        state_blocks: Blocks of a recurrent state that a request holds: one, one for each block
            of its tokens, or as ``mamba_cache_mode`` says.
        checkpoint_blocks: A recurrent state may hold a block more for a checkpoint in a prefill.
        delta_checkpoints: Gated DeltaNet takes such checkpoints.
        encoder_tokens: What a request's encoder is planned for: what the model's encoder takes, or
            max_num_batched_tokens.
        mode_all: ``mamba_cache_mode`` may be ``all``.
    """

    utilization: float = 0.90
    nccl_in_budget: bool = True
    graphs_in_budget: bool = False
    window_tokens: Literal["batch", "in_flight"] = "batch"
    async_scheduling: bool = False
    tokens: Literal["blocks", "per_group", "concurrency"] = "blocks"
    one_group: bool = True
    chunks_whole: bool = True
    latent_alignment: int = 1
    v0: bool = False
    context_in_budget: bool = False
    group_slack: float | None = None
    strided_groups: bool = False
    uniform_type: bool = False
    null_block_reserved: bool = False
    decode_context: bool = False
    key_twice: frozenset[str] = frozenset({"full", "window", "kept_whole"})
    pads: frozenset[str] = frozenset()
    full_fallback: bool = False
    packed: bool = False
    state_blocks: Literal["one", "by_length", "by_mode"] = "one"
    checkpoint_blocks: bool = False
    delta_checkpoints: bool = False
    mode_all: bool = False
    encoder_tokens: Literal["model", "batch"] = "model"


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
_CHUNKS = "vllm/envs.py: VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE"
_WINDOWS = frozenset({"window", "kept_whole"})
_ATTENTION = frozenset({"attention"})
_ALL = frozenset({"attention", "recurrent"})

CHANGES: tuple[Change, ...] = (
    Change((0, 8), "context_in_budget", value=True, source=f"{_WORKER}: free against total"),
    Change((0, 9), "context_in_budget", value=False, source=f"{_WORKER}: snapshot at init"),
    Change((0, 9), "one_group", value=False, source=f"{_UTILS}: groups of equal pages"),
    Change((0, 9), "tokens", value="per_group", source=f"{_UTILS}: GPU KV cache size"),
    Change((0, 10), "decode_context", value=True, source="vllm/config/parallel.py"),
    Change((0, 10), "chunks_whole", value=False, source=f"{_SPECS}: ChunkedLocalAttentionSpec"),
    Change((0, 10, 1), "chunks_whole", value=True, source=_CHUNKS),
    Change((0, 11), "nccl_in_budget", value=False, source=f"{_WORKER}: snapshot after init"),
    Change((0, 11), "uniform_type", value=True, source=f"{_UTILS}: UniformTypeKVCacheSpecs"),
    Change((0, 11), "strided_groups", value=True, source=f"{_UTILS}: layers[i::n]"),
    Change((0, 11), "encoder_tokens", value="batch", source=f"{_SPECS}: CrossAttentionSpec"),
    Change((0, 11), "state_blocks", value="by_length", source=f"{_SPECS}: MambaSpec"),
    Change((0, 12), "group_slack", value=1.25, source=f"{_UTILS}: padding heuristic"),
    Change((0, 14), "chunks_whole", value=False, source=_CHUNKS),
    Change((0, 14), "async_scheduling", value=True, source="vllm/config: async by default"),
    Change((0, 14), "key_twice", value=_WINDOWS, source=f"{_SPECS}: FullAttentionSpec.head_size_v"),
    Change((0, 15), "state_blocks", value="by_mode", source=f"{_SPECS}: mamba_cache_mode"),
    Change((0, 15), "mode_all", value=True, source="vllm/config/cache.py: mamba_cache_mode"),
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
    Change((0, 24), "pads", value=_ATTENTION, source=f"{_UTILS}: unify_kv_cache_spec_page_size"),
    Change((0, 26), "window_tokens", value="in_flight", source="max_in_flight_tokens"),
    Change((0, 26), "pads", value=_ALL, source=f"{_UTILS}: unify_kv_cache_spec_page_size"),
    Change((0, 27), "packed", value=True, source=f"{_UTILS}: _get_packed_kv_cache_groups"),
    Change((0, 27), "full_fallback", value=True, source=f"{_UTILS}: full-allocation fallback"),
    Change((0, 29), "checkpoint_blocks", value=True, source=f"{_SPECS}: MambaSpec"),
    Change((0, 29), "null_block_reserved", value=True, source=f"{_UTILS}: check_memory"),
    Change((0, 32), "mode_all", value=False, source="vllm/config/cache.py: mamba_cache_mode"),
    Change((0, 33), "delta_checkpoints", value=True, source="qwen_gdn_linear_attn.py"),
)

OLDEST: Version = (0, 6)
# The engine before V1: the default below 0.8, an option (VLLM_USE_V1=0) up to 0.10.
V1_DEFAULT: Version = (0, 8)
_ALIGNED_LATENT: tuple[Version, Version] = ((0, 7, 1), (0, 8))
V0_GONE: Version = (0, 11)


@lru_cache(maxsize=64)
def rules_for(version: str, *, use_v1: bool | None = None) -> Rules:
    """The rules of a release; between two modelled ones those of the older.

    Args:
        version: The release.
        use_v1: VLLM_USE_V1; None: as the release does by default.

    Raises:
        EngineRefusesError: older than 0.6, which plans in another way, or an engine that the
            release does not have.
    """
    number = parse_version(version)
    if number < OLDEST:
        raise EngineRefusesError(
            f"vLLM {version} is older than the oldest release kvplan models (0.6).",
            hint=f"Plan for a newer one, for example vllm=={NEWEST}.",
        )
    if _is_v0(version, use_v1):
        # V0 stayed as it was in later releases, but for this (vllm/envs.py of 0.7.3:
        # VLLM_CUDA_MEM_ALIGN_KV_CACHE; gone in 0.8.0).
        aligned = _ALIGNED_LATENT[0] <= number < _ALIGNED_LATENT[1]
        return replace(Rules(), v0=True, latent_alignment=256 if aligned else 1)
    rules = Rules()
    for change in CHANGES:
        if change.since <= number:
            rules = replace(rules, **{change.rule: change.value})
    return rules


def _is_v0(version: str, use_v1: bool | None) -> bool:  # noqa: FBT001
    number = parse_version(version)
    if use_v1 is None:
        return number < V1_DEFAULT
    if use_v1 and number < V1_DEFAULT:
        raise EngineRefusesError(
            f"kvplan does not model the trial form of V1 in vLLM {version}.",
            hint="Leave out use_v1, or plan for 0.8 or later.",
        )
    if not use_v1 and number >= V0_GONE:
        raise EngineRefusesError(
            f"vLLM {version} has no V0 engine any more.", hint="Leave out use_v1."
        )
    return not use_v1


def is_newer_than_modelled(version: str) -> bool:
    """Whether the release is newer than the newest whose rules are known."""
    return parse_version(version)[:2] > parse_version(NEWEST)[:2]


def is_older_than_modelled(version: str) -> bool:
    """Whether the release is older than the newest whose rules are known."""
    return parse_version(version)[:2] < parse_version(NEWEST)[:2]
