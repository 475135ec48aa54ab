"""One rank's memory line by line: computed by hand, inside or outside the budget, in its range."""

from __future__ import annotations

import math
from typing import Any

import pytest
from real_models import GIB, device, full, real, toy, window

from kvplan.engines.base import Setup
from kvplan.engines.vllm.engine import Vllm, VllmDeployment
from kvplan.engines.vllm.groups import pipeline_stages
from kvplan.engines.vllm.memory import RankMemory, requested_bytes
from kvplan.engines.vllm.weight_lines import identifier
from kvplan.ledger import Draft
from kvplan.models.caches import LatentCache
from kvplan.models.formats import PLAIN, NumberFormat
from kvplan.models.spec import Checkpoint, ModelSpec
from kvplan.models.weights import RankLayout, Weight, rank_bytes
from kvplan.plan import Parallelism

MIB = 2**20
FOUR = toy(*[full()] * 4)


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


def test_a_small_model_on_one_gpu() -> None:
    """Each line from the figures of the model and of the newest band."""
    (rank,) = stages()
    assert {name: draft.value() for name, draft in lines(rank).items()} == {
        "weights.mlp": 4 * 2 * MIB,
        # 8,192 tokens × 6 × (1,024 + 4,096) is less than 1,024 requests × 32,000 × 14
        "activation_peak": 1024 * 32_000 * 14,
        "non_torch": math.ceil(0.34 * GIB),
        "cuda_graphs": math.ceil(0.40 * GIB),
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


def activation(rank: RankMemory) -> int:
    return lines(rank)["activation_peak"].value()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_num_seqs": 1}, 8192 * 6 * 5120),
        ({"max_num_seqs": 100, "max_num_batched_tokens": 100}, 100 * 32_000 * 14),
        ({"max_num_seqs": 1, "max_num_batched_tokens": 50}, 50 * 6 * 5120),
    ],
)
def test_the_peak_is_the_larger_of_its_two_phases(options: dict[str, int], expected: int) -> None:
    (rank,) = stages(options=options)
    assert activation(rank) == expected


def test_feed_forward_splits_over_ranks_and_repeats_for_each_expert_of_a_token() -> None:
    options = {"max_num_seqs": 1}
    assert activation(stages(options=options, tp=2)[0]) == 8192 * 6 * (1024 + 2048)
    odd = toy(full(), intermediate_size=4097)
    assert activation(stages(odd, options=options, tp=2)[0]) == 8192 * 6 * (1024 + 2049)
    mixture = toy(full(), experts=8, experts_per_token=3)
    assert activation(stages(mixture, options=options)[0]) == 8192 * 6 * (1024 + 12_288) + GIB // 2


@pytest.mark.parametrize(
    ("model", "extra"),
    [
        (toy(full()), 0),
        (toy(full(), experts=1), GIB // 2),
        (toy(LatentCache(latent_dim=512, rope_dim=64)), GIB // 2),
        (toy(LatentCache(latent_dim=512, rope_dim=64), experts=8), GIB // 2),
        (toy(full(), LatentCache(latent_dim=512, rope_dim=64)), GIB // 2),
    ],
)
def test_experts_and_latent_attention_take_a_workspace(model: ModelSpec, extra: int) -> None:
    (rank,) = stages(model, options={"max_num_seqs": 1})
    assert activation(rank) == 8192 * 6 * 5120 + extra


def test_only_the_last_stage_samples() -> None:
    first, second, last = stages(toy(*[full()] * 3), pp=3)
    assert activation(first) == activation(second) == 8192 * 6 * 5120
    assert activation(last) == 1024 * 32_000 * 14
    assert "logits_bytes" not in lines(first)["activation_peak"].inputs


@pytest.mark.parametrize(
    ("version", "tp", "sm", "gib"),
    [
        ("0.9.0", 1, (9, 0), 0.10),
        ("0.9.0", 2, (9, 0), 0.80),
        ("0.9.0", 2, (8, 9), 0.50),
        ("0.19.0", 1, (9, 0), 0.25),
        ("0.19.0", 2, (9, 0), 2.10),
        ("0.33.0", 1, (8, 9), 0.34),
        ("0.33.0", 2, (8, 0), 0.25),
        ("0.33.0", 2, (8, 9), 0.25),
        ("0.33.0", 2, (9, 0), 2.10),
        ("0.33.0", 2, (10, 0), 2.10),
        ("0.33.0", 2, (10, 3), 2.10),
        ("0.33.0", 2, (12, 0), 0.25),
    ],
)
def test_memory_outside_torch(version: str, tp: int, sm: tuple[int, int], gib: float) -> None:
    (rank,) = stages(version=version, tp=tp, gpu=device(80, sm=sm))
    assert lines(rank)["non_torch"].value() == math.ceil(gib * GIB)


def test_stages_without_tensor_parallelism_are_single_ranks() -> None:
    assert {lines(rank)["non_torch"].value() for rank in stages(pp=2)} == {math.ceil(0.34 * GIB)}


@pytest.mark.parametrize(
    ("version", "inside", "outside"),
    [
        ("0.10.2", {"nccl"}, {"cuda_graphs", "cuda_context"}),
        ("0.11.0", set(), {"nccl", "cuda_graphs", "cuda_context"}),
        ("0.19.1", set(), {"nccl", "cuda_graphs", "cuda_context"}),
        ("0.20.0", {"cuda_graphs"}, {"nccl", "cuda_context"}),
        ("0.33.0", {"cuda_graphs"}, {"nccl", "cuda_context"}),
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
        # 0.95 GiB are likely; a tenth of the card less 0.45 GiB of context (and 0.40 to talk).
        ("0.19.1", 80, 1, 0.95),
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
    parallel: dict[str, int],
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


def test_the_ends_of_the_range_are_the_ends_of_every_line() -> None:
    (rank,) = stages(tp=2, version="0.30.0")
    high = {
        "activation_peak": 20 * 1024 * 32_000,
        "non_torch": 2.5 * GIB,
        "cuda_graphs": 2.55 * GIB,
    }
    low = {"activation_peak": 12 * 1024 * 32_000, "non_torch": 0.5 * GIB, "cuda_graphs": 0}
    weights = lines(rank)["weights.mlp"].value()
    assert weights == 4 * MIB
    assert rank.requested - rank.low == weights + sum(math.ceil(part) for part in high.values())
    assert rank.requested - rank.high == weights + sum(math.ceil(part) for part in low.values())


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
