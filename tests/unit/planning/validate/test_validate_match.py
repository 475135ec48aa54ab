"""A record → model, GPU, engine and flags."""

from __future__ import annotations

from typing import Any

import pytest
from measured_starts import CONFIG, Shelf, checked, start

from kvplan.planning.validate.flags import stated_options
from kvplan.planning.validate.lacking import LackingError
from kvplan.planning.validate.match import Matcher


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": "nobody/knows"}, "unknown model: "),
        ({"model": None}, "unknown model: "),
        ({"model": "strange"}, "model not modelled: "),
        ({"gpu": "Z9000"}, "unknown GPU: "),
        ({"gpu": "A100"}, "unknown GPU: "),  # several are called that
        ({"engine": "sglang"}, "unknown engine: "),
        ({"engine": None}, "engine is not stated"),
        ({"gpu_total_gib": 0.0}, "gpu_total_gib is no amount of memory"),
        ({"engine_version": None, "engine_generation": "V0"}, "engine_version is not stated"),
    ],
)
def test_what_can_not_be_found(changes: dict[str, Any], reason: str) -> None:
    """The whole record is skipped, and no check counts it."""
    found = checked(**changes)
    assert found.skipped is not None
    assert found.skipped.startswith(reason)
    assert set(found.not_checked.values()) == {found.skipped}


def test_flags_become_the_setup() -> None:
    of = start(
        tp=2,
        pp=2,
        max_num_seqs=8,
        max_num_batched_tokens=512,
        kv_cache_dtype="fp8",
        dtype="half",
        block_size=32,
        enforce_eager=True,
        enable_prefix_caching=False,
        decode_context_parallel=2,
        unheard_of=1,
    )
    setup = of.memory(of.model)
    parallel = setup.parallelism
    assert (parallel.tp, parallel.pp, parallel.dp, parallel.dcp) == (2, 2, 1, 2)
    assert (setup.kv_dtype, setup.dtype, setup.version, setup.context) == (
        "fp8",
        "half",
        "0.33.0",
        4096,
    )
    assert setup.options == {
        "max_num_seqs": 8,
        "max_num_batched_tokens": 512,
        "enable_prefix_caching": False,
        "gpu_memory_utilization": 0.9,
        "enforce_eager": True,
        "block_size": 32,
    }
    pages = of.pages(of.model, 1000)
    assert pages.kv_budget == (1000,)
    assert "gpu_memory_utilization" not in pages.options
    assert setup.kv_budget is None


def test_what_is_not_stated_is_left_to_the_engine() -> None:
    of = start(
        kv_cache_dtype=None,
        max_model_len=None,
        gpu_memory_utilization=None,
        decode_context_parallel="2",
    )
    setup = of.memory(of.model)
    assert (setup.kv_dtype, setup.dtype, setup.context) == ("auto", "auto", 4096)
    assert setup.options == {}
    assert setup.parallelism.dcp == 1
    assert of.assumed == ("gpu_memory_utilization", "max_model_len")


def test_what_the_author_assumed_is_named() -> None:
    of = start(kv_cache_dtype_assumed=True, gpu_total_assumed=True, dtype_assumed=False, tp=None)
    assert of.assumed == ("gpu_total", "kv_cache_dtype", "tp")


def test_a_longer_context_than_any_is_refused() -> None:
    with pytest.raises(LackingError, match="more than any"):
        _ = start(max_model_len=2**50).context


def test_the_engine_is_found_in_any_case() -> None:
    assert start(engine="vLLM").engine.name == "vllm"


def test_the_engine_of_a_release_that_had_two() -> None:
    """V0 kept as many blocks, and says nothing that V1 of the same release would."""
    of = start(engine_version="0.9.2", engine_generation="V0")
    assert of.memory(of.model).options["use_v1"] is False
    assert start(engine_generation="V1").memory(of.model).options["use_v1"] is True
    assert "use_v1" not in start(engine_generation="V2").memory(of.model).options
    gone = checked(engine_version="0.33.0", engine_generation="V0")
    assert gone.skipped is not None
    assert gone.skipped.startswith("release not modelled: ")
    assert gone.verdict is None


def test_lora_as_records_note_it() -> None:
    names = ("enable_lora", "max_loras", "max_lora_rank")
    on = start(lora={"enabled": True, "max_rank": 16, "max_adapters": 2})
    assert stated_options(on.record, on.model, names) == {
        "enable_lora": True,
        "max_loras": 2,
        "max_lora_rank": 16,
    }
    half = start(lora={"enabled": True, "max_rank": 16, "max_adapters": None})
    with pytest.raises(LackingError, match="max_loras is not stated"):
        stated_options(half.record, half.model, names)
    off = start(lora={"enabled": False})
    assert stated_options(off.record, off.model, names) == {}
    assert "enable_lora" not in on.pages(on.model, 1000).options


def test_drafts_as_records_note_them() -> None:
    by_lookup = start(speculative={"method": "ngram", "tokens": 4})
    assert by_lookup.memory(by_lookup.model).options["speculative_config"] == {
        "method": "ngram",
        "num_speculative_tokens": 4,
    }
    unknown = checked(speculative={"method": "eagle", "tokens": None})
    assert unknown.geometry is None


def test_the_cache_format_of_another_copy_is_not_taken_over() -> None:
    """A checkpoint may prescribe fp8 for its cache; another copy's start does not follow it."""
    scheme = {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "kv_cache_scheme": {"num_bits": 8, "type": "float", "dynamic": False},
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": {"num_bits": 8, "type": "float", "strategy": "tensor"},
            }
        },
        "ignore": ["lm_head"],
    }
    shelf = Shelf(copy=CONFIG | {"quantization_config": scheme})
    assert start(shelf, model="copy").model.kv_scheme is not None
    assert start(shelf, model="copy", weight_format="fp8").model.kv_scheme is not None
    assert start(shelf, model="copy", weight_format="mxfp4").model.kv_scheme is None


def test_towers_that_were_left_out_hold_nothing() -> None:
    of = start(multimodal={"language_model_only": True})
    assert of.loaded().weights == of.model.weights
    assert start(multimodal="text").loaded().weights == of.model.weights


def test_a_model_is_read_once() -> None:
    matcher = Matcher(Shelf())
    first, second = (matcher.match(start(id=name).record) for name in "ab")
    assert first.model is second.model


MOE = CONFIG | {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 100,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
SPREAD = "enable_expert_parallel"


def test_a_log_that_got_as_far_as_loading_was_not_refused() -> None:
    """8 ranks do not split 100 columns: experts were whole, whatever the record leaves out."""
    found = start(Shelf(moe=MOE), model="moe", tp=8)
    assert SPREAD in found.assumed
    assert found.memory(found.model).options[SPREAD] is True


@pytest.mark.parametrize(
    "changes",
    [
        {"tp": 4},  # 25 columns a rank
        {"tp": 8, SPREAD: False},  # stated
        {"tp": 8, "weights_gib": None, "available_kv_gib": None, "kv_tokens": None},
    ],
)
def test_nothing_is_filled_in_where_it_need_not_be(changes: dict[str, Any]) -> None:
    found = start(Shelf(moe=MOE), model="moe", **changes)
    assert SPREAD not in found.assumed
