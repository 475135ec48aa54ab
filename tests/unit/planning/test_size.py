"""One configuration → a plan: verdicts, lengths, budgets, refusals."""

from __future__ import annotations

from typing import Any

import pytest
from real_models import GIB, device, full, real, toy

from kvplan.engines.base import Setup
from kvplan.engines.vllm.engine import Vllm
from kvplan.errors import EngineRefusesError, NotModelledError, UsageError
from kvplan.models.caches import RecurrentCache, StateTensor
from kvplan.models.spec import FilledDefault, ModelSpec
from kvplan.plan import EnginePart, GpuPart, ModelPart, Parallelism, Plan, Workload
from kvplan.planning.size import (
    Load,
    model_part,
    refused_plan,
    resolve_context,
    size,
    with_node_note,
)

# Two layers of 64 KiB a block of 16 tokens: 100 MiB are 800 blocks.
TWO = toy(full(), full())
HUNDRED_MIB = (100 * 2**20,)


def planned(
    model: ModelSpec = TWO,
    *,
    context: int | str | None = 1000,
    concurrency: int | None = None,
    **changes: Any,
) -> Plan:
    parallel = {key: changes.pop(key) for key in ("tp", "pp", "dp") if key in changes}
    setup = Setup(
        model=model,
        gpu=device(80),
        version="0.33.0",
        parallelism=Parallelism(**parallel),
        context=context if isinstance(context, int) else None,
        **changes,
    )
    return size(Vllm(), setup, Load(context=context, concurrency=concurrency))


def codes(plan: Plan) -> list[str]:
    return [reason.code for reason in plan.reasons]


def requests(plan: Plan) -> int:
    assert plan.capacity is not None
    return plan.capacity.requests


def test_what_fits() -> None:
    plan = planned(kv_budget=HUNDRED_MIB, concurrency=12)
    assert (plan.verdict, codes(plan), requests(plan)) == ("fits", [], 12)
    assert plan.workload == Workload(context=1000, concurrency=12)


def test_what_does_not() -> None:
    plan = planned(kv_budget=HUNDRED_MIB, concurrency=13)
    assert (plan.verdict, codes(plan)) == ("does_not_fit", ["kv_cache_full"])
    assert plan.kv is not None
    assert requests(plan) == 12


def test_without_a_number_of_requests_one_has_to_fit() -> None:
    assert planned(kv_budget=HUNDRED_MIB, context=12_784).verdict == "fits"
    plan = planned(kv_budget=HUNDRED_MIB, context=12_785)
    assert (plan.verdict, codes(plan)[0]) == ("does_not_fit", "context_too_long")
    assert plan.capacity is not None
    assert plan.capacity.max_context == 12_784
    assert plan.workload.concurrency is None


def test_no_length_is_the_models_own() -> None:
    plan = planned(kv_budget=HUNDRED_MIB, context=None)
    assert plan.workload.context == 8192
    assert plan == planned(kv_budget=HUNDRED_MIB, context=8192)


def test_the_longest_that_fits() -> None:
    """799 blocks of 16 tokens, more than the model's own 8,192; and 99 blocks, fewer."""
    assert planned(kv_budget=HUNDRED_MIB, context="auto").workload.context == 8192
    plan = planned(kv_budget=(100 * 2**17,), context="auto")
    assert plan.workload.context == 99 * 16
    assert plan.capacity is not None
    assert plan.capacity.max_context == 99 * 16
    assert (plan.verdict, requests(plan)) == ("fits", 1)
    assert plan.capacity.groups[0].blocks_per_request == 99


def test_the_longest_of_nothing_is_one_token_that_does_not_fit() -> None:
    plan = planned(real("llama-3.1-70b"), context="auto")
    assert (plan.verdict, plan.workload.context) == ("does_not_fit", 1)
    assert codes(plan)[0] == "no_room_for_cache"


