"""What a layer's step has alive on one rank: widths by hand, and what holds of every model."""

from __future__ import annotations

from typing import Any

import pytest
from real_models import full, real, real_names, toy

from kvplan.models.caches import LatentCache, LayerCache, RecurrentCache, SharedCache, StateTensor
from kvplan.models.spec import ModelSpec
from kvplan.models.step import Step, layer_step
from kvplan.models.weights import Component, RankLayout, Sharding, Weight

# One small model: 8 query heads and 2 KV heads of 100, so a = 800 and f = 800 + 2 × 200 = 1,200.
HIDDEN = 1000
CACHE = full(kv_heads=2, head_dim=100)
FEED_FORWARD = 3000


def matrix(
    name: str,
    component: Component,
    shape: tuple[int, ...],
    sharding: Sharding = "replicated",
    **more: Any,
) -> Weight:
    facts: dict[str, Any] = {"layers": (0,)} | more
    return Weight(name=name, component=component, shape=shape, sharding=sharding, **facts)


ATTENTION = (
    matrix("q_proj", "attention", (800, HIDDEN), "column"),
    matrix("k_proj", "attention", (200, HIDDEN), "kv_heads", heads=2),
    matrix("v_proj", "attention", (200, HIDDEN), "kv_heads", heads=2),
    matrix("o_proj", "attention", (HIDDEN, 800), "row"),
    matrix("q_norm", "attention", (100,)),
)
UP_AND_DOWN = (
    matrix("up_proj", "mlp", (FEED_FORWARD, HIDDEN), "column"),
    matrix("down_proj", "mlp", (HIDDEN, FEED_FORWARD), "row"),
)
GATED = (*UP_AND_DOWN, matrix("gate_proj", "mlp", (FEED_FORWARD, HIDDEN), "column"))


def experts(width: int, component: Component = "experts") -> tuple[Weight, ...]:
    return (
        matrix("experts.gate", component, (width, HIDDEN), "column"),
        matrix("experts.up", component, (width, HIDDEN), "column"),
        matrix("experts.down", component, (HIDDEN, width), "row"),
    )


def model(weights: tuple[Weight, ...], *layers: LayerCache | None, **changes: Any) -> ModelSpec:
    facts: dict[str, Any] = {"hidden_size": HIDDEN, "intermediate_size": FEED_FORWARD} | changes
    return toy(*(layers or (CACHE,)), weights=weights, **facts)


def step(made: ModelSpec, **layout: Any) -> Step:
    """Of a rank that has all layers, unless `layers` says otherwise."""
    return layer_step(made, RankLayout(**({"layers": (0, len(made.layers))} | layout)))


@pytest.mark.parametrize(
    ("weights", "alive"),
    [
        # activating: a 800 + 2 × 1,000 + w 6,000 + i 3,000
        ((*ATTENTION, *GATED), 11_800),
        # the same with w = i = 3,000
        ((*ATTENTION, *UP_AND_DOWN), 8_800),
        # rotating: a 800 + 2 × 1,000 + f 1,200 + r (800 + 200); projecting is as wide
        (ATTENTION, 5_000),
        # going in: a 0 + 3 × 1,000 + w 600 are more than activating, 2 × 1,000 + 600 + 300
        (
            (
                matrix("up", "mlp", (600, HIDDEN), "column"),
                matrix("down", "mlp", (HIDDEN, 300), "row"),
            ),
            3_600,
        ),
        # nothing but the input of the piece and its residual
        ((), 3_000),
    ],
)
def test_the_widest_moment_of_a_dense_layer(weights: tuple[Weight, ...], alive: int) -> None:
    assert step(model(weights)) == Step(alive=alive, kept=0, latent_alive=0, latent_row=0)


@pytest.mark.parametrize(
    ("tp", "alive"),
    [
        # activating: a 400 + 2,000 + w 3,000 + i 1,500
        (2, 6_900),
        # a 200 + 2,000 + w 1,500 + i 750 = 4,450; going in 200 + 3,000 + 1,500
        (4, 4_700),
        # summing over the ranks: a 100 + 4 × 1,000; going in 100 + 3,000 + 750
        (8, 4_100),
    ],
)
def test_ranks_share_the_widths_but_not_the_residual_stream(tp: int, alive: int) -> None:
    assert step(model((*ATTENTION, *GATED)), tp=tp).alive == alive


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_key_heads_are_repeated_where_ranks_are_more(tp: int) -> None:
    """One head of 2,000 a rank: rotating, 2 × 1,000 + f (2 × 2,000) + r 2,000."""
    keys = tuple(
        matrix(name, "attention", (4000, HIDDEN), "kv_heads", heads=2) for name in ("k", "v")
    )
    assert step(model(keys, full(kv_heads=2, head_dim=2000)), tp=tp).alive == 8_000


