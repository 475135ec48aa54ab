"""One rank's memory line by line: computed by hand, inside or outside the budget, in its range."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from fixed_calibration import MIB, NEWEST, fix_calibration
from real_models import GIB, device, full, real, toy, window

from kvplan.engines.base import Setup
from kvplan.engines.vllm.calibration import Interval
from kvplan.engines.vllm.deployment import VllmDeployment
from kvplan.engines.vllm.engine import Vllm
from kvplan.engines.vllm.groups import pipeline_stages
from kvplan.engines.vllm.memory import RankMemory, non_torch_constant, requested_bytes
from kvplan.engines.vllm.weight_lines import identifier
from kvplan.ledger import Draft
from kvplan.models.caches import LatentCache
from kvplan.models.formats import PLAIN, NumberFormat
from kvplan.models.spec import Checkpoint, ModelSpec
from kvplan.models.weights import RankLayout, Weight, rank_bytes
from kvplan.plan import Parallelism

FOUR = toy(*[full()] * 4)


@pytest.fixture(autouse=True)
def _fixed_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    fix_calibration(monkeypatch)


def prepared(model: ModelSpec = FOUR, **changes: Any) -> VllmDeployment:
    setup: dict[str, Any] = {"model": model, "gpu": device(80), "version": "0.33.0"}
    parallel = {key: changes.pop(key) for key in ("tp", "pp", "dp") if key in changes}
    return Vllm().prepare(Setup(**(setup | {"parallelism": Parallelism(**parallel)} | changes)))


def stages(model: ModelSpec = FOUR, **changes: Any) -> tuple[RankMemory, ...]:
    found = prepared(model, **changes).stages
    assert found is not None
    return found


def lines(rank: RankMemory) -> dict[str, Draft]:
    return {draft.name: draft for draft in (*rank.budget, *rank.outside)}


def test_the_budget_is_rounded_up() -> None:
    assert requested_bytes(1000, 0.9) == 900
    assert requested_bytes(1001, 0.9) == 901
    assert requested_bytes(85_017_493_504, 0.92) == 78_216_094_024
    assert math.ceil(85_017_493_504 * 0.92) == 78_216_094_024
    assert requested_bytes(2**40, 1) == 2**40


# 1,024 requests × 32,000 × 14 bytes and 8,192 tokens × 1,024 × 4, 469.5 MiB. A layer's step, 8,192
# tokens × (2 × 1,024 + 3 × 4,096) × 2 bytes, is less: 224 MiB.
SAMPLING = 1024 * 32_000 * 14 + 8192 * 1024 * 4
LAYER_STEP = 8192 * (2 * 1024 + 3 * 4096) * 2


def test_a_small_model_on_one_gpu() -> None:
    """Each line from the figures of the model and of the newest band."""
    (rank,) = stages()
    assert {name: draft.value() for name, draft in lines(rank).items()} == {
        "weights.mlp": 4 * 2 * MIB,
        "activation_peak": SAMPLING,
        "compilation": 512 * MIB,
        "non_torch": 384 * MIB,
        "cuda_graphs": 102 * 4 * MIB,
        "cuda_context": math.ceil(0.45 * GIB),
    }
    assert rank.requested == math.ceil(80 * GIB * 0.92)
    assert rank.spent == sum(draft.value() for draft in rank.budget)
    assert rank.beside == math.ceil(0.45 * GIB)
    assert rank.available == rank.requested - rank.spent
    assert [draft.name for draft in rank.outside] == ["cuda_context"]


def test_two_ranks_have_more_beside_the_budget() -> None:
    (rank,) = stages(tp=2)
    assert rank.beside == math.ceil(0.45 * GIB) + math.ceil(0.40 * GIB)


def test_each_stage_runs_its_own_profile() -> None:
    """Only the last one samples; two ranks share the feed-forward, 3 × 2,048."""

    def peaks(**parallel: Any) -> list[int]:
        ranks = stages(toy(*[full()] * 3), options={"max_num_seqs": 1024}, **parallel)
        return [lines(rank)["activation_peak"].value() for rank in ranks]

    assert peaks(pp=3) == [LAYER_STEP, LAYER_STEP, SAMPLING]
    assert peaks(pp=2, tp=2) == [8192 * (2 * 1024 + 3 * 2048) * 2, SAMPLING]


@pytest.mark.parametrize(("version", "room"), [("0.33.0", True), ("0.7.3", False)])
def test_the_profile_run_knows_the_context_and_the_engine(version: str, *, room: bool) -> None:
    """MLA's: eight contexts, before V1 none; 4 × 1 × 64 tokens of its one request are fewer."""
    latent = LatentCache(latent_dim=512, rope_dim=64)
    up = weight("kv_b", shape=(4096, 512), sharding="column")
    (rank,) = stages(
        toy(latent, weights=(up,)), context=1000, version=version, options={"max_num_seqs": 1}
    )
    inputs = lines(rank)["activation_peak"].inputs
    assert inputs.get("context_rows") == (8000 if room else None)