def test_a_length_above_the_models_own_is_computed_and_pointed_out() -> None:
    plan = planned(kv_budget=HUNDRED_MIB, context=8193)
    assert (plan.verdict, codes(plan)) == ("fits", ["context_above_model_maximum"])
    assert plan.capacity is not None
    assert plan.capacity.groups[0].blocks_per_request == 513


@pytest.mark.parametrize("context", [None, "auto"])
def test_a_model_that_states_no_length_takes_the_engines(context: str | None) -> None:
    """VLLM plans 2,048 tokens where a configuration states none: 128 blocks of 16."""
    silent = toy(full(), max_context=None)
    assert planned(silent, context=1000).workload.context == 1000
    plan = planned(silent, context=context, kv_budget=HUNDRED_MIB)
    assert (plan.verdict, plan.workload.context) == ("fits", 2048)
    assert plan.capacity is not None
    assert plan.capacity.groups[0].blocks_per_request == 128
    short = planned(silent, context="auto", kv_budget=(100 * 65_536,))
    assert short.workload.context == 99 * 16


def test_without_the_engines_length_a_model_has_to_be_given_one() -> None:
    silent = toy(full(), max_context=None)
    assert resolve_context(silent, None, unstated=2048) == 2048
    assert resolve_context(silent, "auto", unstated=2048) == 2048
    assert resolve_context(silent, 5, unstated=2048) == 5
    assert resolve_context(TWO, None, unstated=2048) == 8192
    for context in (None, "auto"):
        with pytest.raises(UsageError, match="test/toy does not state its longest") as raised:
            resolve_context(silent, context)
        assert raised.value.hint == "Give one: --context 32k."


def test_lengths_are_resolved() -> None:
    assert resolve_context(TWO, 5) == 5
    assert resolve_context(TWO, None) == resolve_context(TWO, "auto") == 8192


def test_requests_count_over_the_deployment() -> None:
    plan = planned(kv_budget=HUNDRED_MIB, concurrency=36, dp=3)
    assert (plan.verdict, requests(plan), plan.gpu.count) == ("fits", 36, 3)
    assert planned(kv_budget=HUNDRED_MIB, concurrency=37, dp=3).verdict == "does_not_fit"
    one = planned(kv_budget=HUNDRED_MIB)
    assert plan.capacity is not None
    assert one.capacity is not None
    assert plan.capacity.max_concurrency == one.capacity.max_concurrency


def test_max_num_seqs_may_be_what_binds() -> None:
    options = {"max_num_seqs": 5}
    plan = planned(kv_budget=HUNDRED_MIB, concurrency=6, options=options)
    assert (plan.verdict, codes(plan), requests(plan)) == ("does_not_fit", ["max_num_seqs"], 5)
    assert planned(kv_budget=HUNDRED_MIB, concurrency=5, options=options).verdict == "fits"
    assert requests(planned(kv_budget=HUNDRED_MIB, options=options, dp=2)) == 10


def test_a_budget_is_planned_exactly() -> None:
    plan = planned(kv_budget=HUNDRED_MIB)
    assert plan.kv is not None
    assert plan.kv.budget_bytes == plan.kv.allocated_bytes == HUNDRED_MIB[0]
    assert (plan.kv.budget_low, plan.kv.budget_high) == (None, None)
    assert sum(line.bytes for line in plan.ledger) == HUNDRED_MIB[0]