def test_experts_keep_two_buffers_of_the_tokens_routed_to_them() -> None:
    """Two experts a token: each of 2 × max(i, 1,000) + 2 × max(w, 1,000) elements."""

    def kept(width: int, **layout: Any) -> int:
        made = model((*ATTENTION, *experts(width)), experts=8, experts_per_token=2)
        return step(made, **layout).kept

    assert kept(400) == 2 * 1000 + 2 * 1000
    assert kept(800) == 2 * 1000 + 2 * 1600
    assert kept(1500) == 2 * 1500 + 2 * 3000
    assert kept(1500, tp=2) == 2 * 1000 + 2 * 1500
    assert kept(1500, tp=2, expert_tp=1) == kept(1500)
    assert kept(1500, tp=2, ep=2) == kept(1500)


@pytest.mark.parametrize(
    ("shared", "routes", "alive"),
    [
        # rotating, 5,000, is more than a 800 + 4 × 1,000 + 8 for the router
        (None, 8, 5_000),
        (None, 300, 5_100),
        # beside the routed tokens' result: a 800 + 4 × 1,000 + w 1,400 + i 700
        (700, 8, 6_900),
        (700, 3000, 7_800),
    ],
)
def test_shared_experts_run_beside_the_result_of_the_others(
    shared: int | None, routes: int, alive: int
) -> None:
    weights = (*ATTENTION, *experts(400), matrix("gate", "router", (routes, HIDDEN)))
    if shared:
        weights += experts(shared, "shared_experts")
    made = model(weights, experts=routes, experts_per_token=2)
    assert step(made) == Step(alive=alive, kept=4_000, latent_alive=0, latent_row=0)


LATENT = LatentCache(latent_dim=100, rope_dim=20)
DOWN_TO_LATENT = matrix("kv_a", "attention", (120, HIDDEN))
FROM_LATENT = (
    matrix("kv_b", "attention", (1600, 100), "column"),
    matrix("o_proj", "attention", (HIDDEN, 800), "row"),
)
LOW_RANK_QUERIES = (
    matrix("q_a", "attention", (300, HIDDEN)),
    matrix("q_b", "attention", (1200, 300), "column"),
)
QUERIES = (matrix("q_proj", "attention", (1200, HIDDEN), "column"),)


@pytest.mark.parametrize(
    ("queries", "tp", "expected"),
    [
        # f = 300 + 120, r = 1,200 + 100: rotating a 800 + 2,000 + 420 + 1,300;
        # making room: 1,000 + 420 + 800 + 1,300 a token and 1,600 a row
        (LOW_RANK_QUERIES, 1, Step(4_520, 0, 3_520, 1_600)),
        # f stays, a 400, r = 600 + 100; summing 400 + 4,000; room 1,000 + 420 + 400 + 700
        (LOW_RANK_QUERIES, 2, Step(4_400, 0, 2_520, 800)),
        # f = 1,200 + 120, r = 100: projecting 800 + 3,000 + 1,320; room 1,000 + 1,320 + 800 + 100
        (QUERIES, 1, Step(5_120, 0, 3_220, 1_600)),
    ],
)
def test_latent_attention_makes_room_for_its_context(
    queries: tuple[Weight, ...], tp: int, expected: Step
) -> None:
    made = model((DOWN_TO_LATENT, *queries, *FROM_LATENT), LATENT)
    assert step(made, tp=tp) == expected


def recurrent(*states: StateTensor) -> RecurrentCache:
    return RecurrentCache(states=(*states, StateTensor(name="ssm", shape=(1600, 16))))


@pytest.mark.parametrize(
    ("groups", "tp", "alive"),
    [
        # f = 2 × 1,600, r = 1,600 channels and the scan's 1,600: a 1,600 + 2,000 + 3,200 + 3,200
        ((), 1, 10_000),
        ((), 2, 6_000),
        # two groups of 51 channels more, 102 and on two ranks 51
        ((StateTensor(name="conv groups", shape=(2, 51, 3)),), 1, 10_102),
        ((StateTensor(name="conv groups", shape=(2, 51, 3)),), 2, 6_051),
    ],
)
def test_a_recurrent_layer_convolves_and_scans(
    groups: tuple[StateTensor, ...], tp: int, alive: int
) -> None:
    weights = (
        matrix("in_proj[x]", "recurrent", (1600, HIDDEN), "column"),
        matrix("in_proj[z]", "recurrent", (1600, HIDDEN), "column"),
        matrix("x_proj", "recurrent", (80, 1600), "row"),
        matrix("out_proj", "recurrent", (HIDDEN, 1600), "row"),
    )
    cache = recurrent(StateTensor(name="conv", shape=(1600, 3)), *groups)
    assert step(model(weights, cache), tp=tp).alive == alive