@pytest.mark.parametrize(
    ("version", "tp", "sm", "gib"),
    [
        ("0.9.0", 1, (9, 0), 0.125),
        ("0.9.0", 2, (9, 0), 1),
        ("0.9.0", 2, (8, 9), 0.5),
        ("0.19.0", 1, (9, 0), 0.25),
        ("0.19.0", 2, (9, 0), 2),
        ("0.33.0", 1, (8, 9), 0.375),
        ("0.33.0", 2, (8, 0), 0.75),
        ("0.33.0", 2, (8, 9), 0.75),
        ("0.33.0", 2, (9, 0), 2),
        ("0.33.0", 2, (10, 0), 2),
        ("0.33.0", 2, (10, 3), 2),
        ("0.33.0", 2, (12, 0), 0.75),
    ],
)
def test_memory_outside_torch(version: str, tp: int, sm: tuple[int, int], gib: float) -> None:
    (rank,) = stages(version=version, tp=tp, gpu=device(80, sm=sm))
    assert lines(rank)["non_torch"].value() == gib * GIB


@pytest.mark.parametrize("tp", [1, 2])
def test_intels_devices_have_a_figure_of_their_own(tp: int) -> None:
    assert non_torch_constant("intel", tp, (9, 0)) == "non_torch_intel_gib"


def test_stages_without_tensor_parallelism_are_single_ranks() -> None:
    assert {lines(rank)["non_torch"].value() for rank in stages(pp=2)} == {384 * MIB}


@pytest.mark.parametrize(
    ("version", "inside", "outside"),
    [
        ("0.10.2", {"nccl"}, {"cuda_graphs", "cuda_context"}),
        ("0.11.0", set(), {"nccl", "cuda_graphs", "cuda_context"}),
        ("0.19.1", set(), {"nccl", "cuda_graphs", "cuda_context"}),
        ("0.20.0", {"cuda_graphs", "compilation"}, {"nccl", "cuda_context"}),
        ("0.33.0", {"cuda_graphs", "compilation"}, {"nccl", "cuda_context"}),
    ],
)
def test_graphs_and_communication_are_counted_by_release(
    version: str, inside: set[str], outside: set[str]
) -> None:
    (rank,) = stages(version=version, tp=2)
    always = {"weights.mlp", "activation_peak", "non_torch"}
    assert {draft.name for draft in rank.budget} == always | inside
    assert {draft.name for draft in rank.outside} == outside
    assert {draft.section for draft in rank.budget} == {"budget"}
    assert {draft.section for draft in rank.outside} == {"outside"}


@pytest.mark.parametrize(
    ("version", "gib", "tp", "expected"),
    [
        # 102 × 8 MiB are likely; a tenth of the card less 0.45 GiB of context (and 0.40 to talk).
        ("0.19.1", 80, 1, 816 / 1024),
        ("0.19.1", 8, 1, 0.80 - 0.45),
        ("0.19.1", 10, 2, 1.00 - 0.45 - 0.40),
        ("0.19.1", 4, 1, 0),
        ("0.10.2", 10, 2, 1.00 - 0.45),  # buffers to talk are in the budget
    ],
)
def test_graphs_outside_the_budget_take_what_room_there_is(
    version: str, gib: float, tp: int, expected: float
) -> None:
    (rank,) = stages(version=version, tp=tp, gpu=device(gib))
    line = lines(rank)["cuda_graphs"]
    assert line.value() == (pytest.approx(expected * GIB, abs=4) if expected else 0)
    assert line.value(line.low) <= line.value() <= line.value(line.high)
    assert rank.requested + rank.beside <= rank.device.total or expected == 0


