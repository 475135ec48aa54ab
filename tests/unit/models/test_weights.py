"""The weight inventory on one rank, against sums worked out by hand."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kvplan.models.formats import PLAIN, NumberFormat
from kvplan.models.weights import (
    Component,
    Place,
    RankLayout,
    RankPart,
    Sharding,
    Weight,
    active_parameters,
    rank_bytes,
    rank_parts,
    stored_bytes,
    total_parameters,
)

BF16 = PLAIN["bfloat16"]
FP8_BLOCKS = NumberFormat(
    name="fp8", bits=8, block_rows=128, block_columns=128, scale_bytes=4, source="test"
)
LAYERS = (0, 1, 2, 3)


def weight(
    name: str,
    component: Component,
    shape: tuple[int, ...],
    sharding: Sharding = "replicated",
    **more: object,
) -> Weight:
    stated = {"name": name, "component": component, "shape": shape, "sharding": sharding}
    return Weight.model_validate({"layers": LAYERS} | stated | more)


# A small model: 4 layers, hidden 64, 8 heads of 8, 2 KV heads, feed-forward 192, vocabulary 1000,
# a router over 4 experts of 32, one of them at a time.
EMBEDDING = weight("embed_tokens", "embedding", (1000, 64), "vocab", place="embedding", layers=())
HEAD = weight("lm_head", "lm_head", (1000, 64), "vocab", place="head", layers=())
QUERY = weight("q_proj", "attention", (64, 64), "column")
KEY = weight("k_proj", "attention", (16, 64), "kv_heads", heads=2)
KEY_BIAS = weight("k_proj.bias", "attention", (16,), "kv_heads", heads=2)
OUT = weight("o_proj", "attention", (64, 64), "row")
OUT_BIAS = weight("o_proj.bias", "attention", (64,), "row")
UP = weight("up_proj", "mlp", (192, 64), "column")
DOWN = weight("down_proj", "mlp", (64, 192), "row")
NORM = weight("input_layernorm", "norms", (64,))
ROUTER = weight("gate", "router", (4, 64))
EXPERTS = weight("experts.up", "experts", (32, 64), "column", copies=4, active_copies=1)
TOWER = weight("patches", "vision", (64, 3, 14, 14), "column", place="tower", layers=())
INVENTORY = (
    EMBEDDING, HEAD, QUERY, KEY, KEY_BIAS, OUT, OUT_BIAS, UP, DOWN, NORM, ROUTER, EXPERTS, TOWER,
)  # fmt: skip

ONE_RANK = RankLayout(layers=(0, 4), vocab_multiple=1)


def whole(*weights: Weight) -> int:
    """Bytes of ``weights`` on a single rank that holds everything."""
    return sum(rank_bytes(weights, BF16, ONE_RANK, tied=False).values())


# ---------------------------------------------------------------- parameters


def test_parameters_by_hand() -> None:
    assert EMBEDDING.parameters == 64_000
    assert KEY.parameters == 4 * 16 * 64
    assert KEY_BIAS.parameters == 4 * 16
    assert EXPERTS.parameters == 4 * 4 * 32 * 64
    assert TOWER.parameters == 64 * 3 * 14 * 14
    assert EXPERTS.instances == 16
    assert HEAD.instances == 1
    assert total_parameters((EMBEDDING, KEY, EXPERTS)) == 64_000 + 4_096 + 32_768


def test_containers_and_scales_are_bytes_but_not_parameters() -> None:
    packed = UP.model_copy(update={"shape": (192, 8), "elements": 192 * 64})
    scales = UP.model_copy(update={"shape": (192, 1), "elements": 0})
    assert total_parameters((packed, scales)) == 4 * 192 * 64
    assert stored_bytes((packed, scales), BF16) == {"mlp": 4 * 192 * (8 + 1) * 2}


def test_draft_modules_are_stored_but_neither_counted_nor_loaded() -> None:
    module = UP.model_copy(update={"component": "mtp", "layers": (4,)})
    assert total_parameters((module, DOWN)) == DOWN.parameters
    assert active_parameters((module, DOWN)) == DOWN.parameters
    assert stored_bytes((module,), BF16) == {"mtp": 2 * 192 * 64}
    assert rank_bytes((module,), BF16, ONE_RANK, tied=False) == {}


def test_containers_and_scales_are_no_parameters() -> None:
    # 8 elements of 4 bits in each 32-bit container; a scale is no parameter at all.
    packed = weight("qweight", "mlp", (64, 24), elements=64 * 192)
    scales = weight("scales", "mlp", (64, 2), elements=0)
    assert packed.parameters == 4 * 64 * 192
    assert scales.parameters == 0
    assert total_parameters((packed, scales)) == 4 * 64 * 192
    assert stored_bytes((scales,), BF16) == {"mlp": 4 * 128 * 2}


def test_a_token_meets_only_the_experts_it_is_routed_to() -> None:
    assert active_parameters((EXPERTS,)) == 4 * 32 * 64
    assert type(active_parameters((EXPERTS,))) is int
    assert active_parameters((EMBEDDING, EXPERTS)) == 64_000 + 4 * 32 * 64
    unused = EXPERTS.model_copy(update={"active_copies": 0})
    assert active_parameters((unused,)) == 0


def test_checkpoint_bytes_by_component() -> None:
    packed = UP.model_copy(update={"format": FP8_BLOCKS})
    assert stored_bytes((QUERY, KEY, packed, EMBEDDING), BF16) == {
        "attention": 4 * (64 * 64 + 16 * 64) * 2,
        "mlp": 4 * (192 * 64 + 2 * 1 * 4),
        "embedding": 64_000 * 2,
    }
    assert packed.stored_bytes(BF16) == 4 * (192 * 64 + 8)
    assert TOWER.stored_bytes(BF16) == 64 * 588 * 2


def test_one_rank_holds_what_the_checkpoint_holds() -> None:
    assert rank_bytes(INVENTORY, BF16, ONE_RANK, tied=False) == stored_bytes(INVENTORY, BF16)


# ---------------------------------------------------------------- tensor parallelism


@pytest.mark.parametrize(
    ("part", "tp", "shape"),
    [
        (QUERY, 1, (64, 64)),
        (QUERY, 4, (16, 64)),
        (QUERY, 3, (22, 64)),
        (OUT, 4, (64, 16)),
        (OUT, 3, (64, 22)),
        (OUT_BIAS, 4, (64, 1)),
        (NORM, 8, (64, 1)),
        (ROUTER, 8, (4, 64)),
        (KEY, 1, (16, 64)),
        (KEY, 2, (8, 64)),
        (KEY, 8, (8, 64)),
        (KEY_BIAS, 2, (8, 1)),
        (TOWER, 4, (16, 588)),
        (DOWN, 8, (64, 24)),
    ],
)
def test_what_one_rank_holds_of_a_matrix(part: Weight, tp: int, shape: tuple[int, int]) -> None:
    held = part.rank_shape(tp=tp, vocab_multiple=64)
    assert held == shape
    assert [type(side) for side in held] == [int, int]


@pytest.mark.parametrize(
    ("rows", "tp", "multiple", "on_rank"),
    [
        (1_000, 1, 1, 1_000),
        (1_000, 1, 64, 1_024),
        (1_000, 4, 64, 256),
        (1_000, 8, 512, 128),
        (32_000, 8, 64, 4_000),
        (50_257, 1, 64, 50_304),
        (50_257, 4, 256, 12_608),
    ],
)
def test_the_vocabulary_is_padded_then_split(
    rows: int, tp: int, multiple: int, on_rank: int
) -> None:
    part = weight("embed", "embedding", (rows, 64), "vocab", place="embedding")
    assert part.rank_shape(tp=tp, vocab_multiple=multiple) == (on_rank, 64)


@pytest.mark.parametrize(
    ("rows", "heads", "tp", "on_rank"),
    [(4, 8, 1, 4), (4, 8, 2, 2), (4, 8, 8, 1), (12, 8, 8, 2), (1024, 8, 16, 128)],
)
def test_rows_of_scales_that_several_heads_share(
    rows: int, heads: int, tp: int, on_rank: int
) -> None:
    """Blocks of 128 rows over heads of 64: half a row a head, and no head without a row."""
    part = weight("k_proj", "attention", (rows, 64), "kv_heads", heads=heads)
    assert part.rank_shape(tp=tp, vocab_multiple=64) == (on_rank, 64)


def test_a_rank_by_hand() -> None:
    layout = RankLayout(tp=4, layers=(0, 4))
    assert rank_bytes(INVENTORY, BF16, layout, tied=False) == {
        "embedding": 256 * 64 * 2,
        "lm_head": 256 * 64 * 2,
        # q a quarter, k one of two heads with its bias, o a quarter, its bias whole.
        "attention": 4 * (16 * 64 + 8 * 64 + 8 + 64 * 16 + 64) * 2,
        "mlp": 4 * (48 * 64 + 64 * 48) * 2,
        "norms": 4 * 64 * 2,
        "router": 4 * 4 * 64 * 2,
        "experts": 4 * 4 * 8 * 64 * 2,
        "vision": 16 * 588 * 2,
    }


# ---------------------------------------------------------------- experts


def test_experts_are_split_like_any_matrix_without_expert_parallelism() -> None:
    layout = RankLayout(tp=4, layers=(0, 4))
    assert rank_bytes((EXPERTS,), BF16, layout, tied=False) == {"experts": 4 * 4 * 8 * 64 * 2}


def test_expert_parallel_ranks_hold_whole_experts() -> None:
    layout = RankLayout(tp=4, ep=4, layers=(0, 4))
    assert rank_bytes((EXPERTS,), BF16, layout, tied=False) == {"experts": 4 * 1 * 32 * 64 * 2}


def test_the_fullest_expert_rank_takes_the_odd_expert() -> None:
    layout = RankLayout(tp=1, ep=3, layers=(0, 4))
    assert rank_bytes((EXPERTS,), BF16, layout, tied=False) == {"experts": 4 * 2 * 32 * 64 * 2}


def test_expert_parallelism_leaves_everything_else_to_tp() -> None:
    layout = RankLayout(tp=4, ep=4, layers=(0, 4))
    assert rank_bytes((UP, ROUTER), BF16, layout, tied=False) == {
        "mlp": 4 * 48 * 64 * 2,
        "router": 4 * 4 * 64 * 2,
    }


def test_experts_may_be_split_over_other_ranks_than_the_rest() -> None:
    layout = RankLayout(tp=2, expert_tp=8, layers=(0, 4))
    assert layout.tp_of("experts") == 8
    assert layout.tp_of("shared_experts") == 2
    assert layout.tp_of("router") == 2
    assert RankLayout(tp=2, layers=(0, 4)).tp_of("experts") == 2
    assert RankLayout(tp=2, ep=2, expert_tp=8, layers=(0, 4)).tp_of("experts") == 1
    assert rank_bytes((EXPERTS, UP), BF16, layout, tied=False) == {
        "experts": 4 * 4 * 4 * 64 * 2,
        "mlp": 4 * 96 * 64 * 2,
    }


# ---------------------------------------------------------------- pipeline stages


def stages(count: int, **more: object) -> list[RankLayout]:
    """Equal stages over the four layers."""
    size = 4 // count
    return [
        RankLayout.model_validate(
            {
                "layers": (stage * size, (stage + 1) * size),
                "first": stage == 0,
                "last": stage == count - 1,
                "vocab_multiple": 1,
            }
            | more
        )
        for stage in range(count)
    ]


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("tp", [1, 2, 8])
def test_stages_sum_to_the_whole(count: int, tp: int) -> None:
    parts = [
        sum(rank_bytes(INVENTORY, BF16, stage, tied=False).values())
        for stage in stages(count, tp=tp)
    ]
    single = RankLayout(tp=tp, layers=(0, 4), vocab_multiple=1)
    assert sum(parts) == sum(rank_bytes(INVENTORY, BF16, single, tied=False).values())


def test_embedding_towers_and_head_stay_at_their_ends() -> None:
    first, last = (rank_bytes(INVENTORY, BF16, stage, tied=False) for stage in stages(2))
    assert "embedding" in first
    assert "vision" in first
    assert "lm_head" not in first
    assert "lm_head" in last
    assert not {"embedding", "vision"} & set(last)
    middle = rank_bytes(INVENTORY, BF16, stages(4)[1], tied=True)
    assert not {"embedding", "vision", "lm_head"} & set(middle)


def test_a_layers_weight_is_on_the_stage_that_has_the_layer() -> None:
    some = UP.model_copy(update={"layers": (1, 2, 3)})
    first, last = (rank_bytes((some,), BF16, stage, tied=False) for stage in stages(2))
    assert first == {"mlp": 1 * 192 * 64 * 2}
    assert last == {"mlp": 2 * 192 * 64 * 2}
    early = UP.model_copy(update={"layers": (0,)})
    assert rank_bytes((early,), BF16, stages(2)[1], tied=False) == {}


def test_a_tied_matrix_is_kept_once_on_one_stage_and_on_both_ends_of_two() -> None:
    tied = (EMBEDDING, UP)
    assert rank_bytes(tied, BF16, ONE_RANK, tied=True)["embedding"] == 128_000
    first, last = (rank_bytes(tied, BF16, stage, tied=True) for stage in stages(2))
    assert first["embedding"] == last["embedding"] == 128_000
    middle = rank_bytes(tied, BF16, stages(4)[2], tied=True)
    assert middle == {"mlp": 192 * 64 * 2}


# ---------------------------------------------------------------- parts by format


def test_a_component_in_two_formats_is_two_parts() -> None:
    packed = DOWN.model_copy(update={"format": FP8_BLOCKS})
    layout = RankLayout(tp=2, layers=(0, 4))
    plain, scaled = rank_parts((UP, packed), BF16, layout, tied=False)
    assert (plain.component, plain.format, plain.elements) == ("mlp", "bf16", 4 * 96 * 64)
    assert (plain.bytes, plain.bytes_per_element) == (4 * 96 * 64 * 2, 2)
    assert (scaled.component, scaled.format, scaled.elements) == ("mlp", "fp8", 4 * 64 * 96)
    assert (scaled.bytes, scaled.bytes_per_element) == (4 * (64 * 96 + 4), None)
    assert rank_bytes((UP, packed), BF16, layout, tied=False) == {"mlp": plain.bytes + scaled.bytes}


def test_what_a_rank_holds_is_worked_out_once_an_inventory() -> None:
    inventory, layout = (UP, DOWN), RankLayout(tp=2, layers=(0, 4))
    first = rank_parts(inventory, BF16, layout, tied=False)
    assert rank_parts(inventory, BF16, layout, tied=False) is first
    other = (UP, DOWN.model_copy(update={"format": FP8_BLOCKS}))
    assert rank_parts(other, BF16, layout, tied=False) != first
    assert (
        rank_parts(inventory, PLAIN["float32"], layout, tied=False)[0].bytes == 2 * first[0].bytes
    )
    single = RankLayout(tp=1, layers=(0, 4))
    assert rank_parts(inventory, BF16, single, tied=False)[0].bytes == 2 * first[0].bytes


def test_weights_of_one_component_and_format_are_one_part() -> None:
    (part,) = rank_parts((UP, DOWN), BF16, ONE_RANK, tied=False)
    assert part.elements == UP.parameters + DOWN.parameters
    assert part.bytes == 2 * part.elements
    with pytest.raises(ValidationError):
        part.bytes = 0
    with pytest.raises(ValidationError):
        RankPart.model_validate(part.model_dump() | {"surprise": 1})


# ---------------------------------------------------------------- laws

shardings: st.SearchStrategy[Sharding] = st.sampled_from(
    ("replicated", "column", "row", "kv_heads", "vocab")
)
sides = st.integers(1, 300)


@st.composite
def any_weight(draw: st.DrawFn) -> Weight:
    sharding = draw(shardings)
    heads = draw(st.integers(1, 16)) if sharding == "kv_heads" else 1
    rows = heads * draw(st.integers(1, 64)) if sharding == "kv_heads" else draw(sides)
    shape = (rows,) if draw(st.booleans()) else (rows, draw(sides))
    component: Component = draw(st.sampled_from(("mlp", "experts")))
    copies = draw(st.integers(1, 16)) if component == "experts" else 1
    return weight(
        "any",
        component,
        shape,
        sharding,
        heads=heads,
        copies=copies,
        format=draw(st.sampled_from((None, FP8_BLOCKS))),
    )


inventories = st.lists(any_weight(), min_size=1, max_size=4).map(tuple)
ranks = st.integers(1, 32)


def on_rank(inventory: tuple[Weight, ...], **layout: int) -> int:
    made = RankLayout.model_validate({"layers": (0, 4)} | layout)
    return sum(rank_bytes(inventory, BF16, made, tied=False).values())


@given(inventories, ranks, ranks)
def test_more_ranks_never_hold_more_on_one(
    inventory: tuple[Weight, ...], one: int, other: int
) -> None:
    fewer, more = sorted((one, other))
    assert on_rank(inventory, tp=more) <= on_rank(inventory, tp=fewer)


@given(inventories, ranks)
def test_all_ranks_together_hold_at_least_the_whole(inventory: tuple[Weight, ...], tp: int) -> None:
    assert tp * on_rank(inventory, tp=tp, vocab_multiple=1) >= whole(*inventory)
    assert tp * on_rank(inventory, ep=tp, vocab_multiple=1) >= whole(*inventory)


@given(inventories, ranks, ranks)
def test_more_expert_ranks_never_hold_more_on_one(
    inventory: tuple[Weight, ...], one: int, other: int
) -> None:
    fewer, more = sorted((one, other))
    assert on_rank(inventory, ep=more) <= on_rank(inventory, ep=fewer)


@given(inventories, ranks, st.integers(1, 3))
def test_any_cut_into_two_stages_sums_to_the_whole(
    inventory: tuple[Weight, ...], tp: int, cut: int
) -> None:
    layouts = (
        RankLayout(tp=tp, layers=(0, cut), last=False),
        RankLayout(tp=tp, layers=(cut, 4), first=False),
    )
    halves = [sum(rank_bytes(inventory, BF16, layout, tied=False).values()) for layout in layouts]
    assert sum(halves) == on_rank(inventory, tp=tp)


@given(inventories, ranks)
def test_parts_sum_to_components(inventory: tuple[Weight, ...], tp: int) -> None:
    layout = RankLayout(tp=tp, layers=(0, 4))
    parts = rank_parts(inventory, BF16, layout, tied=False)
    assert sum(part.bytes for part in parts) == on_rank(inventory, tp=tp)
    assert len({(part.component, part.format) for part in parts}) == len(parts)


# ---------------------------------------------------------------- as data


def test_the_components_are_these() -> None:
    assert get_args(Component) == (
        "embedding", "attention", "mlp", "experts", "shared_experts", "router", "recurrent",
        "norms", "lm_head", "vision", "audio", "mtp", "other",
    )  # fmt: skip


def test_the_places_and_shardings_are_these() -> None:
    assert get_args(Place) == ("embedding", "layers", "head", "tower")
    assert get_args(Sharding) == ("replicated", "column", "row", "kv_heads", "vocab")


def test_a_weight_is_one_copy_in_one_head_unless_it_says_otherwise() -> None:
    plain = Weight(name="w", component="mlp", shape=(8, 4), layers=(0,))
    assert (plain.copies, plain.active_copies, plain.heads) == (1, 1, 1)
    assert plain.sharding == "replicated"
    assert plain.place == "layers"
    with pytest.raises(ValidationError):
        plain.name = "other"


@pytest.mark.parametrize(
    "stated",
    [
        {"shape": ()},
        {"shape": (0, 64)},
        {"shape": (64, -1)},
        {"copies": 0},
        {"active_copies": -1},
        {"heads": 0},
        {"elements": -1},
        {"sharding": "diagonal"},
        {"component": "tail"},
        {"place": "attic"},
        {"surprise": 1},
    ],
)
def test_what_no_model_can_have_is_refused(stated: dict[str, object]) -> None:
    base = {"name": "w", "component": "mlp", "shape": (64, 64)}
    Weight.model_validate(base)
    with pytest.raises(ValidationError):
        Weight.model_validate(base | stated)


def test_a_tied_head_takes_the_vocabulary_to_the_last_stage_and_no_positions() -> None:
    words = Weight(
        name="wte", component="embedding", shape=(1000, 8), place="embedding", sharding="vocab"
    )
    positions = Weight(name="wpe", component="embedding", shape=(64, 8), place="embedding")
    last = RankLayout(layers=(1, 2), first=False, last=True, vocab_multiple=1)
    both = (words, positions)
    assert rank_bytes(both, PLAIN["bfloat16"], last, tied=True) == {"embedding": 1000 * 8 * 2}
    assert rank_bytes(both, PLAIN["bfloat16"], last, tied=False) == {}
