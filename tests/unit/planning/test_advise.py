"""What to change: every gain is what a new plan with the change really holds."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from fixed_calibration import fix_calibration
from hypothesis import assume, given
from hypothesis import strategies as st
from real_models import GIB, device, full, real, toy

import kvplan
from kvplan import api
from kvplan.engines.base import Setup
from kvplan.engines.vllm.engine import Vllm
from kvplan.hardware import GpuSpec
from kvplan.models.spec import ModelSpec
from kvplan.plan import Advice, Parallelism, Plan
from kvplan.planning.advise import MOST, MOST_SHORT, advise
from kvplan.planning.size import Load, size
from kvplan.planning.trials import Case, Trial, pairs_of, single_changes

# Arguments that change what was asked for, or only multiply what there is.
LAST_RESORT = {"context", "dp"}


@pytest.fixture(autouse=True)
def _fixed_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    fix_calibration(monkeypatch)


def asked(**arguments: Any) -> dict[str, Any]:
    """Arguments of `kvplan.size`, plain where they are not given."""
    return {"model": real("llama-3.1-8b"), "gpu": device(24), "context": 8192, **arguments}


def again(arguments: dict[str, Any], advice: Advice) -> Plan:
    """The plan that the advice promises."""
    options = arguments.get("engine_options", {}) | advice.change.get("engine_options", {})
    changed = {**arguments, **advice.change, "engine_options": options}
    return kvplan.size(**changed)


def check_sharing(arguments: dict[str, Any], plan: Plan, advice: Advice) -> None:
    """Counts the requests that begin alike, by what the engine says each holds."""
    assert plan.capacity is not None
    context = plan.workload.context
    assert context is not None
    match = re.search(r"same ([\d,]+) tokens", advice.action)
    assert match is not None
    shared = int(match[1].replace(",", ""))
    prepared = api.prepare(
        arguments["model"],
        arguments["gpu"],
        engine=arguments.get("engine", "vllm"),
        parallelism=Parallelism(**{k: v for k, v in arguments.items() if k in ("tp", "pp", "dp")}),
        options=arguments.get("engine_options", {}),
        kv_dtype=arguments.get("kv_dtype", "auto"),
        kv_budget=(arguments["kv_budget"],) if arguments.get("kv_budget") else None,
        context=context,
    )

    def held(prefix: int) -> int:
        pools = prepared.pools(context)
        (own,), (whole,) = prepared.own_units(context, prefix), prepared.request_units(prefix or 1)
        once = whole - prepared.own_units(prefix, prefix)[0] if prefix else 0
        count = 0
        while count < pools.sequences and once + own * (count + 1) <= pools.pools[0].count:
            count += 1
        return count * pools.replicas

    assert held(shared) == plan.capacity.requests + advice.gain.requests >= target_of(arguments)
    step = prepared.pools(context).step
    assert shared == step or held(shared - step) < target_of(arguments)
    assert advice.gain.tokens == 0


def target_of(arguments: dict[str, Any]) -> int:
    target: int | None = arguments.get("concurrency")
    return target or 1


def check(arguments: dict[str, Any]) -> Plan:
    """Tries every advice of a plan."""
    plan = kvplan.size(**arguments)
    if plan.verdict != "does_not_fit":
        assert plan.advice == ()
        return plan
    assert plan.capacity is not None
    target = target_of(arguments)
    assert len(plan.advice) <= MOST + MOST_SHORT
    for advice in plan.advice:
        if not advice.change:
            check_sharing(arguments, plan, advice)
            continue
        better = again(arguments, advice)
        assert better.capacity is not None, better.reasons
        held = plan.capacity.requests + advice.gain.requests
        assert better.capacity.requests == held > plan.capacity.requests
        tokens = plan.capacity.tokens * plan.parallelism.dp + advice.gain.tokens
        assert better.capacity.tokens * better.parallelism.dp == tokens
        assert better.verdict == ("fits" if held >= target else "does_not_fit")
        word = "enough" if held >= target else "not enough alone"
        length = better.workload.context
        nothing_fitted = arguments.get("context") == "auto" and plan.capacity.max_context < 1
        of = f" of {length:,} tokens" if nothing_fitted else ""
        assert advice.note == f"Holds {held:,} request{'s' * (held != 1)}{of}: {word}."
        assert advice.action
        assert advice.cost
    check_order(plan, target)
    return plan


def gpus_added(plan: Plan, advice: Advice) -> int:
    before = plan.parallelism
    after = before.model_copy(
        update={key: advice.change[key] for key in ("tp", "pp", "dp") if key in advice.change}
    )
    return after.gpus - before.gpus


def check_order(plan: Plan, target: int) -> None:
    """Those that are enough first, without last resorts and with few GPUs first; then by gain."""
    assert plan.capacity is not None
    held = [plan.capacity.requests + advice.gain.requests for advice in plan.advice]
    enough = [requests >= target for requests in held]
    assert enough == sorted(enough, reverse=True)
    sufficient = [
        (distance(plan, advice), gpus_added(plan, advice))
        for advice, is_enough in zip(plan.advice, enough, strict=True)
        if is_enough
    ]
    assert sufficient == sorted(sufficient)
    rest = [requests for requests, is_enough in zip(held, enough, strict=True) if not is_enough]
    assert rest == sorted(rest, reverse=True)
    added = [
        (is_pair(advice), gpus_added(plan, advice))
        for advice, is_enough in zip(plan.advice, enough, strict=True)
        if is_enough and not distance(plan, advice)
    ]
    singles = [gpus for pair, gpus in added if not pair]
    assert all(gpus < min(singles) for pair, gpus in added if pair and singles)


def distance(plan: Plan, advice: Advice) -> int:
    """0: a change of the deployment; 1: other hardware or another server; 2: a last resort."""
    # The length beside another change is what fits then, not a change of its own.
    names = changed(plan, advice) - ({"context"} if len(advice.change) > 1 else set())
    if not names or names & LAST_RESORT:
        return 2
    return int(bool(names & {"gpu", "engine"}))


def changed(plan: Plan, advice: Advice) -> set[str]:
    """What an advice changes; the planned length beside another change only states it."""
    kept = advice.change.get("context") == plan.workload.context
    return set(advice.change) - ({"context"} if kept else set())


def is_pair(advice: Advice) -> bool:
    return ", and " in advice.action


def actions(plan: Plan) -> list[dict[str, Any]]:
    return [advice.change for advice in plan.advice]


def test_no_advice_where_it_fits() -> None:
    assert check(asked()).advice == ()
    assert check(asked(concurrency=2)).advice == ()


def test_no_advice_where_the_engine_refuses() -> None:
    plan = check(asked(model=real("phi-4"), tp=4))
    assert (plan.verdict, plan.advice) == ("refused", ())


def test_no_advice_where_none_is_asked_for() -> None:
    assert kvplan.size(**asked(concurrency=500, advice=False)).advice == ()


# Llama 3.1 8B on 80 GiB: of the budget's 75,366.4 MiB weights take 15,316.5, sampling 1,881.5
# (1,024 × 128,256 × 14 and 8,192 × 4,096 × 4 bytes); compiling, past torch and graphs are 512 + 384
# + 408. The 56,864.4 left are 28,432 blocks of 2 MiB, one the null block: 473 for each of 60.
LONGEST_OF_60 = 473 * 16


def test_one_change_that_is_enough_makes_pairs_needless() -> None:
    plan = check(asked(gpu=device(80), concurrency=60))
    assert plan.verdict == "does_not_fit"
    assert actions(plan) == [
        {"kv_dtype": "fp8"},
        {"weights": "fp8"},
        {"weights": "awq"},
        {"tp": 2},
        {"pp": 2},
        {"gpu": "H200-SXM-141GB"},
        {},
        {"context": LONGEST_OF_60},
        # That is all a reader weighs of what is enough; then what is not.
        {"engine_options": {"gpu_memory_utilization": 0.95}},
        {"engine": "tensorrt-llm"},
    ]


def test_pairs_are_tried_where_no_change_is_enough() -> None:
    plan = check(asked(gpu=device(80), concurrency=200))
    pairs = [advice for advice in plan.advice if is_pair(advice)]
    assert [advice.change for advice in pairs] == [
        {"kv_dtype": "fp8", "tp": 2},
        {"weights": "awq", "tp": 2},
        {"kv_dtype": "fp8", "weights": "awq"},
        {"weights": "fp8", "tp": 2},
    ]
    # Four GPUs alone would do; two with an 8-bit cache do too, and come first.
    assert plan.advice[0] == pairs[0]
    assert {"tp": 4} in actions(plan)
    assert {"tp": 8} not in actions(plan)
    assert pairs[0].action == (
        "Store the KV cache in FP8, and split over 2 GPUs instead of 1 (tensor parallel)"
    )
    assert pairs[0].cost.startswith("Some accuracy on long contexts; check on your own prompts. 1 ")


def test_a_shorter_length_is_the_longest_that_holds_all() -> None:
    arguments = asked(gpu=device(80), concurrency=60)
    (length,) = [advice.change["context"] for advice in check(arguments).advice
                 if "context" in advice.change]  # fmt: skip
    for context, verdict in ((length, "fits"), (length + 1, "does_not_fit")):
        plan = kvplan.size(**{**arguments, "context": context, "advice": False})
        assert plan.verdict == verdict


def test_replicas_are_the_fewest_that_hold_all() -> None:
    plan = check(asked(gpu=device(80), concurrency=500))
    (advice,) = [advice for advice in plan.advice if "dp" in advice.change]
    assert plan.capacity is not None
    replicas = advice.change["dp"]
    assert replicas == -(-500 // plan.capacity.requests)
    assert advice.action == f"Run {replicas} replicas instead of 1 (data parallel)"
    assert advice.cost == f"{replicas - 1} more GPUs."


def test_so_short_a_length_that_it_shrinks_the_batch_is_counted_so() -> None:
    """At 288 tokens four requests are 1,152 batched tokens, fewer than the default of 2,048."""
    options = {"max_num_seqs": 4, "gpu_memory_utilization": 0.7}
    plan = check(
        asked(model=toy(*[full(32)] * 64), gpu=device(3), concurrency=4, engine_options=options)
    )
    (shorter,) = [advice for advice in plan.advice if set(advice.change) == {"context"}]
    assert 4 * shorter.change["context"] < 2048


@pytest.mark.parametrize("parallel", [{"dp": 2}, {"dp": 3, "pp": 2}, {"tp": 2, "pp": 2}])
def test_replicas_of_several_gpus_are_the_fewest_too(parallel: dict[str, int]) -> None:
    plan = check(asked(gpu=device(80), concurrency=2000, **parallel))
    (advice,) = [advice for advice in plan.advice if "dp" in advice.change]
    assert plan.capacity is not None
    dp = parallel.get("dp", 1)
    replicas = -(-2000 // (plan.capacity.requests // dp))
    assert advice.change == {"dp": replicas}
    each = parallel.get("tp", 1) * parallel.get("pp", 1)
    assert advice.cost == f"{(replicas - dp) * each:,} more GPUs."


@pytest.mark.parametrize(("requests", "offered"), [(4096, True), (4097, False)])
def test_replicas_end_where_plans_end(requests: int, *, offered: bool) -> None:
    """One request each, of which 4,096 GPUs hold as many."""
    plan = check(asked(model=toy(full()), kv_budget=600 * 2**16, concurrency=requests))
    assert plan.capacity is not None
    assert plan.capacity.requests == 1
    assert any("dp" in change for change in actions(plan)) is offered


def test_replicas_count_their_own_gpus() -> None:
    plan = check(asked(gpu=device(80), tp=2, dp=2, concurrency=1000))
    (advice,) = [advice for advice in plan.advice if "dp" in advice.change]
    assert advice.cost == f"{(advice.change['dp'] - 2) * 2} more GPUs."
    (split,) = [advice for advice in plan.advice if advice.change == {"tp": 8}]
    assert split.action == "Split over 8 GPUs instead of 2 (tensor parallel)"
    assert split.cost == "12 more GPUs, and more traffic between them."


def test_more_requests_at_once_is_the_first_advice_where_that_binds() -> None:
    arguments = asked(gpu=device(80), engine_options={"max_num_seqs": 5}, concurrency=8, dp=1)
    plan = check(arguments)
    assert plan.reasons[0].code == "max_num_seqs"
    first = plan.advice[0]
    assert first.change == {"engine_options": {"max_num_seqs": 8}}
    assert first.action == "Admit more requests at once: max_num_seqs=8"
    many = check(asked(gpu=device(80), engine_options={"max_num_seqs": 5}, concurrency=15, dp=2))
    assert many.advice[0].change == {"engine_options": {"max_num_seqs": 8}}


@pytest.mark.parametrize(
    ("concurrency", "expected"),
    [
        (8, {"max_num_seqs": 8}),
        (9, {"max_num_seqs": 9, "max_num_batched_tokens": 9}),
    ],
)
def test_more_requests_than_batched_tokens_raise_both(
    concurrency: int, expected: dict[str, int]
) -> None:
    options = {"max_num_seqs": 5, "max_num_batched_tokens": 8}
    plan = check(asked(gpu=device(80), engine_options=options, concurrency=concurrency))
    assert plan.advice[0].change == {"engine_options": expected}
    named = ", ".join(f"{name}={value}" for name, value in expected.items())
    assert plan.advice[0].action == f"Admit more requests at once: {named}"


def test_admitting_more_may_take_a_smaller_cache_beside_it() -> None:
    """910 would fit but for what it takes to admit them.

    A batch of five, 2,560 tokens, needs 270 MiB (2,560 × 55,296 × 2 bytes) and 8 graphs of 4 MiB:
    58,851.9 MiB are left for 919 requests of 32 blocks. To sample 910 takes 1,686.3 MiB (910 ×
    128,256 × 14 + 8,192 × 4,096 × 4 bytes), and there are 102 graphs: 57,059.6 MiB hold 891.
    """
    limit = {"max_num_seqs": 5}
    plan = check(asked(gpu=device(80), context=512, engine_options=limit, concurrency=910))
    assert plan.reasons[0].code == "max_num_seqs"
    assert plan.advice[0].change == {
        "engine_options": {"max_num_seqs": 910}, "kv_dtype": "fp8"
    }  # fmt: skip
    alone = next(
        advice
        for advice in plan.advice
        if advice.change == {"engine_options": {"max_num_seqs": 910}}
    )
    assert alone.note == "Holds 891 requests: not enough alone."


def test_splits_go_on_until_they_are_enough() -> None:
    """Two ranks hold 122: 62,858 blocks of 1 MiB, one of them the null block, and 512 a request.

    Half of 15,316 MiB of weights, all of the norms' 0.5 and of the 1,881.5 to sample, and then
    512 + 2,048 + 408 MiB leave 62,858.4 of the budget.
    """
    plan = check(asked(gpu=device(80), concurrency=122))
    assert [change["tp"] for change in actions(plan) if "tp" in change] == [2]
    plan = check(asked(gpu=device(80), concurrency=123))
    # Of the sizes that are tried the one that is enough is said, and no other.
    assert [change["tp"] for change in actions(plan) if set(change) == {"tp"}] == [4]


def test_every_single_change_says_what_it_costs() -> None:
    plan = check(asked(gpu=device(80), concurrency=60))
    assert {advice.action: advice.cost for advice in plan.advice} == {
        "Store the KV cache in FP8": ("Some accuracy on long contexts; check on your own prompts."),
        "Quantize the weights to FP8": (
            "A little accuracy; a quantized checkpoint has to exist or be made."
        ),
        "Quantize the weights to 4 bits (AWQ)": (
            "More accuracy than FP8 loses; a quantized checkpoint has to exist or be made."
        ),
        "Split over 2 GPUs instead of 1 (tensor parallel)": (
            "1 more GPU, and more traffic between them."
        ),
        "Split the layers over 2 stages (pipeline parallel)": (
            "1 more GPU, and bubbles between the stages."
        ),
        "Use H200-SXM-141GB instead of H100": (
            "Other GPUs at another price: kvplan fit compares them."
        ),
        "Let all requests begin with the same 624 tokens": (
            "Nothing, if 8% of every request is one shared prompt."
        ),
        "Serve it with tensorrt-llm instead of vllm": (
            "Another server: other options, other speed; test it before you move."
        ),
        "Cap requests at 7,568 tokens": "Longer requests are refused.",
        "Raise gpu_memory_utilization to 0.95": (
            "Less room for what the budget does not count; risky where others use the GPU."
        ),
    }
    limit = check(asked(gpu=device(80), engine_options={"max_num_seqs": 5}, concurrency=8))
    assert limit.advice[0].cost == "A larger sampling buffer, which the gain accounts for."


def test_splits_say_what_they_add() -> None:
    one = check(asked(gpu=device(80), concurrency=60))
    (split,) = [advice for advice in one.advice if advice.change == {"tp": 2}]
    assert split.cost == "1 more GPU, and more traffic between them."
    many = check(asked(gpu=device(80), concurrency=1000, tp=2, pp=2, dp=3))
    (split,) = [advice for advice in many.advice if advice.change == {"tp": 4}]
    assert split.cost == "12 more GPUs, and more traffic between them."


def test_options_that_were_given_are_kept() -> None:
    options = {"max_num_seqs": 5, "enforce_eager": True, "gpu_memory_utilization": 0.5}
    check(asked(gpu=device(80), engine_options=options, concurrency=30))


def test_nothing_is_advised_that_is_already_so() -> None:
    plan = check(
        asked(gpu=device(80), concurrency=1000, kv_dtype="fp8",
              engine_options={"gpu_memory_utilization": 0.95})
    )  # fmt: skip
    changes = [set(change) for change in actions(plan)]
    assert {"kv_dtype"} not in changes
    assert {"engine_options"} not in changes


@pytest.mark.parametrize(("used", "offered"), [(0.94, True), (0.95, False), (0.96, False)])
def test_a_larger_share_is_offered_below_95_percent(used: float, *, offered: bool) -> None:
    """A hundredth of the card is 0.8 GiB, a request of 4,096 tokens 0.5: there is one more."""
    options = {"gpu_memory_utilization": used}
    arguments = asked(gpu=device(80), context=4096, engine_options=options)
    plan = kvplan.size(**arguments)
    assert plan.capacity is not None
    plan = check({**arguments, "concurrency": plan.capacity.requests + 1})
    wanted = {"engine_options": {"gpu_memory_utilization": 0.95}}
    assert (wanted in actions(plan)) is offered


def test_a_given_budget_knows_no_memory_to_gain() -> None:
    plan = check(asked(kv_budget=2 * GIB, concurrency=10))
    assert {key for change in actions(plan) for key in change} == {
        *("kv_dtype", "context", "dp", "engine"),
    }
    fixed = asked(engine_options={"kv_cache_memory_bytes": 2 * GIB}, concurrency=10)
    assert all("engine_options" not in change for change in actions(check(fixed)))


def test_a_quantized_checkpoint_is_not_quantized_again() -> None:
    eight_bit = real("llama-3.1-8b").model_copy(update={"quantization": "fp8"})
    plan = check(asked(model=eight_bit, gpu=device(80), concurrency=1000))
    assert all("weights" not in change for change in actions(plan))


def test_ranks_stop_at_16() -> None:
    wide = toy(*[full(32)] * 64)
    assert {"tp": 16} in actions(check(asked(model=wide, gpu=device(80), tp=8, concurrency=10**6)))
    assert all(
        "tp" not in change
        for change in actions(check(asked(model=wide, gpu=device(80), tp=16, concurrency=10**6)))
    )


def test_a_split_that_the_engine_refuses_is_not_advised() -> None:
    plan = check(asked(model=real("phi-4"), gpu=device(80), tp=2, context=8192, concurrency=500))
    assert plan.advice
    assert all("tp" not in change for change in actions(plan))


def test_where_not_even_one_request_fits_that_is_the_target() -> None:
    """16 GiB of weights on 16 GiB: fewer bytes or more cards, and no replicas of nothing."""
    plan = check(asked(gpu=device(16)))
    assert plan.reasons[0].code == "no_room_for_cache"
    assert {"weights": "fp8"} in actions(plan)
    assert {"tp": 2} in actions(plan)
    assert all("dp" not in change for change in actions(plan))
    assert all(advice.gain.requests >= 1 for advice in plan.advice)


def test_without_a_number_of_requests_replicas_are_not_advised() -> None:
    plan = check(asked(context=100_000))
    assert plan.reasons[0].code == "context_too_long"
    assert all("dp" not in change for change in actions(plan))
    (shorter,) = [advice for advice in plan.advice if "context" in advice.change]
    assert plan.capacity is not None
    assert shorter.change["context"] == plan.capacity.max_context


def test_what_does_not_help_is_not_advised() -> None:
    """Falcon in vLLM keeps its keys and values in the model's type whatever is asked for."""
    falcon = asked(model=real("falcon-7b"), gpu=device(20), context=2048, concurrency=10**5)
    plan = check(falcon)
    assert plan.reasons[0].code == "kv_cache_full"
    assert {"weights": "fp8"} in actions(plan)
    assert not any("kv_dtype" in change for change in actions(plan))