@pytest.mark.parametrize("version", ["0.10.2", "0.33.0"])
def test_eager_execution_has_no_graphs(version: str) -> None:
    (rank,) = stages(version=version, options={"enforce_eager": True})
    assert "cuda_graphs" not in lines(rank)


@pytest.mark.parametrize(
    ("parallel", "talks"),
    [({}, False), ({"tp": 2}, True), ({"pp": 2}, True), ({"dp": 2}, False)],
)
def test_ranks_of_one_replica_take_buffers_to_talk(
    parallel: dict[str, Any],
    talks: bool,  # noqa: FBT001
) -> None:
    for rank in stages(**parallel):
        assert ("nccl" in lines(rank)) is talks
        if talks:
            assert lines(rank)["nccl"].value() == math.ceil(0.40 * GIB)


@pytest.mark.parametrize("version", ["0.9.2", "0.12.0", "0.19.1", "0.33.0"])
@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite"])
def test_weights_are_those_of_the_rank_and_low_and_high_enclose_the_rest(
    name: str, version: str
) -> None:
    model = real(name)
    parts = pipeline_stages(len(model.layers), 2)
    ranks = stages(model, version=version, tp=2, pp=2)
    for index, (rank, part) in enumerate(zip(ranks, parts, strict=True)):
        layout = RankLayout(tp=2, layers=part, first=index == 0, last=index == 1)
        tied = model.tied_embeddings
        expected = rank_bytes(model.weights, PLAIN["bfloat16"], layout, tied=tied)
        held = {n[8:]: d.value() for n, d in lines(rank).items() if n.startswith("weights.")}
        assert held == expected
        assert rank.low < rank.available < rank.high
        for draft in (*rank.budget, *rank.outside):
            assert draft.value(draft.low) <= draft.value() <= draft.value(draft.high)
            assert draft.source
            assert draft.confidence == ("derived" if "weights" in draft.name else "calibrated")


def test_the_range_takes_in_what_the_device_may_have() -> None:
    card = device(80)
    assert card.torch_total_gib is not None
    wider = card.torch_total_gib.model_copy(update={"low": 79.0, "high": 81.0})
    (sure,) = stages(options={"gpu_memory_utilization": 0.5})
    (unsure,) = stages(
        gpu=card.model_copy(update={"torch_total_gib": wider}),
        options={"gpu_memory_utilization": 0.5},
    )
    assert unsure.available == sure.available
    assert sure.low - unsure.low == unsure.high - sure.high == GIB // 2


# What two ranks have fitted: 3,437.5 MiB of sampling, compiling, past torch and graphs.
FITTED = SAMPLING + (512 + 2048 + 408) * MIB


@pytest.mark.parametrize(
    ("version", "share"),
    # 0.33 is beyond the newest measured start: half as wide again.
    [("0.21.0", 0.5), ("0.33.0", 0.75)],
)
def test_the_range_is_a_share_of_fitted_memory_and_half_a_gib(version: str, share: float) -> None:
    (rank,) = stages(tp=2, version=version)
    assert lines(rank)["weights.mlp"].value() == 4 * MIB
    assert rank.fitted == FITTED
    assert rank.available == rank.requested - 4 * MIB - FITTED
    assert rank.available - rank.low == share * (FITTED + 512 * MIB)
    assert rank.high - rank.available == share * (FITTED + 512 * MIB)


def test_no_range_ends_above_what_no_fitted_memory_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    fix_calibration(monkeypatch, replace(NEWEST, interval=Interval(low=0.5, high=2, n=1)))
    (rank,) = stages(tp=2, version="0.21.0")
    assert rank.high == rank.requested - 4 * MIB
    assert rank.low < rank.available


def test_weights_and_what_lies_outside_are_no_fitted_memory() -> None:
    (rank,) = stages(version="0.21.0")
    guessed = replace(lines(rank)["weights.mlp"], confidence="calibrated")
    assert replace(rank, budget=(guessed,)).fitted == 0
    assert rank.fitted == SAMPLING + (512 + 384 + 408) * MIB


