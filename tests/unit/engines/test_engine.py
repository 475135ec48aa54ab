"""Preparing a configuration: types, ranks, stages, and everything that vLLM itself refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest
from real_models import GIB, device, full, real, toy, window

from kvplan.engines.base import Figures, Setup
from kvplan.engines.vllm.deployment import VllmDeployment
from kvplan.engines.vllm.engine import Vllm
from kvplan.engines.vllm.frame import compute_dtype
from kvplan.engines.vllm.history import NEWEST
from kvplan.errors import EngineRefusesError, NotModelledError, UsageError
from kvplan.hardware import Fact, GpuSpec
from kvplan.models.caches import (
    ChunkedCache,
    CrossCache,
    LatentCache,
    RecurrentCache,
    StateTensor,
)
from kvplan.models.formats import Dtype
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import Weight
from kvplan.plan import Parallelism
from kvplan.sources.gpus import find_gpu

HOPPER, TURING = (9, 0), (7, 5)
TWO = toy(full(), full())


def prepared(model: ModelSpec = TWO, **changes: Any) -> VllmDeployment:
    parallel = {key: changes.pop(key) for key in ("tp", "pp", "dp", "dcp") if key in changes}
    facts: dict[str, Any] = {"model": model, "gpu": device(80), "version": "0.33.0"}
    return Vllm().prepare(Setup(**(facts | {"parallelism": Parallelism(**parallel)} | changes)))


@pytest.mark.parametrize(
    ("stated", "asked", "sm", "used"),
    [
        ("bfloat16", "auto", HOPPER, "bfloat16"),
        ("float16", "auto", HOPPER, "float16"),
        ("float32", "auto", HOPPER, "bfloat16"),
        ("bfloat16", "auto", (8, 0), "bfloat16"),
        ("bfloat16", "auto", TURING, "float16"),
        ("float32", "auto", TURING, "float16"),
        ("bfloat16", "float32", HOPPER, "float32"),
        ("bfloat16", "half", HOPPER, "float16"),
        ("bfloat16", "float16", HOPPER, "float16"),
        ("float16", "bfloat16", HOPPER, "bfloat16"),
        ("bfloat16", "float", HOPPER, "float32"),
    ],
)
def test_the_type_it_computes_in(
    stated: Dtype, asked: str, sm: tuple[int, int], used: Dtype
) -> None:
    assert compute_dtype(toy(full(), dtype=stated), asked, sm) == used


def test_a_type_that_it_does_not_have() -> None:
    with pytest.raises(UsageError, match="no dtype 'int8'") as raised:
        compute_dtype(TWO, "int8", HOPPER)
    assert raised.value.hint == "Use auto or one of float32, bfloat16, float16."


def test_the_type_decides_the_cache() -> None:
    assert prepared(dtype="float32").pool.groups[0].page.page_bytes == 16 * 8 * 256 * 4
    assert prepared(dtype="float32").kv_dtype == "float32"
    assert prepared(gpu=device(16, sm=TURING)).kv_dtype == "float16"


def test_the_newest_release_is_taken_where_none_is_asked_for() -> None:
    assert Vllm().newest == NEWEST == prepared(version=None).version
    assert prepared(version="0.12.1").version == "0.12.1"


def unknown_device(vendor: str) -> GpuSpec:
    return GpuSpec(
        id="X-1",
        name="X",
        vendor=vendor,  # type: ignore[arg-type]
        architecture="x",
        torch_total_gib=Fact(value=80, source="x"),
    )


@pytest.mark.parametrize("vendor", ["custom", "amd", "intel"])
def test_a_device_without_compute_capability_takes_an_h100s_rules(vendor: str) -> None:
    assert prepared(gpu=unknown_device(vendor)).sm == (9, 0)
    assert prepared(gpu=device(80, sm=(8, 9))).sm == (8, 9)


@pytest.mark.parametrize("vendor", ["apple", "google", "aws"])
def test_devices_that_it_does_not_run_on(vendor: str) -> None:
    with pytest.raises(EngineRefusesError, match="do not run on X-1") as raised:
        prepared(gpu=unknown_device(vendor))
    assert raised.value.hint == "Choose an NVIDIA or AMD GPU, or another engine."


def test_more_stages_than_layers_are_refused() -> None:
    assert prepared(pp=2).parallelism.pp == 2
    with pytest.raises(EngineRefusesError, match="--pp 3 is more stages than the model's 2") as it:
        prepared(pp=3)
    assert it.value.hint == "Use --pp 2 or fewer."


def test_heads_are_checked() -> None:
    with pytest.raises(EngineRefusesError, match="vLLM refuses --tp 3"):
        prepared(tp=3)


# 32 query heads.
@pytest.mark.parametrize(
    ("kv_heads", "tp", "dcp", "refusal"),
    [
        (8, 8, 1, None),
        (8, 16, 2, None),
        (4, 16, 4, None),
        (4, 32, 8, None),
        (1, 8, 8, None),
        (8, 8, 2, "each of the 8 KV heads 1 times"),
        (8, 4, 2, "each of the 8 KV heads 1 times"),
        (4, 16, 8, "each of the 4 KV heads 4 times"),
        (1, 8, 3, "it must divide --tp 8"),
    ],
)
def test_decode_context_parallelism_shares_copies_of_kv_heads(
    kv_heads: int, tp: int, dcp: int, refusal: str | None
) -> None:
    model = toy(full(kv_heads))
    if refusal is None:
        assert prepared(model, tp=tp, dcp=dcp).pool.dcp == dcp
        return
    with pytest.raises(EngineRefusesError, match=refusal) as raised:
        prepared(model, tp=tp, dcp=dcp)
    assert raised.value.hint is not None


@pytest.mark.parametrize(
    ("kv_heads", "tp", "dcp", "hint"),
    [
        (8, 4, 2, "Use --dcp 1 or less, or a larger --tp."),
        (8, 8, 2, "Use --dcp 1 or less, or a larger --tp."),
        (4, 16, 8, "Use --dcp 4 or less, or a larger --tp."),
        (1, 8, 3, "Decode context parallelism reuses the tensor-parallel ranks."),
    ],
)
def test_a_refusal_says_how_many_ranks_may_share(
    kv_heads: int, tp: int, dcp: int, hint: str
) -> None:
    with pytest.raises(EngineRefusesError) as raised:
        prepared(toy(full(kv_heads)), tp=tp, dcp=dcp)
    assert raised.value.hint == hint


def test_decode_context_parallelism_divides_the_query_heads_of_a_kv_head() -> None:
    model = toy(full(4), attention_heads=12)
    with pytest.raises(EngineRefusesError, match="the 3 query heads of a KV head") as raised:
        prepared(model, tp=12, dcp=2, kv_budget=(GIB,))
    assert raised.value.hint == "Use --dcp 1."
    assert prepared(model, tp=12, dcp=3, kv_budget=(GIB,)).pool.dcp == 3


def test_latent_attention_has_no_heads_to_share() -> None:
    assert prepared(toy(LatentCache(latent_dim=512, rope_dim=64)), tp=8, dcp=8).pool.dcp == 8


def test_the_largest_number_of_kv_heads_decides() -> None:
    with pytest.raises(EngineRefusesError, match="each of the 8 KV heads 1 times"):
        prepared(toy(full(2), full(8)), tp=8, dcp=2)


def test_decode_context_parallelism_came_with_0_10() -> None:
    model = toy(full(1))
    with pytest.raises(EngineRefusesError, match=r"before 0\.10") as raised:
        prepared(model, tp=8, dcp=2, version="0.9.2")
    assert raised.value.hint == "Leave out --dcp."
    assert prepared(model, tp=8, dcp=2, version="0.10.0").pool.dcp == 2
    assert prepared(model, tp=8, version="0.9.2").pool.dcp == 1


def test_options_reach_the_pool() -> None:
    pool = prepared(
        options={"block_size": 64, "num_gpu_blocks_override": 77, "max_num_batched_tokens": 4096}
    ).pool
    assert pool.groups[0].page.block_size == 64
    assert pool.blocks_override == 77
    assert pool.in_flight == 2 * 4096


def test_without_the_hybrid_manager_there_is_one_group() -> None:
    mixed = toy(full(), window(100))
    off = {"disable_hybrid_kv_cache_manager": True}
    assert len(prepared(mixed).pool.groups) == 2
    (one,) = prepared(mixed, options=off).pool.groups
    assert (one.page.kind, one.layers) == ("full", 2)
    (windows,) = prepared(toy(window(100), window(100)), options=off).pool.groups
    assert windows.page.kind == "window"


def page_sizes(model: ModelSpec, version: str, **options: Any) -> list[int]:
    made = prepared(model, version=version, options=options, kv_budget=(GIB,))
    return [group.stage_bytes[0] for group in made.pool.groups]


def test_windows_that_are_kept_whole_count_their_keys_twice_up_to_0_20() -> None:
    """4 full layers' keys of 192 and values of 128; the window's values count 192 until 0.21."""
    off = {"disable_hybrid_kv_cache_manager": True}
    mixed = toy(full(4, 192, 128), window(128, 4, 192, 128))
    cell = 16 * 4 * 2
    assert page_sizes(mixed, "0.13.0", **off) == [cell * (384 + 384)]
    assert page_sizes(mixed, "0.20.0", **off) == [cell * (320 + 384)]
    assert page_sizes(mixed, "0.21.0", **off) == [cell * (320 + 320)]
    # With the manager on nothing is kept whole, and without full layers neither.
    assert page_sizes(mixed, "0.20.0") == [cell * 320, cell * 320]
    assert page_sizes(toy(window(128, 4, 192, 128)), "0.20.0", **off) == [cell * 320]


def test_a_given_budget_has_no_memory_ledger() -> None:
    made = prepared(kv_budget=(GIB,), pp=2)
    assert made.stages is None
    assert made.available == (GIB, GIB)
    assert (made.low, made.high, made.ranged) == (None, None, False)


def test_a_budget_a_rank_is_the_smallest_of_each_stage() -> None:
    assert prepared(kv_budget=(5, 3, 9, 8), tp=2, pp=2).available == (3, 8)
    assert prepared(kv_budget=(5, 3), tp=2).available == (3,)
    assert prepared(kv_budget=(5, 3), pp=2).available == (5, 3)
    assert prepared(kv_budget=(5, 3), pp=2, dp=8).available == (5, 3)


@pytest.mark.parametrize("budget", [(1, 2, 3), (1, 2), (1,) * 8])
def test_another_number_of_budgets_than_ranks_is_an_error(budget: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match=f"{len(budget)} KV budgets were given for 4 ranks") as it:
        prepared(kv_budget=budget, tp=2, pp=2)
    assert it.value.hint == "Give one for all, or one for each rank of a replica."


def test_a_pool_of_given_size_is_the_same_on_every_stage() -> None:
    made = prepared(options={"kv_cache_memory_bytes": GIB}, pp=2)
    assert made.available == (GIB, GIB)
    assert made.stages is not None
    assert (made.low, made.high, made.ranged) == (None, None, False)


def test_what_the_budget_leaves_has_a_range() -> None:
    made = prepared(pp=2)
    assert made.stages is not None
    assert made.low is not None
    assert made.high is not None
    assert made.available == tuple(rank.available for rank in made.stages)
    assert made.low == tuple(rank.low for rank in made.stages)
    assert made.high == tuple(rank.high for rank in made.stages)
    assert made.low < made.available < made.high
    assert made.ranged


def test_the_fullest_stage_has_the_fewest_blocks() -> None:
    # Three layers over two stages: 2 on the first, 1 on the last.
    three = toy(*[full()] * 3)
    block = 16 * 8 * 512
    assert prepared(three, pp=2, kv_budget=(GIB,)).fullest == 0
    assert prepared(three, pp=2, kv_budget=(20 * block, 9 * block)).fullest == 1
    assert prepared(three, pp=2, kv_budget=(20 * block, 11 * block)).fullest == 0
    assert prepared(three, pp=2, kv_budget=(20 * block, 10 * block)).fullest == 1
    assert prepared(three, pp=2, kv_budget=(20 * block, 9 * block)).blocks == 9


def test_a_stage_without_caches_never_runs_out() -> None:
    made = prepared(toy(full(), None), pp=2, kv_budget=(GIB, 1))
    assert made.pool.stage_block_bytes == (16 * 8 * 512, 0)
    assert made.fullest == 0
    assert made.blocks == GIB // (16 * 8 * 512)


@pytest.mark.parametrize(
    ("stated", "asked", "limit"),
    [(8192, None, 8192), (8192, 100, 8192), (8192, 10_000, 10_000), (None, None, 1),
     (None, 500, 500)],
)  # fmt: skip
def test_the_longest_length_that_is_searched(
    stated: int | None, asked: int | None, limit: int
) -> None:
    made = prepared(toy(full(), max_context=stated), context=asked)
    assert made.limit == limit
    assert made.longest_context() == limit


def test_short_requests_make_small_batches() -> None:
    """Two requests of three tokens are six; a model of no stated length counts as 2,048."""
    two = prepared(context=3, options={"max_num_seqs": 2})
    assert two.settings.max_num_batched_tokens == 6
    assert prepared(options={"max_num_seqs": 2}).settings.max_num_batched_tokens == 8192
    silent = toy(full(), max_context=None)
    assert prepared(silent).settings.max_num_batched_tokens == 8192
    assert prepared(silent, options={"max_num_seqs": 2}).settings.max_num_batched_tokens == 4096


def test_replicas_multiply_requests_and_nothing_else() -> None:
    one, four = (prepared(dp=dp, kv_budget=(GIB,)).figures(1000) for dp in (1, 4))
    assert four.requests == 4 * one.requests > 0
    assert (four.blocks, four.tokens, four.max_context) == (one.blocks, one.tokens, one.max_context)
    assert four.max_concurrency == one.max_concurrency


def test_a_request_less_for_each_replicas_limit() -> None:
    made = prepared(dp=3, kv_budget=(GIB,), options={"max_num_seqs": 5})
    assert made.figures(16).requests == 15


@pytest.mark.parametrize(
    ("name", "options", "parallel", "ep"),
    [
        ("qwen3-30b-a3b", {"enable_expert_parallel": True}, {"tp": 2, "dp": 4}, 8),
        ("qwen3-30b-a3b", {}, {"tp": 2, "dp": 4}, 1),
        ("llama-3.1-8b", {"enable_expert_parallel": True}, {"tp": 2, "dp": 4}, 1),
    ],
)
def test_experts_spread_over_all_ranks(
    name: str, options: dict[str, bool], parallel: dict[str, int], ep: int
) -> None:
    made = prepared(real(name), options=options, **parallel)
    assert made.parallelism == Parallelism(**parallel, ep=ep)


def weights(made: VllmDeployment, stage: int = 0) -> dict[str, int]:
    assert made.stages is not None
    drafts = made.stages[stage].budget
    return {d.name: d.value() for d in drafts if d.name.startswith("weights.")}


def test_experts_are_cut_over_replicas_too_and_nothing_else_is() -> None:
    model = real("qwen3-30b-a3b")
    one, two = weights(prepared(model, tp=2)), weights(prepared(model, tp=2, dp=2))
    assert two["weights.experts"] * 2 == one["weights.experts"]
    assert {**two, "weights.experts": 0} == {**one, "weights.experts": 0}
    whole = weights(prepared(model, tp=2, dp=2, options={"enable_expert_parallel": True}))
    assert whole["weights.experts"] == two["weights.experts"]


def test_the_vocabulary_is_padded_and_stands_on_the_first_and_last_stage() -> None:
    def matrix(name: str, component: str, place: str) -> Weight:
        return Weight(name=name, component=component, shape=(1001, 8), place=place,  # type: ignore[arg-type]
                      sharding="vocab")  # fmt: skip

    inventory = (matrix("embed", "embedding", "embedding"), matrix("head", "lm_head", "head"))
    made = prepared(toy(*[full()] * 3, weights=inventory), tp=2, pp=3)
    padded = 1024 // 2 * 8 * 2
    assert weights(made, 0) == {"weights.embedding": padded}
    assert weights(made, 1) == {}
    assert weights(made, 2) == {"weights.lm_head": padded}


def test_communication_is_between_the_ranks_of_a_replica() -> None:
    two = {"tp": 2, "pp": 2}
    for parallel, talks in (({"tp": 2}, True), ({"pp": 2}, True), (two, True), ({"dp": 2}, False)):
        made = prepared(**parallel)
        assert made.stages is not None
        assert all(("nccl" in {d.name for d in rank.outside}) is talks for rank in made.stages)


def test_starting_takes_room_for_one_request_and_for_what_lies_outside() -> None:
    fine = prepared(kv_budget=(GIB,), context=8192)
    assert fine.figures(8192).starts
    assert fine.left == GIB % (2 * 16 * 8 * 512)
    longest = prepared(kv_budget=(10 * 2**20,), context=8192)
    assert longest.figures(8192).max_context == 79 * 16 == 1264
    assert not longest.figures(8192).starts
    assert longest.figures(1264).starts
    assert not longest.figures(1265).starts
    crowded = prepared(options={"gpu_memory_utilization": 1.0})
    assert crowded.outside_left < 0
    assert not crowded.figures(100).starts
    assert prepared(options={"gpu_memory_utilization": 0.99}).outside_left > 0


def test_a_given_pool_knows_no_utilization() -> None:
    options = {"gpu_memory_utilization": 1.0, "kv_cache_memory_bytes": GIB}
    assert prepared(options=options).outside_left == 0
    assert prepared(options=options).figures(100).starts
    assert prepared(kv_budget=(GIB,)).outside_left == 0


def test_a_given_pool_that_does_not_fit_does_not_start() -> None:
    made = prepared(options={"kv_cache_memory_bytes": 79 * GIB})
    assert made.stages is not None
    rank = made.stages[0]
    pool = made.blocks * made.pool.stage_block_bytes[0]
    assert made.left == rank.device.total - rank.spent - rank.beside - pool < 0
    assert not made.figures(100).starts
    assert prepared(options={"kv_cache_memory_bytes": 60 * GIB}).figures(100).starts


@pytest.mark.parametrize(("spare", "starts"), [(-1, False), (0, True)])
def test_a_given_pool_fits_to_the_byte(spare: int, *, starts: bool) -> None:
    options = {"kv_cache_memory_bytes": 1000 * 2 * 16 * 8 * 512}
    made = prepared(gpu=device(8), options=options)
    assert made.stages is not None
    rank = made.stages[0]
    total = rank.spent + rank.beside + options["kv_cache_memory_bytes"] + spare
    exact = prepared(gpu=device(total / GIB), options=options)
    assert exact.left == spare
    assert exact.figures(100).starts is starts


@pytest.mark.parametrize(("spare", "starts"), [(-1, False), (0, True)])
def test_what_lies_outside_fits_to_the_byte(spare: int, *, starts: bool) -> None:
    beside = 483_183_821  # 0.45 GiB, rounded up
    total = next(
        total
        for total in range(100 * beside - 200, 100 * beside + 200)
        if total - math.ceil(total * 0.99) - beside == spare
    )
    made = prepared(gpu=device(total / GIB), options={"gpu_memory_utilization": 0.99})
    assert made.outside_left == spare
    assert made.figures(100).starts is starts


def test_more_blocks_than_there_is_memory_do_not_start() -> None:
    many = {"num_gpu_blocks_override": 10**7}
    assert not prepared(options=many).figures(100).starts
    assert not prepared(options=many, kv_budget=(GIB,)).figures(100).starts
    few = {"num_gpu_blocks_override": 100}
    assert prepared(options=few).figures(100).starts
    assert prepared(options=few, kv_budget=(GIB,)).left == GIB - 100 * 2 * 16 * 8 * 512
    # A hundred blocks, one of them the null block: 1,584 tokens.
    assert prepared(options=few).figures(100).max_context == 1584


def test_the_poorest_stage_decides_whether_a_given_pool_fits() -> None:
    # The last stage also has the sampler's peak.
    made = prepared(
        toy(*[full()] * 4, vocab_size=500_000), pp=2, options={"kv_cache_memory_bytes": 78 * GIB}
    )
    assert made.stages is not None
    pool = made.blocks * made.pool.stage_block_bytes[0]
    lefts = [rank.device.total - rank.spent - rank.beside - pool for rank in made.stages]
    assert lefts[1] < lefts[0]
    assert made.left == lefts[1]


def test_models_without_a_cache_are_refused() -> None:
    with pytest.raises(NotModelledError, match="no attention cache"):
        prepared(toy(None, None))


def held(made: VllmDeployment, length: int) -> list[tuple[str, int, int]]:
    """Kind, layers and blocks of a request for each group."""
    pool = made.pool
    return [(of.page.kind, of.layers, pool.group_blocks(of, length)) for of in pool.groups]


STATE = RecurrentCache(states=(StateTensor(name="ssm", shape=(16, 64, 64)),))
CROSS = CrossCache(kv_heads=8, head_dim=64, head_dim_v=64, source_tokens=1500)


def test_ranks_do_not_share_windows() -> None:
    """Kept whole, a window is shared like the rest: 1,600 tokens are 50 blocks of two ranks."""
    both = {"tp": 8, "dcp": 2, "kv_budget": (GIB,)}
    mixed = toy(full(1), window(100, 1))
    whole = {"disable_hybrid_kv_cache_manager": True}
    assert held(prepared(mixed, options=whole, **both), 1600) == [("full", 2, 50)]
    for model in (mixed, toy(window(100, 1)), real("deepseek-v4-default")):
        with pytest.raises(EngineRefusesError, match="context parallelism for windowed") as raised:
            prepared(model, **both)
        assert raised.value.hint is not None
        assert raised.value.hint.startswith("Leave out --dcp; beside full layers")
        assert prepared(model, tp=8, kv_budget=(GIB,)).pool.dcp == 1


def test_models_of_states_alone_are_planned() -> None:
    """131,072 bytes a layer: 1 GiB holds 4,096 blocks of two; a request holds one at any length.

    Prefix caching is off for such a model; on, it holds two.
    """
    made = prepared(toy(STATE, STATE), kv_budget=(GIB,))
    assert held(made, 8192) == [("recurrent", 2, 1)]
    assert (made.blocks, made.longest_context()) == (4096, 8192)
    assert made.figures(8192).max_concurrency == 4096.0
    assert made.figures(8192).tokens == 4096 * 8192
    assert made.pool.growth(100, 0) == 0.0
    caching = {"enable_prefix_caching": True}
    assert held(prepared(toy(STATE), kv_budget=(GIB,), options=caching), 10) == [
        ("recurrent", 1, 2)
    ]


def test_models_of_windows_alone_are_planned() -> None:
    """99 + 16,384 tokens are 1,031 blocks and one more; a shorter request holds what it has."""
    made = prepared(toy(window(100), window(100)), kv_budget=(GIB,), context=100_000)
    assert held(made, 100_000) == [("window", 2, 1032)]
    assert held(made, 1000) == [("window", 2, 64)]
    assert made.longest_context() == 100_000


def test_encoder_decoders_are_planned() -> None:
    """Batches of 8,192 tokens since 0.11; 0.10 took the 1,500 of the encoder: 94 blocks."""
    model = toy(full(8, 64), CROSS)
    assert held(prepared(model, kv_budget=(GIB,)), 448) == [("full", 1, 28), ("cross", 1, 512)]
    older = prepared(model, kv_budget=(GIB,), version="0.10.2")
    assert held(older, 448) == [("full", 1, 28), ("cross", 1, 94)]


def test_v0_keeps_every_window_whole_and_has_no_null_block() -> None:
    mixed = toy(full(), window(100), window(100))
    for version, options in (("0.7.3", {}), ("0.9.2", {"use_v1": False})):
        made = prepared(mixed, version=version, kv_budget=(10 * 3 * 65_536,), options=options)
        assert held(made, 160) == [("full", 3, 10)]
        assert made.figures(160) == Figures(
            blocks=10, tokens=160, max_concurrency=1.0, max_context=160, requests=1, starts=True
        )
    with pytest.raises(NotModelledError, match="in vLLM's V0 engine"):
        prepared(toy(STATE), version="0.7.3")


def test_0_8_has_one_group_and_refuses_what_cannot_share_it() -> None:
    made = prepared(toy(full(), window(100)), version="0.8.5", kv_budget=(GIB,))
    assert held(made, 1600) == [("full", 2, 100)]
    with pytest.raises(EngineRefusesError, match="one block table"):
        prepared(toy(full(), STATE), version="0.8.5", kv_budget=(GIB,))


@pytest.mark.parametrize(
    ("version", "groups"),
    [
        ("0.9.2", [("full", 2, 4)]),
        ("0.10.0", [("full", 1, 4), ("chunked", 1, 4)]),
        ("0.10.1", [("full", 2, 4)]),
        ("0.13.0", [("full", 2, 4)]),
        ("0.14.0", [("full", 1, 4), ("chunked", 1, 4)]),
    ],
)
def test_chunks_were_kept_whole_by_default_for_a_while(
    version: str, groups: list[tuple[str, int, int]]
) -> None:
    chunk = ChunkedCache(kv_heads=8, head_dim=128, head_dim_v=128, chunk=8192)
    assert held(prepared(toy(full(), chunk), version=version, kv_budget=(GIB,)), 64) == groups


def test_a_draft_joins_the_groups_on_the_last_stage() -> None:
    """Three layers and one module over two stages: two and one, and the module with the last."""
    draft = toy(full(), draft="MTP")
    options = {"speculative_config": {"method": "mtp", "num_speculative_tokens": 1}}
    made = prepared(toy(*[full()] * 3), draft=draft, options=options, pp=2, kv_budget=(GIB,))
    (only,) = made.pool.groups
    assert (only.indices, only.stage_bytes) == ((0, 1, 2, 3), (2 * 65_536, 2 * 65_536))
    with pytest.raises(UsageError, match="asks for a draft"):
        prepared(toy(full()), options=options)
    with pytest.raises(EngineRefusesError, match="--tp 8: it neither divides the 3 KV heads"):
        prepared(toy(full()), draft=toy(full(3), draft="MTP"), options=options, tp=8)


def test_compressed_caches_need_packing() -> None:
    model = real("deepseek-v4-default")
    assert len(prepared(model, kv_budget=(GIB,)).pool.groups) > 1
    with pytest.raises(NotModelledError, match=r"before 0\.27 groups compressed") as raised:
        prepared(model, kv_budget=(GIB,), version="0.26.0")
    assert raised.value.hint == f"Plan for a newer release, for example vllm=={NEWEST}."


def test_real_devices_are_planned_for() -> None:
    made = prepared(real("llama-3.1-8b"), gpu=find_gpu("L4"), context=8192)
    assert made.sm == (8, 9)
    assert made.settings.max_num_batched_tokens == 2048
