"""Recurrent states in vLLM: bytes on a rank, and the blocks that a request holds.

Sources: vLLM 0.33.0, vllm/model_executor/layers/mamba/mamba_utils.py (shapes and types),
vllm/v1/kv_cache_interface.py MambaSpec (blocks).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from kvplan.engines.vllm.history import Rules
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.caches import RecurrentCache, StateTensor
from kvplan.models.formats import DTYPE_BYTES, Dtype

Variant = Literal["mamba", "mamba2", "delta", "kda", "linear", "short_conv"]
Mode = Literal["none", "align", "all"]

_INPUTS = ("conv", "conv groups")
# Families whose layers export a state from inside a prefill, and the tokens it is aligned to.
_CHECKPOINT_GRID: dict[Variant, int] = {"mamba2": 1, "delta": 64}
# Kernels of gated DeltaNet that export states: FlashInfer's, for Hopper and Blackwell.
_DELTA_KERNELS = (9, 10)
# Gated DeltaNet of its own, without them: vllm/model_executor/layers/mamba/gdn/
# olmo_gdn_linear_attn.py.
_OWN_DELTA = frozenset({"OlmoHybridForCausalLM"})


@dataclass(frozen=True, slots=True)
class StateContext:
    """What decides a state's bytes and blocks beside the layer.

    Attributes:
        dtype: The type that the model runs in.
        conv_dtype, ssm_dtype: mamba_cache_dtype and mamba_ssm_cache_dtype; None: auto.
        mode: mamba_cache_mode.
        draft_tokens: Tokens drafted at once; each needs a state of its own.
    """

    architecture: str
    dtype: Dtype
    tp: int
    sm: tuple[int, int]
    rules: Rules
    conv_dtype: Dtype | None = None
    ssm_dtype: Dtype | None = None
    mode: Mode = "none"
    draft_tokens: int = 0


def variant_of(cache: RecurrentCache) -> Variant:
    """Which of vLLM's layers holds such a state.

    Raises:
        NotModelledError: none does.
    """
    states = {state.name: state for state in cache.states}
    if "shift" in states:
        raise NotModelledError("vLLM has no layer for RWKV's states.", hint="Use transformers.")
    if "conv groups" in states:
        return "mamba2"
    if "ssm" in states:
        return "mamba"
    if "linear" in states:
        return "linear"
    if "recurrent" not in states:
        return "short_conv"
    return "kda" if states["recurrent"].dtype == "float32" else "delta"


def state_bytes(cache: RecurrentCache, context: StateContext) -> int:
    """Bytes of one layer's state on one rank: a page without padding.

    Raises:
        EngineRefusesError: tensor parallelism does not divide the state.
        NotModelledError: vLLM has no such layer.
    """
    variant = variant_of(cache)
    return sum(_tensor_bytes(state, variant, context) for state in cache.states)


def _tensor_bytes(state: StateTensor, variant: Variant, context: StateContext) -> int:
    shape = list(state.shape)
    if state.split is not None:
        shape[state.split] = _split(state, context.tp)
    # Mamba 1 takes no drafts; the others keep the inputs of every drafted token.
    if state.name in _INPUTS and variant != "mamba":
        shape[-1] += context.draft_tokens
    return math.prod(shape) * DTYPE_BYTES[_dtype(state, variant, context)]


def _split(state: StateTensor, tp: int) -> int:
    count = state.shape[state.split or 0]
    if count % tp == 0:
        return count // tp
    if state.name == "conv groups" and count == 1:
        return 1
    raise EngineRefusesError(
        f"vLLM refuses --tp {tp}: it does not divide the {count} "
        f"{'groups' if state.name == 'conv groups' else 'channels or heads'} of a recurrent state.",
        hint=f"Use --tp {_divisors(count)}.",
    )


def _divisors(number: int) -> str:
    return " or ".join(str(n) for n in (1, 2, 4, 8, 16) if number % n == 0)


def _dtype(state: StateTensor, variant: Variant, context: StateContext) -> Dtype:
    inputs = context.conv_dtype or context.dtype
    if state.name in _INPUTS or variant in ("linear", "short_conv"):
        return inputs
    if variant == "kda" and context.ssm_dtype == "float16":
        raise EngineRefusesError(
            "vLLM refuses a float16 state for Kimi delta attention.",
            hint="Use mamba_ssm_cache_dtype float32 or bfloat16.",
        )
    return context.ssm_dtype or state.dtype or inputs


def checkpoint_grid(caches: tuple[RecurrentCache, ...], context: StateContext) -> int | None:
    """Tokens that checkpoints inside a prefill are aligned to; None: not every layer has them."""
    if context.mode != "align":
        return None
    grids = [_grid(variant_of(cache), context) for cache in caches]
    known = [grid for grid in grids if grid is not None]
    return math.lcm(*known) if len(known) == len(grids) else None


def _grid(variant: Variant, context: StateContext) -> int | None:
    if variant == "delta" and not _exports_delta(context):
        return None
    return _CHECKPOINT_GRID.get(variant)


def _exports_delta(context: StateContext) -> bool:
    return (
        context.rules.delta_checkpoints
        and context.sm[0] in _DELTA_KERNELS
        and context.architecture not in _OWN_DELTA
    )


def states_held(cache: RecurrentCache, context: StateContext) -> int | None:
    """Blocks that a request holds whatever its length; None: one for each block of tokens."""
    rules = context.rules
    if rules.state_blocks == "one":
        return 1
    drafts = context.draft_tokens
    if context.mode == "none":
        return 1 + drafts
    if rules.state_blocks == "by_length" or context.mode == "all":
        return None
    return 2 + drafts + _checkpoints(variant_of(cache), context)


def _checkpoints(variant: Variant, context: StateContext) -> int:
    if not context.rules.checkpoint_blocks:
        return 0
    return int(variant == "mamba2" or (variant == "delta" and _exports_delta(context)))
