"""Configurations that were damaged on purpose: an answer or a sentence, in bounded time."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kvplan.architectures import quantize, read_model
from kvplan.architectures.entries import Catalogue
from kvplan.architectures.headers import exact_weights, sort_tensors
from kvplan.errors import InputError, KvplanError
from kvplan.models.facts import ModelFacts, TensorHeader
from kvplan.models.formats import PLAIN
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import stored_bytes

GOLDEN = Path(__file__).parents[2] / "golden"
CONFIGS: list[dict[str, Any]] = [
    case["config"]
    for path in sorted(GOLDEN.glob("*/kv_bytes.yaml"))
    for case in yaml.safe_load(path.read_text())
]
SCHEMES: list[dict[str, Any]] = [
    {"quant_method": "fp8", "weight_block_size": [128, 128], "modules_to_not_convert": ["a"]},
    {"quant_method": "awq", "bits": 4, "group_size": 128},
    {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True},
    {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn"]},
    {"quant_algo": "NVFP4", "group_size": 16, "producer": {"name": "modelopt"}, "ignore": ["b*"]},
    {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "ignore": ["lm_head", "re:.*gate$"],
        "kv_cache_scheme": {"num_bits": 8, "type": "float"},
        "config_groups": {"a": {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int"}}},
    },
]
MORE = ["rope_scaling", "layer_types", "sliding_window", "head_dim", "architectures", "dtype"]

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(2**60, 2**70)
    | st.sampled_from([0, 1, 7, 10_000, 2**24, -(2**63), 10**400])
    | st.floats()
    | st.text(max_size=20)
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


def paths(config: dict[str, Any], prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for key, value in config.items():
        found.append((*prefix, key))
        if isinstance(value, dict):
            found += paths(value, (*prefix, key))
    return found


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """A configuration with one to four fields dropped, replaced, nested, doubled or added."""
    config = copy.deepcopy(draw(st.sampled_from(CONFIGS)))
    if draw(st.booleans()):
        config["quantization_config"] = copy.deepcopy(draw(st.sampled_from(SCHEMES)))
    for _ in range(draw(st.integers(1, 4))):
        *parents, key = draw(st.sampled_from([*paths(config), *((name,) for name in MORE)]))
        part = config
        for parent in parents:
            part = part[parent]
        match draw(st.sampled_from(["drop", "replace", "nest", "grow"])):
            case "drop":
                part.pop(key, None)
            case "replace":
                part[key] = draw(values)
            case "nest":
                part[key] = draw(st.sampled_from([[part.get(key)], {key: part.get(key)}]))
            case "grow":
                old = part.get(key)
                part[key] = old * draw(st.integers(2, 1000)) if isinstance(old, int) else old
    return config


def read_or_refuse(facts: ModelFacts) -> ModelSpec | None:
    start = time.process_time()
    spec, said = None, "."
    try:
        spec = read_model(facts)
    except KvplanError as error:
        said = error.message
    assert time.process_time() - start < 2
    assert said.endswith(".")
    assert len(said) < 400
    return spec


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(damaged())
def test_damaged_configurations(config: dict[str, Any]) -> None:
    spec = read_or_refuse(ModelFacts(id="x", source="config.json", config=config))
    if spec is not None:
        assert 0 < spec.parameters_active <= spec.parameters_total
        assert 0 < len(spec.layers) <= 10_000
        assert all(size > 0 for size in stored_bytes(spec.weights, PLAIN[spec.dtype]).values())
        if spec.quantization is None:
            quantize(spec, "fp8")


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=12), values, max_size=6), values)
def test_arbitrary_objects(config: dict[str, Any], model_type: object) -> None:
    read_or_refuse(ModelFacts(id="x", source="x", config={**config, "model_type": model_type}))


names = st.sampled_from(
    [
        "lm_head.weight",
        "model.layers.0.self_attn.k_proj.weight",
        "model.layers.0.self_attn.k_proj.qweight",
        "model.layers.9.mlp.experts.3.up_proj.weight_scale",
        "vision_tower.layers.1.x",
        ".",
        "",
    ]
) | st.text(max_size=40)
headers = st.builds(
    TensorHeader,
    name=names,
    dtype=st.sampled_from(["BF16", "U8", "F8_E4M3", "?"]),
    shape=st.lists(st.integers(0, 2**40), max_size=4).map(tuple),
    size=st.integers(0, 2**63),
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(CONFIGS), st.lists(headers, min_size=1, max_size=6).map(tuple))
def test_arbitrary_headers(config: dict[str, Any], tensors: tuple[TensorHeader, ...]) -> None:
    """Files that hold next to nothing stand for nothing: the weights are the formula's."""
    spec = read_or_refuse(ModelFacts(id="x", source="x", config=config, tensors=tensors))
    formula = read_or_refuse(ModelFacts(id="x", source="x", config=config))
    assert spec is not None
    assert formula is not None
    assert spec.weights == formula.weights
    assert any("computed from the configuration" in note for note in spec.notes)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(CONFIGS), st.lists(headers, min_size=1, max_size=6).map(tuple))
def test_bytes_of_arbitrary_headers(
    config: dict[str, Any], tensors: tuple[TensorHeader, ...]
) -> None:
    """Bytes are conserved whatever the shapes claim, but for what is not loaded."""
    formula = read_or_refuse(ModelFacts(id="x", source="x", config=config))
    assert formula is not None
    catalogue, layers = Catalogue(formula.weights), len(formula.layers)
    found = sort_tensors(tensors, catalogue, layers=layers, tied=formula.tied_embeddings)
    stored = sum(stored_bytes(exact_weights(found), PLAIN[formula.dtype]).values())
    assert stored <= sum(tensor.size for tensor in tensors)


def test_the_largest_configuration_is_read_in_time() -> None:
    """Ten thousand layers, and a list of exceptions for each of them."""
    config = next(c for c in CONFIGS if c["model_type"] == "deepseek_v3") | {
        "num_hidden_layers": 10_000,
        "quantization_config": {
            "quant_method": "fp8",
            "modules_to_not_convert": [f"model.layers.{n}.mlp.gate" for n in range(20_000)],
        },
    }
    assert read_or_refuse(ModelFacts(id="x", source="x", config=config)) is not None


def test_fields_that_are_fine_alone_and_absurd_together() -> None:
    """A million wide and four thousand layers deep: no model, a slip in a field."""
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 1 << 20,
        "intermediate_size": 1 << 20,
        "num_attention_heads": 128,
        "num_hidden_layers": 4000,
        "vocab_size": 32_000,
    }
    with pytest.raises(InputError, match=r"parameters by its configuration") as raised:
        read_model(ModelFacts(id="x", source="x", config=config))
    assert raised.value.hint
