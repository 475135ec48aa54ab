"""`kvplan.compare`: engines by name, options by engine, refusals in their column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers_cases import GPU, model_of

from kvplan import api, compare
from kvplan.errors import UnknownNameError, UsageError
from kvplan.side_by_side import engine_names

CONFIG = {"model_type": "llama", "vocab_size": 32_000, "hidden_size": 1024,
          "intermediate_size": 4096, "num_attention_heads": 16, "num_key_value_heads": 4,
          "num_hidden_layers": 4, "torch_dtype": "bfloat16", "max_position_embeddings": 8192,
          "tie_word_embeddings": False}  # fmt: skip
MODEL = model_of("small", CONFIG)
TWO = ("vllm", "transformers")


def test_all_is_every_engine_there_is() -> None:
    assert engine_names("all") == tuple(api.ENGINES)
    assert engine_names(["vllm==0.20.0", "transformers"]) == ("vllm==0.20.0", "transformers")


@pytest.mark.parametrize("names", [[], ["vllm", "vllm"], ["vlm"], "vlm", [3]])
def test_names_that_make_no_comparison(names: Any) -> None:
    with pytest.raises(UsageError):
        engine_names(names)


def test_each_engine_plans_the_same() -> None:
    both = compare(MODEL, GPU, engines=TWO, context=4096, concurrency=3)
    assert [one.engine for one in both.engines] == list(TWO)
    assert both.best in TWO
    for one in both.engines:
        assert one.plan == api.size(
            MODEL, GPU, engine=one.engine, context=4096, concurrency=3, advice=False
        )


def test_options_go_to_their_engine() -> None:
    both = compare(
        MODEL, GPU, engines=TWO, context=4096,
        engine_options={"transformers": {"batch_size": 7}, "vllm": {"max_num_seqs": 9}},
    )  # fmt: skip
    plans = {one.engine: one.plan for one in both.engines}
    assert plans["transformers"] is not None
    assert plans["transformers"].engine.options["batch_size"] == 7
    assert plans["vllm"] is not None
    assert plans["vllm"].engine.options["max_num_seqs"] == 9


def test_a_wrong_option_is_the_callers_error() -> None:
    with pytest.raises(UnknownNameError):
        compare(MODEL, GPU, engines=TWO, engine_options={"transformers": {"batchsize": 7}})
    with pytest.raises(UsageError, match="not among the engines"):
        compare(MODEL, GPU, engines=["vllm"], engine_options={"transformers": {}})


def test_what_one_engine_does_not_know_is_a_reason_in_its_column() -> None:
    both = compare(MODEL, GPU, engines=TWO, context=4096, kv_dtype="fp8")
    ours = {one.engine: one for one in both.engines}
    assert ours["vllm"].verdict == "fits"
    assert ours["transformers"].verdict == "refused"
    assert "keeps its cache" in ours["transformers"].why[0]


def test_a_family_that_is_not_modelled_is_refused_by_all(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "never_heard_of"}')
    none = compare(str(tmp_path), GPU, engines=TWO)
    assert none.best is None
    assert {one.verdict for one in none.engines} == {"refused"}


def test_weights_that_lie_on_the_host_are_told() -> None:
    """The embedding is no part of one GPU's column under llama.cpp."""
    found = compare(
        "Qwen/Qwen3-8B", "H100", engines=["sglang", "llama.cpp"], context=8192, offline=True
    )
    assert found.best == "llama.cpp"
    said = " ".join(found.engines[0].why)
    assert "GiB more than llama.cpp, which leaves 1.16 GiB in the host's memory." in said
