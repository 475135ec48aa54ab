"""Drafts in SGLang: what they keep, what a step may allocate, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from real_models import real

import kvplan
from kvplan.errors import UsageError
from kvplan.ledger import total
from kvplan.plan import Plan

EAGLE3: dict[str, Any] = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_hidden_layers": 1,
    "vocab_size": 128256,
    "draft_vocab_size": 32000,
    "max_position_embeddings": 2048,
}


@pytest.fixture
def draft(tmp_path: Path) -> str:
    (tmp_path / "config.json").write_text(json.dumps(EAGLE3), encoding="utf-8")
    return str(tmp_path)


def planned(options: dict[str, Any], **changes: Any) -> Plan:
    arguments: dict[str, Any] = {
        "context": 8192,
        "engine": "sglang",
        "offline": True,
        "advice": False,
    } | changes
    return kvplan.size(real("llama-3.1-8b"), "H100", engine_options=options, **arguments)


def line(plan: Plan, name: str) -> int:
    return sum(entry.bytes for entry in plan.ledger if entry.name.startswith(name))


def test_a_draft_has_weights_and_a_pool(draft: str) -> None:
    plan = planned({"speculative_algorithm": "EAGLE3", "speculative_draft_model_path": draft})
    assert plan.capacity is not None
    # Its layer keeps as much as one of the model's 32, in a pool with a page more.
    assert line(plan, "draft_kv_cache") == (plan.capacity.tokens + 1) * 4096
    assert line(plan, "kv_cache") == (plan.capacity.tokens + 1) * 32 * 4096
    assert line(plan, "weights.draft_") > 0
    alone = planned({})
    assert alone.capacity is not None
    assert plan.capacity.tokens < alone.capacity.tokens
    assert total(plan.ledger) == plan.gpu.total_bytes


def test_a_wide_draft_takes_more_than_the_budget_has_for_it(tmp_path: Path) -> None:
    wide = json.dumps(EAGLE3 | {"num_key_value_heads": 32})
    (tmp_path / "config.json").write_text(wide, encoding="utf-8")
    path = str(tmp_path)
    plan = planned({"speculative_algorithm": "EAGLE3", "speculative_draft_model_path": path})
    assert plan.capacity is not None
    # Four times a row of the model, of which the budget paid for one.
    assert line(plan, "draft_kv_cache") == (plan.capacity.tokens + 1) * 4 * 4096
    rest = next(entry for entry in plan.ledger if entry.name == "budget_rest")
    assert rest.bytes >= 0
    assert total(plan.ledger) == plan.gpu.total_bytes


def test_a_draft_changes_what_is_filled_in(draft: str) -> None:
    plan = planned({"speculative_algorithm": "EAGLE3", "speculative_draft_model_path": draft})
    options = plan.engine.options
    # Llama's own choice of steps, branches and tokens.
    shape = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
    assert [options[name] for name in shape] == [5, 4, 8]
    assert options["max_running_requests"] == 48
    # A row has 4 tokens more than the context, and the 8 of a step; 48 rows and one.
    assert line(plan, "req_to_token") == 49 * (8192 + 12) * 4


def test_n_grams_need_no_draft() -> None:
    plan = planned({"speculative_algorithm": "ngram"})
    assert line(plan, "draft") == 0
    assert plan.engine.options["speculative_algorithm"] == "NGRAM"


def test_a_draft_that_is_missing() -> None:
    with pytest.raises(UsageError, match="needs a model to draft with"):
        planned({"speculative_algorithm": "EAGLE3"})


def test_older_releases_load_drafts_late(draft: str) -> None:
    options = {"speculative_algorithm": "EAGLE3", "speculative_draft_model_path": draft}
    plan = planned(options, engine="sglang==0.5.12")
    assert (plan.verdict, plan.reasons[0].code) == ("refused", "not_modelled")


def test_a_standalone_draft_takes_no_groups(draft: str) -> None:
    options = {
        "speculative_algorithm": "STANDALONE",
        "speculative_draft_model_path": draft,
        "enable_dp_attention": True,
        "dp_size": 2,
    }
    plan = planned(options, tp=2)
    assert plan.verdict == "refused"