@pytest.mark.parametrize(
    ("back", "alive"),
    [
        # projecting: a 800 + 3 × 1,000 + f 4,000; r = a is less than another 1,000
        (800, 7_800),
        # rotating: a 1,500 + 2 × 1,000 + f 4,000 + r 1,500
        (1500, 9_000),
    ],
)
def test_a_layer_that_reads_anothers_cache_rotates_queries_alone(back: int, alive: int) -> None:
    weights = (
        matrix("q_proj", "attention", (4000, HIDDEN), "column"),
        matrix("o_proj", "attention", (HIDDEN, back), "row"),
    )
    assert step(model(weights, SharedCache(layer=0))).alive == alive


def test_packed_matrices_are_as_wide_as_the_configuration_says() -> None:
    """Eight 4-bit weights a container: no shape tells a width, so w = 2 × 3,000 and i = 3,000."""
    packed = (
        matrix("up.qweight", "mlp", (375, 999), elements=HIDDEN * FEED_FORWARD),
        matrix("up.scales", "mlp", (FEED_FORWARD, 8), elements=0),
        matrix("down.qweight", "mlp", (FEED_FORWARD, 125), "row", elements=HIDDEN * FEED_FORWARD),
    )
    # activating: 2 × 1,000 + 6,000 + 3,000, on two ranks 2 × 1,000 + 3,000 + 1,500
    assert step(model(packed)).alive == 11_000
    assert step(model(packed), tp=2).alive == 6_500


def test_scales_other_attention_and_drafts_are_no_part_of_the_step() -> None:
    """Each would be the widest of all if its width counted."""
    others = (
        matrix("q_proj.scales", "attention", (10**6, HIDDEN), "column", elements=0),
        matrix("encoder_attn.k_proj", "attention", (10**6, HIDDEN), "column"),
        matrix("mtp.up", "mtp", (10**6, HIDDEN), "column"),
        matrix("input_norm", "norms", (10**6, HIDDEN)),
        matrix("q_proj.bias", "attention", (10**6,), "column"),
        matrix("head", "lm_head", (10**6, HIDDEN), "vocab", place="head", layers=()),
    )
    plain = (*ATTENTION, *GATED)
    assert step(model((*plain, *others))) == step(model(plain))


def test_a_stage_has_its_own_layers_alone() -> None:
    """A dense layer, 11,800, before one of experts: rotating, 5,000, and two buffers."""
    second = tuple(each.model_copy(update={"layers": (1,)}) for each in (*ATTENTION, *experts(400)))
    made = model((*ATTENTION, *GATED, *second), CACHE, CACHE, experts=8, experts_per_token=2)
    assert (step(made, layers=(0, 1)).alive, step(made, layers=(0, 1)).kept) == (11_800, 0)
    assert (step(made, layers=(1, 2)).alive, step(made, layers=(1, 2)).kept) == (5_000, 4_000)
    assert (step(made).alive, step(made).kept) == (11_800, 4_000)


@pytest.mark.parametrize(
    ("name", "tp", "alive", "kept"),
    [
        # h 4,096, a 4,096, w 28,672, i 14,336
        ("llama-3.1-8b", 1, 4096 + 2 * 4096 + 28_672 + 14_336, 0),
        ("llama-3.1-8b", 2, 2048 + 2 * 4096 + 14_336 + 7168, 0),
        # 32 query and 4 KV heads of 128 rotated beside themselves; 8 experts of 768 a token
        ("qwen3-30b-a3b", 1, 4096 + 2 * 2048 + 5120 + 4608, 8 * (2048 + 2048)),
        # h 1,600, ungated 6,400
        ("gpt2-xl", 1, 1600 + 2 * 1600 + 6400 + 6400, 0),
        # h 768; 1,536 inner, twice in, once convolved, once scanned
        ("mamba-default", 1, 1536 + 2 * 768 + 2 * 1536 + 2 * 1536, 0),
    ],
)
def test_real_models(name: str, tp: int, alive: int, kept: int) -> None:
    found = step(real(name), tp=tp)
    assert (found.alive, found.kept) == (alive, kept)


@pytest.mark.parametrize("name", real_names())
def test_more_ranks_never_hold_more(name: str) -> None:
    made = real(name)
    found = [step(made, tp=tp) for tp in (1, 2, 4, 8, 16, 32)]
    for part in ("alive", "kept", "latent_alive", "latent_row"):
        widths = [getattr(each, part) for each in found]
        assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("name", real_names())
def test_every_layer_is_wider_than_what_passes_through_it(name: str) -> None:
    """And no layer is wider than its model."""
    made = real(name)
    firsts = {layer: index for index, layer in reversed(list(enumerate(made.layers)))}
    indices = {*firsts.values(), *range(min(8, len(made.layers)))}
    found = [step(made, layers=(index, index + 1)) for index in sorted(indices)]
    assert all(each.alive > 3 * made.hidden_size for each in found)
    whole = step(made)
    assert all(each.alive <= whole.alive and each.kept <= whole.kept for each in found)
    assert max(each.latent_row for each in found) == whole.latent_row