def test_where_nothing_fits_the_longest_is_tried_anew_with_each_change() -> None:
    """16 GB of weights on 16 GiB: on two GPUs there is room, and the advice says for how much."""
    plan = check(asked(model=real("llama-3.1-8b"), gpu=device(16), context="auto"))
    assert plan.verdict == "does_not_fit"
    (split,) = [advice for advice in plan.advice if advice.change.keys() == {"tp", "context"}]
    assert split.change["tp"] == 2
    assert split.change["context"] > 1000
    assert f"of {split.change['context']:,} tokens" in split.note


def test_advice_does_not_cross_the_edge_of_the_card() -> None:
    """At 0.95 too little would be left outside the budget of a small card."""
    plan = check(asked(model=toy(full(), full()), gpu=device(8), concurrency=10**6))
    assert {"engine_options": {"gpu_memory_utilization": 0.95}} not in actions(plan)
    larger = check(asked(model=toy(full(), full()), gpu=device(10), concurrency=10**6))
    assert larger.verdict == "does_not_fit"
    assert {"engine_options": {"gpu_memory_utilization": 0.95}} in actions(larger)


def test_the_longest_that_fits_is_kept_by_every_other_change() -> None:
    """One request of the longest length; a gain counts requests of that very length."""
    plan = check(asked(context="auto", concurrency=5))
    assert plan.capacity is not None
    assert plan.capacity.requests == 1
    length = plan.workload.context
    assert {"context": length, "dp": 5} in actions(plan)
    assert {"context": length, "kv_dtype": "fp8"} in actions(plan)
    assert any(change.get("context") != length for change in actions(plan))


