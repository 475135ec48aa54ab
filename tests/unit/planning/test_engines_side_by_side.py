"""Plans side by side: the parts sum to the card, the best is named, each difference is said."""

from __future__ import annotations

import pytest
from sample_comparisons import asked, comparison, other_engine
from sample_plans import SAMPLES, does_not_fit, fits_unasked, too_big

import kvplan
from kvplan.ledger import total
from kvplan.plan import Reason
from kvplan.planning.compare import Asked, spent


def test_the_one_that_holds_most_is_best() -> None:
    assert comparison().best == "vllm"
    assert comparison(tuple(reversed(asked()))).best == "vllm"


def test_nothing_is_best_where_nothing_is_held() -> None:
    found = comparison((Asked("vllm", "0.33.0", too_big()), *asked()[2:]))
    assert found.best is None
    assert found.engines[0].verdict == "does_not_fit"


def test_more_tokens_decide_between_equals() -> None:
    plan = fits_unasked()
    assert plan.capacity is not None
    more = plan.model_copy(
        update={
            "engine": plan.engine.model_copy(update={"name": "other"}),
            "capacity": plan.capacity.model_copy(update={"tokens": plan.capacity.tokens + 1}),
        }
    )
    assert comparison((Asked("vllm", "1", plan), Asked("other", "1", more))).best == "other"


def test_parts_sum_to_the_card() -> None:
    for make in SAMPLES.values():
        plan = make()
        parts = spent(plan)
        if parts is None:
            assert plan.ledger == ()
            continue
        shares = (parts.weights, parts.runtime, parts.cache, parts.outside, parts.unused)
        assert sum(shares) == parts.total == total(plan.ledger)


def test_what_differs_is_said() -> None:
    best, limited, refuses, unknown = comparison().engines
    assert best.why == ()
    assert best.setting is not None
    assert best.setting.name == "gpu_memory_utilization"
    assert [sentence.partition(" ")[0] for sentence in limited.why] == [
        "max_running_requests",
        "A",
        "Engine",
    ]
    assert "2.00 times vllm's" in limited.why[1]
    assert "of float32" in limited.why[1]
    assert limited.why[2] == (
        "Engine runtime: 3.00 GiB more than vllm (runtime.activations is 5.42 GiB)."
    )
    assert limited.setting is not None
    assert limited.setting.meaning.startswith("of what was free before loading")
    assert refuses.spent is None
    assert refuses.why
    assert unknown.why == ("It has no cache type fp5.",)
    assert unknown.plan is None
    assert unknown.verdict == "refused"


def test_a_limit_that_does_not_bind_is_not_named() -> None:
    plan = fits_unasked()
    entries = (
        Asked("vllm", "0.33.0", plan),
        Asked("sglang", "1.2", other_engine(plan, "sglang", max_running_requests=4096)),
    )
    assert not any("max_running" in why for why in comparison(entries).engines[1].why)


def test_an_engine_that_falls_short_says_so_first() -> None:
    plan = does_not_fit()
    found = comparison((Asked("vllm", "0.33.0", plan),)).engines[0]
    assert found.why == (plan.reasons[0].message,)


@pytest.mark.parametrize("assumed", [(), ("batch_size",)])
def test_a_batch_that_memory_found_is_no_limit(assumed: tuple[str, ...]) -> None:
    plan = fits_unasked()
    assert plan.capacity is not None
    batch = plan.capacity.requests // 2
    other = other_engine(plan, "transformers", batch_size=batch)
    engine = other.engine.model_copy(update={"assumed": assumed})
    other = other.model_copy(update={"engine": engine})
    entries = (Asked("vllm", "0.33.0", plan), Asked("transformers", "5.24.0", other))
    said = any(f"batch_size {batch}" in why for why in comparison(entries).engines[1].why)
    assert said == (not assumed)


def test_layers_on_the_host_are_told_even_of_the_best() -> None:
    plan = fits_unasked()
    note = Reason(code="layers_on_host", message="Planned with 3 of 49 layers on the GPUs.")
    entry = Asked("ollama", "0.33.0", plan.model_copy(update={"reasons": (note,)}))
    assert comparison((entry,)).engines[0].why == (note.message,)


def test_what_a_request_takes_beside_its_cache_is_said() -> None:
    """Under transformers fewer prompts are held than the free memory has caches for."""
    plans = [
        kvplan.size(
            "Qwen/Qwen3-8B", "custom:48GiB", engine=engine, context=8192, offline=True,
            advice=False, concurrency=concurrency,
        )
        for engine, concurrency in (("vllm", None), ("transformers", None), ("transformers", 4))
    ]  # fmt: skip
    said = [
        any("beside its cache" in why for why in comparison(entries).engines[1].why)
        for entries in (
            (Asked("vllm", "1", plans[0]), Asked("transformers", "5", plans[1])),
            (Asked("vllm", "1", plans[0]), Asked("transformers", "5", plans[2])),
        )
    ]
    assert said == [True, False]