def test_the_poorest_rank_decides_where_each_has_its_own_budget() -> None:
    budgets = (GIB, HUNDRED_MIB[0] // 2, GIB, GIB)
    plan = planned(kv_budget=budgets, tp=2, pp=2)
    assert plan.kv is not None
    assert plan.kv.budget_bytes == HUNDRED_MIB[0] // 2
    # Half the heads of one layer: 32 KiB a block.
    assert plan.capacity is not None
    assert plan.capacity.blocks == 50 * 2**20 // 2**15


def test_another_number_of_budgets_than_ranks_is_an_error() -> None:
    with pytest.raises(UsageError, match="3 KV budgets were given for 4 ranks"):
        planned(kv_budget=(1, 2, 3), tp=4)


def test_a_refusal_of_the_engine_is_a_plan() -> None:
    plan = planned(real("phi-4"), tp=4, concurrency=7, options={"max_num_seqs": 5})
    assert plan.verdict == "refused"
    assert codes(plan) == ["engine_refuses"]
    assert plan.reasons[0].message.startswith("vLLM refuses --tp 4")
    assert plan.reasons[0].hint == "Use --tp 1 or 2."
    assert plan.model.id == "phi-4"
    assert plan.gpu == GpuPart(id="H100", count=4, total_bytes=80 * GIB, source="a reference case")
    assert plan.engine == EnginePart(
        name="vllm", version="0.33.0", options={"max_num_seqs": 5}, assumed=()
    )
    assert plan.workload == Workload(context=1000, concurrency=7)
    assert (plan.ledger, plan.kv, plan.capacity, plan.advice) == ((), None, None, ())


@pytest.mark.parametrize(("context", "stated"), [(None, 8192), ("auto", 8192), (500, 500)])
def test_a_refusal_says_what_length_was_meant(context: int | str | None, stated: int) -> None:
    rwkv = RecurrentCache(states=(StateTensor(name="shift", shape=(1, 64)),))
    plan = planned(toy(rwkv), context=context)
    assert (plan.verdict, codes(plan)) == ("refused", ["not_modelled"])
    assert plan.workload.context == stated


def test_a_refusal_without_a_version_names_the_newest() -> None:
    setup = Setup(model=TWO, gpu=device(80), parallelism=Parallelism(tp=3))
    assert size(Vllm(), setup, Load(context=5)).engine.version == "0.33.0"
    old = Setup(model=TWO, gpu=device(80), version="0.5.5")
    plan = size(Vllm(), old, Load(context=5))
    assert (plan.verdict, plan.engine.version) == ("refused", "0.5.5")


@pytest.mark.parametrize("refusal", [NotModelledError, EngineRefusesError])
def test_a_refusal_carries_its_code(refusal: type[NotModelledError]) -> None:
    plan = refused_plan(
        refusal("It is not.", hint="Try another."),
        model=model_part(TWO),
        gpu=device(80),
        engine=EnginePart(name="vllm", version="0.33.0", options={}, assumed=()),
        parallelism=Parallelism(tp=2, pp=2, dp=2),
        workload=Workload(context=None, concurrency=None),
    )
    assert plan.reasons[0].model_dump() == {
        "code": refusal.slug, "message": "It is not.", "hint": "Try another."
    }  # fmt: skip
    assert plan.gpu.count == 8


def test_a_model_is_told_of() -> None:
    assert model_part(TWO) == ModelPart(
        id="test/toy",
        revision=None,
        architecture="LlamaForCausalLM",
        source="made for a test",
        parameters_total=2 * 2**20,
        parameters_active=2 * 2**20,
    )


def test_class_defaults_are_told_of() -> None:
    filled = (
        FilledDefault(field="head_dim", value="128", source="x"),
        FilledDefault(field="rope", value="none", source="x"),
    )
    plan = planned(toy(full(), defaults=filled))
    assert codes(plan) == ["runtime_not_calibrated", "class_defaults"]
    assert plan.reasons[-1].message.endswith("class: head_dim = 128; rope = none.")
    assert plan.reasons[-1].hint == "kvplan models explain shows where each default is stated."


@pytest.mark.parametrize(
    ("tp", "node", "noted"), [(8, 4, True), (8, 8, False), (8, 16, False), (8, None, False)]
)
def test_ranks_beyond_a_node_are_pointed_out(tp: int, node: int | None, *, noted: bool) -> None:
    plan = planned(tp=tp)
    with_note = with_node_note(plan, node)
    if not noted:
        assert with_note is plan
        return
    assert codes(with_note) == [*codes(plan), "tp_across_nodes"]
    reason = with_note.reasons[-1]
    assert f"parallel group of {tp} spans nodes of {node} GPUs" in reason.message
    assert reason.hint == f"Use --tp {node} with --pp, or more replicas with --dp."
    assert with_note.verdict == plan.verdict