SMALL = st.sampled_from(
    ["llama-3.1-8b", "gemma-3-27b", "qwen3-30b-a3b", "deepseek-v2-lite", "gpt-oss-20b", "phi-4",
     "falcon-7b", "gpt2-xl"]
)  # fmt: skip


@given(
    name=SMALL,
    gib=st.sampled_from([16, 24, 48, 80, 180]),
    sm=st.sampled_from([(8, 9), (9, 0), (10, 0)]),
    parallel=st.sampled_from([{}, {"tp": 2}, {"pp": 2}, {"dp": 2}, {"tp": 4, "dp": 2}]),
    context=st.none() | st.just("auto") | st.integers(1, 60_000),
    concurrency=st.none() | st.integers(1, 5000),
    options=st.sampled_from(
        [{}, {"max_num_seqs": 16}, {"enforce_eager": True}, {"gpu_memory_utilization": 0.5}]
    ),
    engine=st.sampled_from(["vllm", "vllm==0.12.0"]),
)
def test_every_advice_keeps_its_promise(
    *,
    name: str,
    gib: int,
    sm: tuple[int, int],
    parallel: dict[str, int],
    context: int | str | None,
    concurrency: int | None,
    options: dict[str, Any],
    engine: str,
) -> None:
    plan = check(
        {
            "model": real(name),
            "gpu": device(gib, sm=sm),
            "engine": engine,
            "context": context,
            "concurrency": concurrency,
            "engine_options": options,
            **parallel,
        }
    )
    assume(plan.verdict == "does_not_fit")