def test_where_another_sampler_may_run_the_range_reaches_to_what_it_leaves() -> None:
    """0.10: 14 bytes instead of 32 a request and entry, and half of what is then fitted."""
    (rank,) = stages(version="0.10.2")
    assert rank.other == 1024 * 32_000 * (32 - 14)
    assert rank.high - rank.available == rank.other + (rank.fitted - rank.other + 512 * MIB) // 2
    assert rank.available - rank.low == (rank.fitted + 512 * MIB) // 2
    (told,) = stages(version="0.19.0")
    assert told.other == 0


@pytest.mark.parametrize(
    ("version", "section"), [("0.21.0", "budget"), ("0.28.0", "outside"), ("0.29.0", "budget")]
)
def test_the_newer_runner_subtracts_no_graphs_before_029(version: str, section: str) -> None:
    (rank,) = stages(version=version)
    assert lines(rank)["cuda_graphs"].section == section


AWQ = NumberFormat(
    name="AWQ 4-bit", bits=4, block_columns=128, scale_bytes=2, zero_bits=4, source="x"
)


def weight(name: str, **changes: Any) -> Weight:
    facts: dict[str, Any] = {
        "name": name, "component": "attention", "shape": (256, 512), "layers": (0,)
    }  # fmt: skip
    return Weight(**(facts | changes))


def test_a_line_of_weights_names_its_formats() -> None:
    """Plain formats as elements × bytes; packed ones as bytes: 4 bits and 3 bytes of scales."""
    packed = AWQ.tensor_size(256, 512)
    model = toy(
        full(),
        weights=(weight("q"), weight("k"), weight("v", format=AWQ), weight("n", component="norms")),
    )
    (rank,) = stages(model)
    attention = lines(rank)["weights.attention"]
    assert attention.formula == "elements_bf16 * bytes_bf16 + packed_awq_4_bit_bytes"
    assert attention.inputs == {
        "elements_bf16": 2 * 256 * 512,
        "bytes_bf16": 2,
        "packed_awq_4_bit_bytes": packed,
    }
    assert attention.value() == 4 * 256 * 512 + packed
    assert lines(rank)["weights.norms"].value() == 2 * 256 * 512


def test_weights_are_as_sure_as_their_source() -> None:
    counted = Checkpoint(bytes_by_dtype={"BF16": 1}, source="the headers")
    unknown = Checkpoint(total_bytes=5, source="the index")
    for checkpoint, source, confidence in (
        (counted, "the headers", "exact"),
        (unknown, "made for a test", "derived"),
        (None, "made for a test", "derived"),
    ):
        (rank,) = stages(toy(full(), checkpoint=checkpoint))
        line = lines(rank)["weights.mlp"]
        assert (line.source, line.confidence) == (source, confidence)


def test_formats_of_one_name_are_told_apart() -> None:
    """GPTQ with eight bits for some modules: each counts with its own bytes."""

    def packed(bits: int) -> Weight:
        stored = NumberFormat(
            name="gptq", bits=bits, block_rows=1, block_columns=128, scale_bytes=2, source=""
        )
        return Weight(
            name=f"{bits}.weight", component="mlp", shape=(64, 128), layers=(0,), format=stored
        )

    (rank,) = stages(toy(full(), weights=(packed(4), packed(8))))
    line = lines(rank)["weights.mlp"]
    assert line.formula == "packed_gptq_bytes + packed_gptq_2_bytes"
    assert line.value() == 64 * (64 + 2) + 64 * (128 + 2)


def test_a_float32_checkpoint_is_held_in_what_it_computes_in() -> None:
    assert lines(stages(toy(full(), dtype="float32"))[0])["weights.mlp"].value() == 2 * MIB
    (rank,) = stages(toy(full(), dtype="float32"), dtype="float32")
    assert lines(rank)["weights.mlp"].value() == 4 * MIB


def test_windows_make_no_difference_to_memory_beside_the_cache() -> None:
    whole, windowed = stages(toy(full(), full())), stages(toy(full(), window(100)))
    assert whole[0].available == windowed[0].available


@pytest.mark.parametrize(
    ("name", "written"),
    [("bf16", "bf16"), ("AWQ 4-bit", "awq_4_bit"), ("fp8 (e4m3)", "fp8__e4m3_"), ("é", "_")],
)
def test_a_name_becomes_one_that_a_formula_can_hold(name: str, written: str) -> None:
    assert identifier(name) == written
