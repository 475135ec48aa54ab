"""What changed between SGLang releases, as one table of dated rows.

Read from the wheels of 0.5.3, 0.5.6, 0.5.9, 0.5.12, 0.5.15, 0.5.18 and 0.5.20 to 0.5.23; a row
names the first of them in which the value appears: a change may be one or two releases older.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from kvplan.engines.base import Version, parse_version
from kvplan.errors import EngineRefusesError

NEWEST = "0.5.23"
OLDEST: Version = (0, 5, 3)


@dataclass(frozen=True, slots=True)
class Rules:
    """How one release sizes its pools. The defaults are those of the oldest modelled, 0.5.3.

    Attributes:
        small_chunk: Prefill chunk of a card from 20 to 35 GiB.
        small_batch: Largest captured batch there, below four ranks and from four ranks on.
        prefill_graphs: Prefill is captured too, which the default fraction leaves room for.
        draft_reserve_mib: What the default fraction leaves for a draft that is loaded after the
            pool, and for a whole model as the draft; None: drafts are loaded before the pool.
        batch_capped: The captured batch is at most max_running_requests.
        half_tokens: At most half as many requests as tokens.
        table_padding: Rows of the request table beyond the requests.
        hybrids: Pools for windows and for recurrent states are sized as they are today.
        state_padding: Slots of the state pool that the budget pays beyond those of requests.
        windows: Architectures whose windows have a pool of their own.
        window_cap: Without prefix cache the pool of windows is sized by the requests.
        window_checked: A pool of windows that cannot hold one is refused at start.
        extra_buffer: States are tracked in additional slots where the class allows it.
        pixels_reserve_mib: Taken from the budget of a model that reads images.
        stateless: A model without any attention layer is served.
    """

    small_chunk: int = 2048
    small_batch: tuple[int, int] = (16, 80)
    prefill_graphs: bool = False
    draft_reserve_mib: tuple[int, int] | None = (2048, 6144)
    batch_capped: bool = False
    half_tokens: bool = False
    table_padding: int = 0
    hybrids: bool = False
    state_padding: int = 0
    windows: frozenset[str] = frozenset()
    window_cap: bool = False
    window_checked: bool = False
    extra_buffer: bool = False
    pixels_reserve_mib: int = 0
    stateless: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """One row: since which release which rule has which value, and where that can be read."""

    since: Version
    rule: str
    value: Any
    source: str


_MIMO = frozenset({"MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM"})
_WINDOWS_9 = (
    frozenset({"Llama4ForConditionalGeneration", "GptOssForCausalLM", "Step3p5ForCausalLM"}) | _MIMO
)
_WINDOWS_12 = _WINDOWS_9 | {
    "Gemma4ForCausalLM",
    "Gemma4ForConditionalGeneration",
    "LagunaForCausalLM",
}
_WINDOWS_15 = _WINDOWS_12 | {
    "Step3p7ForConditionalGeneration",
    "Gemma4UnifiedForConditionalGeneration",
    "UnlimitedOCRForCausalLM",
}
_WINDOWS_18 = _WINDOWS_15 | {
    "MellumForCausalLM",
    "MuseGlimmerForCausalLM",
    "MuseGlimmerForConditionalGeneration",
    "InklingForConditionalGeneration",
}
_WINDOWS_20 = _WINDOWS_18 | {"GraniteSWAForCausalLM", "GraniteMoeSWAForCausalLM"}
_WINDOWS_21 = _WINDOWS_20 | {"IQuestQ1ForCausalLM", "DiffusionGemmaForBlockDiffusion"}
_WINDOWS_22 = _WINDOWS_21 | {"EmbeddingGemma2Model"}
_WINDOWS_23 = _WINDOWS_22 | {"BeamForCausalLM"}

_ARGS = "sglang/srt/server_args.py: _handle_gpu_memory_settings"
_HOOK = "sglang/srt/arg_groups/memory_hook.py: handle_gpu_memory_settings"
_MIXIN = "sglang/srt/model_executor/model_runner_kv_cache_mixin.py"
_CONFIG = "sglang/srt/configs/model_config.py: is_hybrid_swa_model"
_KVC = "sglang/srt/mem_cache/kv_cache_configurator.py"
_SIZES = "sglang/srt/model_executor/pool_configurator.py"

CHANGES: tuple[Change, ...] = (
    Change((0, 5, 6), "small_batch", value=(24, 80), source=_ARGS),
    Change((0, 5, 9), "hybrids", value=True, source=f"{_MIXIN}: handle_max_mamba_cache"),
    Change((0, 5, 9), "windows", value=_WINDOWS_9, source=_CONFIG),
    Change((0, 5, 12), "windows", value=_WINDOWS_12, source=_CONFIG),
    Change((0, 5, 12), "prefill_graphs", value=True, source=_ARGS),
    Change((0, 5, 12), "draft_reserve_mib", value=(4096, 6144), source=_ARGS),
    Change((0, 5, 12), "half_tokens", value=True, source=f"{_MIXIN}: token_capacity // 2"),
    Change(
        (0, 5, 12),
        "table_padding",
        value=1,
        source="sglang/srt/mem_cache/memory_pool.py: ReqToTokenPool",
    ),
    Change((0, 5, 15), "windows", value=_WINDOWS_15, source=_CONFIG),
    Change((0, 5, 15), "draft_reserve_mib", value=None, source=f"{_SIZES}: draft layers in a cell"),
    Change(
        (0, 5, 15),
        "extra_buffer",
        value=True,
        source="sglang/srt/arg_groups/overrides.py: _mamba_radix_cache_resolution",
    ),
    Change((0, 5, 18), "windows", value=_WINDOWS_18, source=_CONFIG),
    Change((0, 5, 18), "state_padding", value=1, source=f"{_KVC}: the pool's padding slot"),
    Change((0, 5, 18), "stateless", value=True, source=f"{_SIZES}: _zero_kv_max_tokens"),
    Change(
        (0, 5, 18), "pixels_reserve_mib", value=100, source=f"{_KVC}: mm_runtime_reservation_gb"
    ),
    Change((0, 5, 20), "small_chunk", value=4096, source=_HOOK),
    Change((0, 5, 20), "small_batch", value=(48, 160), source=_HOOK),
    Change((0, 5, 20), "windows", value=_WINDOWS_20, source=_CONFIG),
    Change((0, 5, 20), "window_checked", value=True, source=f"{_SIZES}: validate_swa_pool_size"),
    Change((0, 5, 21), "windows", value=_WINDOWS_21, source=_CONFIG),
    Change((0, 5, 22), "windows", value=_WINDOWS_22, source=_CONFIG),
    Change((0, 5, 22), "batch_capped", value=True, source=_HOOK),
    Change((0, 5, 22), "window_cap", value=True, source=f"{_SIZES}: compute_swa_request_cap"),
    Change((0, 5, 23), "windows", value=_WINDOWS_23, source=_CONFIG),
)


@lru_cache(maxsize=64)
def rules_for(version: str) -> Rules:
    """The rules of a release; between two that were read those of the older.

    Raises:
        EngineRefusesError: older than 0.5.3, whose default fraction is another table.
    """
    number = parse_version(version)
    if number < OLDEST:
        raise EngineRefusesError(
            f"SGLang {version} is older than the oldest release kvplan models (0.5.3).",
            hint=f"Plan for a newer one, for example sglang=={NEWEST}.",
        )
    rules = Rules()
    for change in CHANGES:
        if change.since <= number:
            rules = replace(rules, **{change.rule: change.value})
    return rules


def is_newer_than_modelled(version: str) -> bool:
    """Whether the release is newer than the newest whose rules are known."""
    return parse_version(version) > parse_version(NEWEST)