def case(model: ModelSpec, gpu: GpuSpec, load: Load, **changes: Any) -> Case:
    setup = Setup(model=model, gpu=gpu, context=8192, **changes)
    plan = size(Vllm(), setup, load)
    assert plan.capacity is not None
    return Case(
        engine=Vllm(),
        setup=setup,
        plan=plan,
        capacity=plan.capacity,
        context=8192,
        longest=False,
        target=load.concurrency or 1,
    )


def test_single_changes_stand_with_the_gentlest_first() -> None:
    found = single_changes(
        case(
            real("llama-3.1-8b"),
            device(80),
            Load(context=8192, concurrency=40),
            options={"max_num_seqs": 5},
        )
    )
    assert [sorted(trial.change) for trial in found] == [
        # Admitting more; 4,096 and then 2,048 tokens a step.
        ["engine_options"],
        ["engine_options"],
        ["engine_options"],
        ["kv_dtype"],
        ["weights"],
        ["weights"],
        ["tp"],
        ["tp"],
        ["tp"],
        ["tp"],
        ["pp"],
        ["dp"],
        ["engine_options"],
    ]


def test_a_trial_says_what_it_is() -> None:
    trials = {
        tuple(trial.change): trial
        for trial in single_changes(
            case(real("llama-3.1-8b"), device(80), Load(context=8192, concurrency=100),
                 parallelism=Parallelism(tp=2, dp=3))
        )
    }  # fmt: skip
    assert {key for key, trial in trials.items() if trial.last_resort} == {
        ("dp",),
        ("context",),
        (),
    }
    assert {key for key, trial in trials.items() if trial.pairs} == {
        *(("kv_dtype",), ("weights",), ("tp",)),
    }
    assert trials["tp",].change["tp"] == 16
    assert trials["tp",].gpus == 14 * 3
    assert trials["pp",].gpus == 6
    assert trials["kv_dtype",].gpus == 0


