"""Weight files that hold less than the configuration describes, or another model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from measured import measured

from kvplan.models.facts import TensorHeader
from kvplan.models.spec import ModelSpec

Read = Callable[..., ModelSpec]
Config = dict[str, Any]
Tensors = tuple[TensorHeader, ...]

QWEN: Config = {
    "model_type": "qwen3",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
MOE: Config = QWEN | {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 2,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 128,
}
COMPUTED = "weights are computed from the configuration."


def header(name: str, shape: tuple[int, ...], dtype: str = "BF16") -> TensorHeader:
    size = math.prod(shape) * {"BF16": 2, "F32": 4, "I32": 4, "U8": 1, "I16": 2}[dtype]
    return TensorHeader(name=name, dtype=dtype, shape=shape, size=size)


def files_of(spec: ModelSpec) -> Tensors:
    return tuple(_files_of(spec))


def _files_of(spec: ModelSpec) -> Iterator[TensorHeader]:
    for weight in spec.weights:
        if weight.place != "layers":
            yield header(f"model.{weight.name}", weight.shape)
        for layer in weight.layers:
            for copy in range(weight.copies):
                name = weight.name.replace("experts.", f"experts.{copy}.", weight.copies > 1)
                yield header(f"model.layers.{layer}.{name}", weight.shape)


def without(tensors: Tensors, part: str) -> Tensors:
    return tuple(tensor for tensor in tensors if part not in tensor.name)


def is_exact(spec: ModelSpec) -> bool:
    return spec.checkpoint is not None and bool(spec.checkpoint.bytes_by_dtype)


def assert_computed(spec: ModelSpec, formula: ModelSpec, note: str) -> None:
    assert spec.weights == formula.weights
    assert not is_exact(spec)
    assert spec.notes[0] == f"The files {note}; {COMPUTED}"


# Gaps


def test_some_of_the_layers(read: Read) -> None:
    formula = read(QWEN)
    half = files_of(read({**QWEN, "num_hidden_layers": 14}))
    spec = read(QWEN, tensors=half)
    assert_computed(spec, formula, "hold 14 of 28 layers")
    assert spec.parameters_total == formula.parameters_total == 596_049_920


def test_a_tensor_of_something_else(read: Read) -> None:
    spec = read(QWEN, tensors=(header("a", (4,)),))
    assert_computed(spec, read(QWEN), "hold 0 of 28 layers")


def test_much_of_something_else_makes_up_for_no_layer(read: Read) -> None:
    spec = read(QWEN, tensors=(header("a", (2**20, 2**10)),))
    assert_computed(spec, read(QWEN), "hold 0 of 28 layers")


@pytest.mark.parametrize(
    ("part", "note"),
    [
        ("layers.3.mlp.down_proj", "lack all of mlp.down_proj.weight of layer 3"),
        ("self_attn.k_proj", "lack all of self_attn.k_proj.weight of layer 0"),
        ("embed_tokens", "lack all of embed_tokens.weight"),
    ],
)
def test_a_matrix_that_is_not_there(read: Read, part: str, note: str) -> None:
    formula = read(QWEN)
    assert_computed(read(QWEN, tensors=without(files_of(formula), part)), formula, note)


def test_some_of_the_experts(read: Read) -> None:
    formula = read(MOE)
    spec = read(MOE, tensors=without(files_of(formula), "layers.1.mlp.experts.3."))
    assert_computed(spec, formula, "lack some of the weights of layer 1")


@pytest.mark.parametrize(
    ("change", "shapes"),
    [
        ({"hidden_size": 2048}, "151936 × 1024 and not 151936 × 2048"),
        ({"intermediate_size": 6144}, "3072 × 1024 and not 6144 × 1024"),
        ({"vocab_size": 32000}, "151936 × 1024 and not 32000 × 1024"),
    ],
    ids=str,
)
def test_files_of_another_model(read: Read, change: Config, shapes: str) -> None:
    config = QWEN | change
    spec = read(config, tensors=files_of(read(QWEN)))
    assert spec.weights == read(config).weights
    assert not is_exact(spec)
    assert "do not fit the configuration" in spec.notes[0]
    assert shapes in spec.notes[0]


# No gaps


def test_all_of_it_is_exact(read: Read) -> None:
    for config in (QWEN, MOE):
        formula = read(config)
        spec = read(config, tensors=files_of(formula))
        assert is_exact(spec)
        assert spec.notes == ()
        assert spec.parameters_total == formula.parameters_total


def packed(tensor: TensorHeader) -> Tensors:
    """Two bits an element, in a form that no scheme here knows."""
    if "_proj" not in tensor.name:
        return (tensor,)
    module = tensor.name.removesuffix(".weight")
    rows, columns = tensor.shape
    scales = header(f"{module}.codebooks", (1, 8, 1, 8))
    return header(f"{module}.codes", (rows, columns // 8, 1), "I16"), scales


def merged_qkv(tensors: Tensors) -> Tensors:
    kept = tuple(t for t in tensors if not any(f".{p}_proj" in t.name for p in "qkv"))
    name = "model.layers.{}.self_attn.qkv_proj.weight"
    return kept + tuple(header(name.format(layer), (4096, 1024)) for layer in range(28))


def stacked(tensors: Tensors) -> Tensors:
    kept = tuple(t for t in tensors if ".experts." not in t.name)
    name = "model.layers.{}.mlp.experts.{}"
    return kept + tuple(
        header(name.format(layer, part), shape)
        for layer in range(2)
        for part, shape in (("gate_up_proj", (4, 256, 1024)), ("down_proj", (4, 1024, 128)))
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda found: (*found, header("lm_head.weight", (151936, 1024))),
        lambda found: (*found, header("model.layers.28.mlp.up_proj.weight", (3072, 1024))),
        lambda found: (*found, header("model.layers.5.extra.weight", (8, 8))),
        lambda found: (*without(found, "embed"), header("embed_tokens.weight", (152064, 1024))),
        lambda found: tuple(part for tensor in found for part in packed(tensor)),
        lambda found: without(found, "layers.27.input_layernorm"),
        merged_qkv,
    ],
    ids=["tied head", "draft module", "unknown", "padded", "packed", "no norm", "merged"],
)
def test_files_in_another_form_are_exact(read: Read, change: Callable[[Tensors], Tensors]) -> None:
    tensors = change(files_of(read(QWEN)))
    spec = read(QWEN, tensors=tensors)
    assert is_exact(spec)
    assert not any(COMPUTED in note for note in spec.notes)


def test_stacked_experts_are_exact(read: Read) -> None:
    formula = read(MOE)
    spec = read(MOE, tensors=stacked(files_of(formula)))
    assert is_exact(spec)
    assert spec.parameters_total == formula.parameters_total


# Many tensors

_SETUP = """
from kvplan.architectures import read_model
from kvplan.models.facts import ModelFacts, TensorHeader
tensors = tuple(
    TensorHeader(name={name}, dtype="F32", shape=({shape},), size=4 * ({shape}))
    for i in range({count})
)
facts = ModelFacts(id="x", source="x", config={config}, tensors=tensors)
"""


@pytest.mark.parametrize(
    ("name", "shape", "count"),
    [
        ('f"tensor{i}.weight"', "i + 1", 56_000),
        ('f"model.layers.{i % 28}.mlp.up_proj.part{i}"', "i + 1", 56_000),
        ('f"model.layers.{i % 28}.mlp.experts.{i // 28}.up_proj.weight"', "1024", 92_000),
    ],
)
def test_time_and_memory_grow_with_the_tensors(name: str, shape: str, count: int) -> None:
    setup = _SETUP.format(name=name, shape=shape, count=count, config=QWEN)
    spent = measured(setup=setup, run="read_model(facts)")
    assert spent.raised is None
    assert spent.seconds < 2
    assert spent.megabytes < 200


def test_a_stated_number_of_parameters_is_kept(read: Read) -> None:
    spec = read(QWEN, checkpoint_parameters=596_049_920, checkpoint_source="the model's card")
    assert spec.checkpoint is not None
    assert spec.checkpoint.parameters == 596_049_920
    assert spec.checkpoint.total_bytes is None
    assert spec.checkpoint.source == "the model's card"
    assert read(QWEN).checkpoint is None
