"""Defaults of max_num_seqs, max_num_batched_tokens and prefix caching, as dated rows.

They depend on the release, on the device and on how the engine is started. Dates were read from
source distributions of vLLM: 0.6.6, 0.7.0, 0.7.3, 0.8.0, 0.8.3 to 0.8.5, 0.9.0 to 0.9.2, 0.10.0 to
0.10.2, 0.11.0, 0.11.2, and the first of each minor release from 0.12 to 0.33 (but 0.15, which has
none); vllm/engine/arg_utils.py unless a row says otherwise. Releases between two that were read
take the rules of the older.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kvplan.engines.base import Version
from kvplan.hardware import GpuSpec
from kvplan.units import GIB

# How the engine is started: `vllm serve`, the LLM class, anything else (`vllm run-batch`).
Entry = Literal["serve", "llm", "other"]
# What a model keeps of a request: keys and values, states, both, or an encoder's output too.
Attention = Literal["decoder", "hybrid", "attention_free", "encoder_decoder"]

V1: Version = (0, 8)  # vllm/envs.py: VLLM_USE_V1 is on from 0.8.0; V0 before
V0_TOKENS = 2048  # vllm/config.py, SchedulerConfig.__post_init__
V0_SEQS = 256
V0_LONG_CONTEXT = 32768  # above it V0 chunks prefills by default
BATCHED_DP_TOKENS = 256  # 0.20, DEFAULT_MAX_NUM_BATCHED_TOKENS_FOR_BATCHED_DP
BATCHED_ALL2ALL = ("deepep_low_latency", "nixl_ep")  # 0.20, use_batched_dp_moe


@dataclass(frozen=True, slots=True)
class Batch:
    """Most tokens and most requests of one step."""

    tokens: int
    seqs: int


@dataclass(frozen=True, slots=True)
class Tier:
    """Devices of a kind, and what they get by entry point.

    Attributes:
        least_bytes: Memory they have at least.
        named: They have one of these in their name; empty: any name.
        not_named, not_sm: Those that are left out.
    """

    serve: Batch
    llm: Batch
    least_bytes: int = 0
    named: tuple[str, ...] = ()
    not_named: tuple[str, ...] = ()
    not_sm: tuple[tuple[int, int], ...] = ()

    def holds(self, gpu: GpuSpec, total_bytes: int) -> bool:
        """Whether the device is one of them."""
        name = gpu.name.lower()
        return (
            total_bytes >= self.least_bytes
            and (not self.named or any(part in name for part in self.named))
            and not any(part in name for part in self.not_named)
            and gpu.sm not in self.not_sm
        )


@dataclass(frozen=True, slots=True)
class Table:
    """The tiers of a release and those after it; the first that holds is taken."""

    since: Version
    tiers: tuple[Tier, ...]
    source: str


_OTHER = Batch(2048, 128)  # SchedulerConfig, where the entry point has no row of its own
_SMALL = Tier(serve=Batch(2048, 256), llm=Batch(8192, 256))
_SMALL_MANY = Tier(serve=Batch(2048, 1024), llm=Batch(8192, 1024))
_LARGE_SERVE, _LARGE_LLM = Batch(8192, 1024), Batch(16384, 1024)
_BIGGEST = Tier(serve=Batch(16384, 1024), llm=Batch(16384, 1024), least_bytes=160 * GIB)

_DEFAULTS = "EngineArgs.get_batch_defaults"
TABLES: tuple[Table, ...] = (
    Table(
        (0, 8),
        (Tier(serve=_LARGE_SERVE, llm=_LARGE_LLM, named=("h100", "h200")), _SMALL_MANY),
        "_set_default_args_v1: by the device's name",
    ),
    Table(
        (0, 8, 5),
        (Tier(serve=_LARGE_SERVE, llm=_LARGE_LLM, least_bytes=70 * GIB), _SMALL),
        "_set_default_args_v1: by the device's memory",
    ),
    Table(
        (0, 9),
        (
            Tier(serve=_LARGE_SERVE, llm=_LARGE_LLM, least_bytes=70 * GIB, not_named=("a100",)),
            _SMALL,
        ),
        "_set_default_args_v1: not the A100 (vLLM's PR 17885)",
    ),
    Table(
        (0, 28),
        (
            _BIGGEST,
            Tier(serve=_LARGE_SERVE, llm=_LARGE_LLM, least_bytes=70 * GIB, not_named=("a100",)),
            _SMALL,
        ),
        f"{_DEFAULTS}: a tier of 160 GiB",
    ),
    Table(
        (0, 33),
        (
            _BIGGEST,
            Tier(
                serve=_LARGE_SERVE,
                llm=_LARGE_LLM,
                least_bytes=70 * GIB,
                not_named=("a100",),
                not_sm=((12, 1),),
            ),
            _SMALL,
        ),
        f"{_DEFAULTS}: not GB10",
    ),
)


@dataclass(frozen=True, slots=True)
class Step:
    """Something that vLLM does to the defaults, since a release."""

    since: Version
    source: str

    def holds(self, version: Version) -> bool:
        """Whether that release does it."""
        return version >= self.since


SEQS_WITHIN_TOKENS = Step((0, 10, 1), "_set_default_args_v1: min(max_num_seqs, tokens)")
# Until then V1 always chunks what a decoder reads, whatever was asked for.
CHUNKING_CAN_BE_OFF = Step((0, 11, 2), "_set_default_args: tokens = max(length, tokens)")
V0_TOKENS_WITHIN_MODEL = Step((0, 9), "vllm/config.py: SchedulerConfig.__post_init__")
TOKENS_WITHIN_MODEL = Step((0, 11, 2), "_set_default_args: min(max_num_seqs * length, tokens)")
THROUGHPUT_DOUBLES = Step((0, 17), "performance_mode")
BATCHED_DATA_PARALLEL = Step((0, 20), "vllm/config/parallel.py: use_batched_dp_moe")
# 0.10 and 0.11: vllm/model_executor/models/config.py turns it off; 0.12 to 0.25:
# is_prefix_caching_supported; 0.26 and 0.27: get_chunked_prefill_prefix_caching_defaults.
HYBRIDS_CACHE_PREFIXES = Step((0, 28), "vllm/config/model.py: is_prefix_caching_supported")


def batch(gpu: GpuSpec, total_bytes: int, *, version: Version, entry: Entry) -> Batch:
    """What a release of V1 takes on a device if nobody says anything."""
    if entry == "other":
        return _OTHER
    table = next(table for table in reversed(TABLES) if table.since <= max(version, V1))
    tier = next(tier for tier in table.tiers if tier.holds(gpu, total_bytes))
    return tier.llm if entry == "llm" else tier.serve


def is_v0(version: Version, use_v1: bool | None) -> bool:  # noqa: FBT001 - None: not given
    """Whether the engine is the old one: before 0.8, and until 0.11 with VLLM_USE_V1=0."""
    return version < V1 or use_v1 is False


def caches_prefixes(version: Version, attention: Attention, *, v0: bool = False) -> bool:
    """Default of enable_prefix_caching for a model that generates text.

    Source: vLLM 0.33.0, ModelConfig.is_prefix_caching_supported; V0 never does by default.
    """
    if v0 or version < V1 or attention in ("attention_free", "encoder_decoder"):
        return False
    return attention == "decoder" or HYBRIDS_CACHE_PREFIXES.holds(version)


def chunks_prefills(attention: Attention, context: int, *, v0: bool) -> bool:
    """Default of enable_chunked_prefill for a model that generates text.

    Source: vLLM 0.33.0, ModelConfig.is_chunked_prefill_supported; 0.6.6, create_engine_config.
    V0 has more exceptions (windows, MLA, images, LoRA): with them it never chunks.
    """
    if v0:
        return context > V0_LONG_CONTEXT
    return attention != "encoder_decoder"