def test_pairs_join_what_may_be_joined() -> None:
    def trial(name: str, change: dict[str, Any], *, pairs: bool = True, gpus: int = 0) -> Trial:
        return Trial(action=name, change=change, cost=f"{name}.", pairs=pairs, gpus=gpus,
                     options={name: 1})  # fmt: skip

    one, two = trial("One", {"a": 1}, gpus=2), trial("Two", {"b": 1}, gpus=3)
    same, alone = trial("Same", {"a": 2}), trial("Alone", {"c": 1}, pairs=False)
    pairs = list(pairs_of([one, two, same, alone]))
    assert [pair.change for pair in pairs] == [{"a": 1, "b": 1}, {"b": 1, "a": 2}]
    assert pairs[0].action == "One, and two"
    assert pairs[0].cost == "One. Two."
    assert pairs[0].options == {"One": 1, "Two": 1}
    assert pairs[0].gpus == 5
    assert not pairs[0].pairs
    assert not pairs[0].last_resort


def test_a_plan_without_capacity_gets_no_advice() -> None:
    setup = Setup(model=real("phi-4"), gpu=device(80), parallelism=Parallelism(tp=4), context=5)
    load = Load(context=5, concurrency=5)
    plan = size(Vllm(), setup, load)
    assert advise(Vllm(), setup, load, plan) == ()
    wrong = plan.model_copy(update={"verdict": "does_not_fit"})
    assert advise(Vllm(), setup, load, wrong) == ()
    assert advise(Vllm(), replace(setup, parallelism=Parallelism()), load, plan) == ()
