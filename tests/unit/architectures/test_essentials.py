"""Which keys of a configuration stay: enough to read the same model, and none too many."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
from family_configs import GEMMA3, VISION

from kvplan.architectures import read_model
from kvplan.architectures.essentials import essential_config, without_headers
from kvplan.errors import KvplanError, NotModelledError
from kvplan.models.facts import ModelFacts, TensorHeader

DATA = Path(__file__).parents[2] / "data" / "vllm_cases.json"
JUNK: dict[str, Any] = {
    "_name_or_path": "somewhere",
    "bos_token_id": 1,
    "initializer_range": 0.02,
    "use_cache": True,
    "id2label": {"0": "no", "1": "yes"},
}
LLAMA: dict[str, Any] = {
    "vocab_size": 32000,
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "torch_dtype": "bfloat16",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
}
WRAPPED: dict[str, Any] = {
    "model_type": "gemma3",
    "architectures": ["Gemma3ForConditionalGeneration"],
    "dtype": "bfloat16",
    "text_config": {**GEMMA3, **JUNK, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
    "vision_config": {**VISION, **JUNK},
}
FP8: dict[str, Any] = {
    "quant_method": "fp8",
    "activation_scheme": "dynamic",
    "modules_to_not_convert": ["lm_head"],
    "weight_block_size": [128, 128],
}
REAL: dict[str, dict[str, Any]] = json.loads(DATA.read_text(encoding="utf-8"))["models"]
CONFIGS = {
    **REAL,
    "wrapped": WRAPPED,
    "quantized": {**LLAMA, "quantization_config": FP8},
}


def facts_of(config: dict[str, Any], **others: Any) -> ModelFacts:
    return ModelFacts(id="test/model", source="a test", config=config, **others)


def paths(config: dict[str, Any]) -> list[tuple[str, ...]]:
    """The way to every key, nested ones included."""
    return [
        path
        for name, value in config.items()
        for path in (
            (name,),
            *((name, *below) for below in (paths(value) if isinstance(value, dict) else ())),
        )
    ]


def without(config: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    name, *below = path
    if not below:
        return {key: value for key, value in config.items() if key != name}
    return {**config, name: without(config[name], tuple(below))}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_same_model_is_read(name: str) -> None:
    config = {**JUNK, **CONFIGS[name]}
    kept = essential_config(facts_of(config))
    assert read_model(facts_of(kept)) == read_model(facts_of(config))
    assert not JUNK.keys() & {part for path in paths(kept) for part in path}


@pytest.mark.parametrize("name", CONFIGS)
def test_no_key_can_be_spared(name: str) -> None:
    kept = essential_config(facts_of(CONFIGS[name]))
    whole = read_model(facts_of(kept))
    for path in paths(kept):
        if path in {("model_type",), ("architectures",)}:
            continue
        with contextlib.suppress(KvplanError):
            assert read_model(facts_of(without(kept, path))) != whole, path


def test_order() -> None:
    """Names and sizes first, as in the other files; the quantization last."""
    kept = essential_config(facts_of({"quantization_config": FP8, **LLAMA}))
    assert tuple(kept)[:4] == ("model_type", "architectures", "torch_dtype", "hidden_size")
    assert tuple(kept)[-1] == "quantization_config"


def test_a_default_that_is_stated_stays() -> None:
    """Without it the model would be the same, but kvplan would have to fill it in."""
    assert essential_config(facts_of(LLAMA))["attention_bias"] is False


def test_of_two_names_one_stays() -> None:
    kept = essential_config(facts_of({**LLAMA, "dtype": "bfloat16"}))
    assert "torch_dtype" not in kept
    assert kept["dtype"] == "bfloat16"


def test_modules_of_all_layers_are_written_once() -> None:
    every = [f"model.layers.{layer}.mlp.gate_proj" for layer in range(3)]
    some = [f"model.layers.{layer}.mlp.up_proj" for layer in range(2)]
    for names, written in ((every, ["model.layers.*.mlp.gate_proj"]), (some, some)):
        settings = {**FP8, "modules_to_not_convert": names}
        kept = essential_config(facts_of({**LLAMA, "quantization_config": settings}))
        assert kept["quantization_config"]["modules_to_not_convert"] == written


def test_a_table_of_modules_is_written_once() -> None:
    same = {f"layers.{layer}.mlp.up_proj": {"quant_algo": "FP8"} for layer in range(3)}
    mixed = {**same, "layers.0.mlp.up_proj": {"quant_algo": "NVFP4"}}
    settings = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}
    for table, names in ((same, {"layers.*.mlp.up_proj"}), (mixed, mixed.keys())):
        config = {**LLAMA, "quantization_config": {**settings, "quantized_layers": table}}
        kept = essential_config(facts_of(config))
        assert kept["quantization_config"]["quantized_layers"].keys() == names


def test_the_settings_of_a_second_file_are_moved() -> None:
    settings = {"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    facts = facts_of(LLAMA, quantization=settings)
    plain = without_headers(facts)
    assert plain.quantization is None
    assert read_model(plain) == read_model(facts)
    assert read_model(plain).quantization == "modelopt fp8"


def test_settings_that_cannot_be_moved() -> None:
    """Here the second file would hide its own method from the first."""
    facts = facts_of(LLAMA, quantization={"quant_method": "fp8", "quant_algo": "NVFP4"})
    with pytest.raises(NotModelledError, match="hf_quant_config"):
        without_headers(facts)


def test_headers_become_figures_and_a_type() -> None:
    config = without(LLAMA, ("torch_dtype",))
    weights = read_model(facts_of(LLAMA)).weights
    headers = tuple(
        TensorHeader(
            name=f"{prefix}{weight.name}",
            dtype="F16",
            shape=weight.shape,
            size=2 * weight.parameters // max(1, len(weight.layers)),
        )
        for weight in weights
        for prefix in (
            [f"model.layers.{layer}." for layer in weight.layers]
            if weight.layers
            else ["" if weight.component == "lm_head" else "model."]
        )
    )
    total = sum(header.size for header in headers)
    plain = without_headers(facts_of(config, tensors=headers, checkpoint_bytes=total))
    assert plain.tensors is None
    assert plain.config["dtype"] == "float16"
    assert plain.checkpoint_bytes == total
    assert plain.checkpoint_parameters == total // 2


def test_a_long_configuration_takes_no_longer() -> None:
    config = {**LLAMA, **{f"key_{number}": number for number in range(50_000)}}
    start = time.process_time()
    assert essential_config(facts_of(config)) == essential_config(facts_of(LLAMA))
    assert time.process_time() - start < 10
