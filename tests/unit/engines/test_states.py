"""Recurrent states: bytes on a rank, blocks of a request, checkpoints, drafts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from real_models import real

from kvplan.engines.vllm.history import rules_for
from kvplan.engines.vllm.states import (
    StateContext,
    checkpoint_grid,
    state_bytes,
    states_held,
    variant_of,
)
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.caches import RecurrentCache, StateTensor
from kvplan.models.formats import Dtype


def tensor(
    name: str, *shape: int, split: int | None = 0, dtype: Dtype | None = None
) -> StateTensor:
    return StateTensor(name=name, shape=shape, split=split, dtype=dtype)


def cache(*states: StateTensor) -> RecurrentCache:
    return RecurrentCache(states=states)


MAMBA = cache(tensor("conv", 512, 3), tensor("ssm", 512, 16))
MAMBA2 = cache(tensor("conv", 512, 3), tensor("conv groups", 2, 128, 3), tensor("ssm", 8, 64, 128))
DELTA = cache(tensor("conv", 768, 3), tensor("recurrent", 8, 32, 32))
KDA = cache(tensor("conv", 768, 3), tensor("recurrent", 8, 32, 32, dtype="float32"))
LINEAR = cache(tensor("linear", 8, 32, 32))
SHORT = cache(tensor("conv", 512, 2))
ALL = {
    "mamba": MAMBA, "mamba2": MAMBA2, "delta": DELTA, "kda": KDA, "linear": LINEAR,
    "short_conv": SHORT,
}  # fmt: skip


def context(version: str = "0.33.0", **changes: Any) -> StateContext:
    plain = StateContext(
        architecture="Other", dtype="bfloat16", tp=1, sm=(9, 0), rules=rules_for(version)
    )
    return replace(plain, **changes)


@pytest.mark.parametrize(("variant", "state"), ALL.items())
def test_which_layer_holds_a_state(variant: str, state: RecurrentCache) -> None:
    assert variant_of(state) == variant


def test_rwkv_has_no_layer() -> None:
    with pytest.raises(NotModelledError, match="no layer for RWKV") as raised:
        variant_of(cache(tensor("shift", 1, 64), tensor("recurrent", 8, 32, 32)))
    assert raised.value.hint == "Use transformers."


# Elements × bytes, on one rank and on two.
@pytest.mark.parametrize(
    ("variant", "one", "two"),
    [
        ("mamba", 512 * 3 * 2 + 512 * 16 * 2, 256 * 3 * 2 + 256 * 16 * 2),
        (
            "mamba2",
            (512 * 3 + 2 * 128 * 3 + 8 * 64 * 128) * 2,
            (256 * 3 + 1 * 128 * 3 + 4 * 64 * 128) * 2,
        ),
        ("delta", (768 * 3 + 8 * 32 * 32) * 2, (384 * 3 + 4 * 32 * 32) * 2),
        ("kda", 768 * 3 * 2 + 8 * 32 * 32 * 4, 384 * 3 * 2 + 4 * 32 * 32 * 4),
        ("linear", 8 * 32 * 32 * 2, 4 * 32 * 32 * 2),
        ("short_conv", 512 * 2 * 2, 256 * 2 * 2),
    ],
)
def test_bytes_of_a_state(variant: str, one: int, two: int) -> None:
    assert state_bytes(ALL[variant], context()) == one
    assert state_bytes(ALL[variant], context(tp=2)) == two


def test_one_group_is_copied_to_every_rank_and_others_have_to_divide() -> None:
    """The heads of a rank need the group they belong to."""
    one = cache(tensor("conv groups", 1, 128, 3), tensor("ssm", 8, 64, 128))
    assert state_bytes(one, context(tp=4)) == (1 * 128 * 3 + 2 * 64 * 128) * 2
    with pytest.raises(EngineRefusesError, match="--tp 4: it does not divide the 2 groups") as it:
        state_bytes(MAMBA2, context(tp=4))
    assert it.value.hint == "Use --tp 1 or 2."
    with pytest.raises(EngineRefusesError, match="the 8 channels or heads of a recurr") as raised:
        state_bytes(LINEAR, context(tp=16))
    assert raised.value.hint == "Use --tp 1 or 2 or 4 or 8."


def test_a_tensor_that_is_not_split_is_whole_on_every_rank() -> None:
    whole = cache(tensor("linear", 3, 32, 32, split=None))
    assert state_bytes(whole, context(tp=8)) == 3 * 32 * 32 * 2
    second = cache(tensor("linear", 3, 32, 32, split=1))
    assert state_bytes(second, context(tp=8)) == 3 * 4 * 32 * 2


# conv's type, ssm's type → bytes an element of the inputs and of the state.
@pytest.mark.parametrize(
    ("variant", "types", "inputs", "inner"),
    [
        ("mamba2", {}, 2, 2),
        ("mamba2", {"conv_dtype": "float32"}, 4, 4),  # the state's follows
        ("mamba2", {"ssm_dtype": "float32"}, 2, 4),
        ("mamba2", {"conv_dtype": "float32", "ssm_dtype": "bfloat16"}, 4, 2),
        ("mamba2", {"dtype": "float32"}, 4, 4),
        ("kda", {}, 2, 4),
        ("kda", {"ssm_dtype": "bfloat16"}, 2, 2),
        ("kda", {"conv_dtype": "float32"}, 4, 4),
        # These know no type of their own for the state.
        ("linear", {"ssm_dtype": "float32"}, 0, 2),
        ("linear", {"conv_dtype": "float32"}, 0, 4),
        ("short_conv", {"ssm_dtype": "float32"}, 2, 0),
    ],
)
def test_types_of_a_state(variant: str, types: dict[str, Any], inputs: int, inner: int) -> None:
    conv = {"mamba2": 512 * 3 + 2 * 128 * 3, "kda": 768 * 3, "linear": 0, "short_conv": 512 * 2}
    rest = {"mamba2": 8 * 64 * 128, "kda": 8 * 32 * 32, "linear": 8 * 32 * 32, "short_conv": 0}
    expected = conv[variant] * inputs + rest[variant] * inner
    assert state_bytes(ALL[variant], context(**types)) == expected


@pytest.mark.parametrize("variant", ALL)
def test_the_inputs_of_drafted_tokens_are_kept_but_for_mamba_1(variant: str) -> None:
    """Two drafts: two columns more for every channel of the convolution."""
    rows = {"mamba": 0, "mamba2": 512 + 2 * 128, "delta": 768, "kda": 768, "linear": 0,
            "short_conv": 512}  # fmt: skip
    plain, drafting = (state_bytes(ALL[variant], context(draft_tokens=n)) for n in (0, 2))
    assert drafting - plain == rows[variant] * 2 * 2


# What a request holds: mode none, one; align, the state before, the running one, and a checkpoint
# where a layer exports it.
@pytest.mark.parametrize(
    ("variant", "version", "mode", "sm", "held"),
    [
        ("mamba2", "0.33.0", "none", (9, 0), 1),
        ("mamba2", "0.33.0", "align", (9, 0), 3),
        ("mamba2", "0.29.0", "align", (8, 9), 3),
        ("mamba2", "0.28.0", "align", (9, 0), 2),
        ("delta", "0.33.0", "align", (9, 0), 3),
        ("delta", "0.33.0", "align", (10, 0), 3),
        ("delta", "0.33.0", "align", (8, 9), 2),  # its kernels are for Hopper and Blackwell
        ("delta", "0.33.0", "align", (12, 0), 2),
        ("delta", "0.32.0", "align", (9, 0), 2),
        ("mamba", "0.33.0", "align", (9, 0), 2),
        ("kda", "0.33.0", "align", (9, 0), 2),
        ("linear", "0.33.0", "align", (9, 0), 2),
        ("short_conv", "0.33.0", "align", (9, 0), 2),
        ("mamba2", "0.31.0", "all", (9, 0), None),
        # By length from 0.11 to 0.14, where prefixes are cached; before, one.
        ("mamba2", "0.14.0", "align", (9, 0), None),
        ("mamba2", "0.11.0", "align", (9, 0), None),
        ("mamba2", "0.11.0", "none", (9, 0), 1),
        ("mamba2", "0.10.2", "align", (9, 0), 1),
        ("mamba2", "0.9.2", "none", (9, 0), 1),
    ],
)
def test_blocks_that_a_request_holds(
    variant: str, version: str, mode: str, sm: tuple[int, int], held: int | None
) -> None:
    assert states_held(ALL[variant], context(version, mode=mode, sm=sm)) == held


def test_olmos_delta_layers_export_no_state() -> None:
    own = context(mode="align", architecture="OlmoHybridForCausalLM")
    assert states_held(DELTA, own) == 2
    assert checkpoint_grid((DELTA,), own) is None
    assert states_held(MAMBA2, own) == 3


@pytest.mark.parametrize(("mode", "held"), [("none", 1 + 4), ("align", 3 + 4), ("all", None)])
def test_every_drafted_token_needs_a_state(mode: str, held: int | None) -> None:
    version = "0.31.0" if mode == "all" else "0.33.0"
    drafting = context(version, mode=mode, draft_tokens=4)
    assert states_held(MAMBA2, drafting) == held


def test_a_release_before_modes_holds_one_whatever_is_drafted() -> None:
    assert states_held(MAMBA2, context("0.10.2", draft_tokens=4)) == 1


# Tokens that checkpoints inside a prefill are aligned to; none unless every layer has them.
@pytest.mark.parametrize(
    ("caches", "changes", "grid"),
    [
        ((MAMBA2,), {}, 1),
        ((DELTA,), {}, 64),
        ((DELTA, MAMBA2), {}, 64),
        ((DELTA, MAMBA), {}, None),
        ((MAMBA,), {}, None),
        ((KDA,), {}, None),
        ((DELTA,), {"mode": "none"}, None),
        ((MAMBA2,), {"mode": "none"}, None),
        ((MAMBA2,), {"mode": "all"}, None),
        ((DELTA,), {"sm": (8, 9)}, None),
    ],
)
def test_where_checkpoints_are_aligned(
    caches: tuple[RecurrentCache, ...], changes: dict[str, Any], grid: int | None
) -> None:
    assert checkpoint_grid(caches, context(**({"mode": "align"} | changes))) == grid


def test_gated_delta_checkpoints_came_with_0_33() -> None:
    assert checkpoint_grid((DELTA,), context("0.32.0", mode="align")) is None


# Models, ranks → bytes of a layer's state, from the shapes of their configurations.
@pytest.mark.parametrize(
    ("name", "tp", "bytes_", "variant"),
    [
        # 2 × 16 × 128 + 32 × 128 channels of 3 inputs; 32 × 128 × 128.
        ("qwen3-next-80b-a3b", 1, (8192 * 3 + 32 * 128 * 128) * 2, "delta"),
        ("qwen3-next-80b-a3b", 4, (2048 * 3 + 8 * 128 * 128) * 2, "delta"),
        # 3 × 32 × 128 channels; 32 × 128 × 128 in fp32.
        ("kimi-linear-48b-a3b", 1, 12_288 * 3 * 2 + 32 * 128 * 128 * 4, "kda"),
        # 8,192 channels and 2 × 8 groups of 128; 128 heads of 64 × 128 in fp32.
        ("nemotron-h-8b", 1, (8192 + 2048) * 3 * 2 + 128 * 64 * 128 * 4, "mamba2"),
        ("jamba-v0.1", 1, (8192 * 3 + 8192 * 16) * 2, "mamba"),
    ],
)
def test_states_of_real_models(name: str, tp: int, bytes_: int, variant: str) -> None:
    state = next(c for c in real(name).caches if isinstance(c, RecurrentCache))
    assert variant_of(state) == variant
    assert state_bytes(state, context(tp=tp)) == bytes_


@given(
    st.sampled_from(sorted(ALL)),
    st.sampled_from([1, 2]),
    st.integers(0, 8),
    st.sampled_from([None, "float32", "bfloat16"]),
)
def test_more_drafts_and_wider_types_never_take_less(
    variant: str, tp: int, drafts: int, wide: Dtype | None
) -> None:
    plain = context(tp=tp)
    assert state_bytes(ALL[variant], plain) <= state_bytes(
        ALL[variant], context(tp=tp, draft_tokens=drafts, conv_dtype=wide)
    )
    assert state_bytes(ALL[variant], context(tp=2)) * 2 == state_bytes(ALL[variant], context())
