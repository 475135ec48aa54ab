"""The first line: a verdict that a manager understands."""

from __future__ import annotations

import pytest
from sample_plans import SAMPLES, does_not_fit, kv_budget

from kvplan.plan import Plan, Reason
from kvplan.reports.headline import headline, subject

SENTENCES = {
    "fits": "Fits: 4 × H100-SXM-80GB hold 13 requests of 32,768 tokens at once; you asked for 10.",
    "fits_unasked": "Fits: 4 × H100-SXM-80GB hold 13 requests of 32,768 tokens at once.",
    "does_not_fit": "Does not fit: 4 × H100-SXM-80GB hold 13 requests of 32,768 tokens at once;"
    " 50 were asked for. KV cache runs out first.",
    "two_replicas": "Fits: 8 × H100-SXM-80GB hold 26 requests of 32,768 tokens at once; you asked"
    " for 20.",
    "one_too_long": "Does not fit: 4 × H100-SXM-80GB cannot hold one request of 1,048,576 tokens;"
    " the longest that fits has 443,904 tokens. KV cache runs out first.",
    "too_big": "Does not fit: 4 × L4-24GB have 22.00 GiB a GPU; the model's weights alone need"
    " 32.86 GiB.",
    "refused": "Refused: vLLM would not start: 64 attention heads can't be divided among 3 GPUs"
    " (TP 3).",
    "assumed": "Fits: 4 × H100-SXM-80GB hold 13 requests of 32,768 tokens at once; you asked for"
    " 4.",
    "kv_budget": "Fits: 4 × H100-SXM-80GB hold 16 requests of 32,768 tokens at once; you asked"
    " for 10.",
}


def test_every_sample_has_its_sentence() -> None:
    assert SENTENCES.keys() == SAMPLES.keys()


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_sentence_of_each_sample(name: str) -> None:
    assert headline(SAMPLES[name]()) == SENTENCES[name]


def _changed(plan: Plan, **capacity: int) -> Plan:
    assert plan.capacity is not None
    return plan.model_copy(update={"capacity": plan.capacity.model_copy(update=capacity)})


def test_one_gpu_holds_one_request() -> None:
    plan = _changed(SAMPLES["fits_unasked"](), requests=1)
    plan = plan.model_copy(update={"gpu": plan.gpu.model_copy(update={"count": 1})})
    assert headline(plan) == "Fits: 1 × H100-SXM-80GB holds 1 request of 32,768 tokens at once."


def test_the_engines_own_limit_is_not_called_a_lack_of_memory() -> None:
    plan = does_not_fit()
    workload = plan.workload.model_copy(update={"concurrency": 12})
    engine = plan.engine.model_copy(update={"options": {"max_num_seqs": 8}})
    plan = _changed(plan, requests=8)
    plan = plan.model_copy(update={"workload": workload, "engine": engine})
    assert headline(plan).endswith(
        "12 were asked for. The engine's own limit on requests (max_num_seqs 8) binds, not memory."
    )


def test_a_failure_that_is_not_the_caches_gives_its_own_reason() -> None:
    plan = _changed(does_not_fit(), requests=60)
    assert headline(plan) == f"Does not fit: {plan.reasons[0].message}"


def test_the_subject_leaves_out_what_is_not_known() -> None:
    plan = SAMPLES["refused"]()
    plan = plan.model_copy(
        update={"model": plan.model.model_copy(update={"parameters_total": None})}
    )
    assert subject(plan) == "meta-llama/Llama-3.1-70B-Instruct · vllm 0.33.0 · TP 3"


@pytest.mark.parametrize(
    ("budget", "blocks", "said"),
    [
        (40, 0, "has 40 B a GPU for the KV cache; one block takes 1.2 MiB."),
        (2**30, 1, "has a KV cache of 1 block (1.2 MiB each) a GPU; no request fits in that."),
    ],
)
def test_a_given_pool_that_holds_nobody_is_not_blamed_on_the_weights(
    budget: int, blocks: int, said: str
) -> None:
    plan = kv_budget()
    assert plan.kv is not None
    assert plan.capacity is not None
    figures = {"requests": 0, "max_context": 0, "blocks": blocks}
    changed = plan.model_copy(
        update={
            "verdict": "does_not_fit",
            "ledger": (),
            "gpu": plan.gpu.model_copy(update={"count": 1}),
            "kv": plan.kv.model_copy(update={"budget_bytes": budget}),
            "capacity": plan.capacity.model_copy(update=figures),
        }
    )
    assert headline(changed).endswith(said)


def test_of_two_limits_the_one_that_binds_first_is_named() -> None:
    plan = does_not_fit()
    both = (Reason(code="max_num_seqs", message="x"), Reason(code="kv_cache_full", message="y"))
    assert "binds first, then memory." in headline(plan.model_copy(update={"reasons": both}))
    assert "KV cache runs out first." in headline(plan.model_copy(update={"reasons": both[1:]}))
