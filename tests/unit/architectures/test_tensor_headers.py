"""Exact inventories from tensor headers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kvplan.architectures.tensor_names import parse_name
from kvplan.models.facts import TensorHeader
from kvplan.models.formats import PLAIN
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout, Weight, rank_bytes, stored_bytes

Read = Callable[..., ModelSpec]
Config = dict[str, Any]

SIZES = {"BF16": 2, "F16": 2, "F32": 4, "I32": 4, "U8": 1, "F8_E4M3": 1, "I64": 8}


def header(name: str, shape: tuple[int, ...], dtype: str = "BF16") -> TensorHeader:
    size = math.prod(shape) * SIZES[dtype]
    return TensorHeader(name=name, dtype=dtype, shape=shape, size=size)


def merged(weights: tuple[Weight, ...]) -> Iterator[Weight]:
    """The weights with the parts of fused matrices put together again."""
    parts: defaultdict[tuple[str, str, tuple[int, ...]], list[Weight]] = defaultdict(list)
    for weight in weights:
        name = weight.name.partition("[")[0]
        parts[name, weight.component, weight.layers].append(weight)
    for (name, *_), found in parts.items():
        shape = (sum(part.shape[0] for part in found), *found[0].shape[1:])
        yield found[0].model_copy(update={"name": name, "shape": shape})


def tensors_of(spec: ModelSpec, *, prefix: str = "model.layers") -> tuple[TensorHeader, ...]:
    """What the files of a model would state, were they written as its inventory says."""
    found = []
    for weight in merged(spec.weights):
        if weight.place != "layers":
            found.append(header(f"model.{weight.name}", weight.shape))
            continue
        for layer in weight.layers:
            for copy in range(weight.copies):
                name = weight.name.replace("experts.", f"experts.{copy}.", weight.copies > 1)
                found.append(header(f"{prefix}.{layer}.{name}", weight.shape))
    return tuple(found)


MOE: Config = {
    "model_type": "qwen3_moe",
    "hidden_size": 256,
    "intermediate_size": 512,
    "moe_intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "mlp_only_layers": [0],
    "vocab_size": 1000,
    "torch_dtype": "bfloat16",
}
COMMON = {**MOE, "num_local_experts": 4, "max_position_embeddings": 100}
FAMILIES = {
    "qwen3_moe": "model.layers",
    "llama": "model.layers",
    "mixtral": "model.layers",
    "phi": "model.layers",
    "phi3": "model.layers",
    "gemma2": "model.layers",
    "starcoder2": "model.layers",
    "gpt_neox": "gpt_neox.layers",
}


def by_component(spec: ModelSpec) -> dict[str, int]:
    return dict(stored_bytes(spec.weights, PLAIN["bfloat16"]))


@pytest.mark.parametrize(("model_type", "prefix"), FAMILIES.items())
def test_headers_give_the_inventory_back(read: Read, model_type: str, prefix: str) -> None:
    config = {**COMMON, "model_type": model_type}
    formula = read(config)
    exact = read(config, tensors=tensors_of(formula, prefix=prefix), checkpoint_source="headers")
    assert by_component(exact) == by_component(formula)
    assert exact.parameters_total == formula.parameters_total
    assert exact.parameters_active == formula.parameters_active
    assert exact.notes == ()
    assert exact.checkpoint is not None
    assert exact.checkpoint.total_bytes == 2 * formula.parameters_total
    assert exact.checkpoint.bytes_by_dtype == {"BF16": 2 * formula.parameters_total}
    for tp in (1, 2, 4):
        layout = RankLayout(tp=tp, layers=(0, 4))
        parts = [
            rank_bytes(spec.weights, PLAIN["bfloat16"], layout, tied=spec.tied_embeddings)
            for spec in (formula, exact)
        ]
        assert parts[0] == parts[1]


def test_a_fused_matrix_shards_by_its_parts(read: Read) -> None:
    config = {**COMMON, "model_type": "phi3"}
    exact = read(config, tensors=tensors_of(read(config)))
    parts = [w for w in exact.weights if w.name == "self_attn.qkv_proj.weight"]
    assert [(part.shape[0], part.sharding) for part in parts] == [
        (512, "column"),
        (128, "kv_heads"),
        (128, "kv_heads"),
    ]


def test_gpt2_stores_inputs_first_and_masks(read_some: Read) -> None:
    config = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 1, "vocab_size": 100}
    tensors = (
        header("h.0.attn.c_attn.weight", (64, 192)),
        header("h.0.attn.bias", (1, 1, 1024, 1024), "F32"),
        header("wte.weight", (100, 64)),
    )
    spec = read_some({**config, "dtype": "bfloat16"}, tensors=tensors)
    assert by_component(spec) == {"attention": 2 * 64 * 192, "embedding": 2 * 6400}
    assert {w.shape for w in spec.weights if w.component == "attention"} == {(64, 64)}
    assert spec.checkpoint is not None
    assert spec.checkpoint.total_bytes == sum(tensor.size for tensor in tensors)


def awq(module: str, rows: int, columns: int) -> tuple[TensorHeader, ...]:
    return (
        header(f"{module}.qweight", (columns, rows // 8), "I32"),
        header(f"{module}.qzeros", (columns // 128, rows // 8), "I32"),
        header(f"{module}.scales", (columns // 128, rows), "F16"),
    )


def test_packed_tensors_are_bytes_not_elements(read: Read) -> None:
    config = {**COMMON, "model_type": "llama", "quantization_config": {"quant_method": "awq"}}
    formula = read(config)
    tensors: tuple[TensorHeader, ...] = ()
    for tensor in tensors_of(formula):
        quantized = "_proj" in tensor.name
        module = tensor.name.removesuffix(".weight")
        tensors += awq(module, *tensor.shape) if quantized else (tensor,)
    exact = read(config, tensors=tensors)
    assert exact.parameters_total == formula.parameters_total
    assert by_component(exact) == by_component(formula)
    layout = RankLayout(tp=2, layers=(0, 4))
    tied = formula.tied_embeddings
    assert rank_bytes(exact.weights, PLAIN["bfloat16"], layout, tied=tied) == rank_bytes(
        formula.weights, PLAIN["bfloat16"], layout, tied=tied
    )


def test_block_scales_are_no_parameters(read_some: Read) -> None:
    config = {**COMMON, "model_type": "llama"}
    name = "model.layers.0.mlp.down_proj"
    tensors = (
        header(f"{name}.weight", (256, 512), "F8_E4M3"),
        header(f"{name}.weight_scale_inv", (2, 4), "F32"),
        header("model.layers.0.self_attn.k_proj.k_scale", (), "F32"),
    )
    spec = read_some(config, tensors=tensors)
    assert spec.parameters_total == 256 * 512
    assert by_component(spec) == {"mlp": 256 * 512 + 32, "attention": 4}
    scale = next(w for w in spec.weights if w.name.endswith("k_scale"))
    assert scale.sharding == "replicated"


def test_scales_that_heads_do_not_divide_are_on_every_rank(read_some: Read) -> None:
    """One block of 128 rows covers two KV heads of 64: half a row of scales is no row."""
    name = "model.layers.0.self_attn.k_proj.weight_scale_inv"
    spec = read_some({**COMMON, "model_type": "llama"}, tensors=(header(name, (1, 2), "F32"),))
    layout = RankLayout(tp=2, layers=(0, 4))
    assert rank_bytes(spec.weights, PLAIN["bfloat16"], layout, tied=False) == {"attention": 8}


def test_nvfp4_weights_are_two_elements_a_byte(read_some: Read) -> None:
    name = "model.layers.0.mlp.down_proj"
    tensors = (
        header(f"{name}.weight", (256, 256), "U8"),
        header(f"{name}.weight_scale", (256, 32), "F8_E4M3"),
        header(f"{name}.weight_scale_2", (), "F32"),
        header(f"{name}.input_scale", (), "F32"),
    )
    spec = read_some({**COMMON, "model_type": "llama"}, tensors=tensors)
    assert spec.parameters_total == 256 * 512
    assert by_component(spec) == {"mlp": 256 * 256 + 256 * 32 + 8}


def test_gpt_oss_experts_in_one_tensor(read_some: Read) -> None:
    config = {**COMMON, "model_type": "gpt_oss", "sliding_window": 16}
    name = "model.layers.0.mlp.experts"
    tensors = (
        header(f"{name}.gate_up_proj_blocks", (4, 1024, 8, 16), "U8"),
        header(f"{name}.gate_up_proj_scales", (4, 1024, 8), "U8"),
        header(f"{name}.gate_up_proj_bias", (4, 1024)),
        header(f"{name}.down_proj", (4, 512, 256)),
        header("model.layers.0.self_attn.sinks", (8,)),
    )
    spec = read_some(config, tensors=tensors)
    experts = {w.name: w for w in spec.weights if w.component == "experts"}
    blocks = experts["mlp.experts.gate_up_proj.weight_packed"]
    assert (blocks.copies, blocks.active_copies, blocks.parameters) == (4, 2, 4 * 1024 * 256)
    assert experts["mlp.experts.gate_up_proj.weight_scale"].parameters == 0
    assert experts["mlp.experts.gate_up_proj.bias"].parameters == 4 * 1024
    assert experts["mlp.experts.down_proj.weight"].shape == (256, 512)
    assert by_component(spec)["experts"] == sum(t.size for t in tensors) - 16


def test_layers_beyond_the_last_are_draft_modules(read_some: Read) -> None:
    config = {**COMMON, "model_type": "deepseek_v3", "n_routed_experts": 4, "q_lora_rank": 64}
    tensors = (
        header("model.layers.3.input_layernorm.weight", (256,)),
        header("model.layers.4.input_layernorm.weight", (256,)),
        header("model.layers.4.eh_proj.weight", (256, 512)),
        header("model.layers.4.embed_tokens.weight", (1000, 256)),
        header("model.layers.4.mlp.experts.0.up_proj.weight", (2048, 256)),
        header("model.layers.4.mlp.experts.1.up_proj.weight", (2048, 256)),
        header("model.layers.3.mlp.gate.e_score_correction_bias", (4,), "F32"),
    )
    spec = read_some(config, tensors=tensors)
    assert by_component(spec) == {
        "norms": 512,
        "mtp": 512 + 2 * 256 * 512 + 2 * 1000 * 256 + 2 * 2 * 2048 * 256,
        "router": 16,
    }
    assert spec.parameters_total == 256
    assert spec.notes == ()
    loaded = rank_bytes(spec.weights, PLAIN["bfloat16"], RankLayout(layers=(0, 4)), tied=False)
    assert "mtp" not in loaded


@pytest.mark.parametrize("branch", ["mtp.0.", "model.mtp.layers.0."])
def test_draft_modules_in_a_branch_of_their_own_are_no_layers(read_some: Read, branch: str) -> None:
    """They count from 0 again, and would add to the decoder's first layer."""
    config = {**COMMON, "model_type": "deepseek_v3", "n_routed_experts": 4, "q_lora_rank": 64}
    tensors = (
        header("model.layers.0.input_layernorm.weight", (256,)),
        header(f"{branch}input_layernorm.weight", (256,)),
        header("mtp.norm.weight", (256,)),
    )
    spec = read_some(config, tensors=tensors)
    assert by_component(spec) == {"norms": 512, "mtp": 1024}
    loaded = rank_bytes(spec.weights, PLAIN["bfloat16"], RankLayout(layers=(0, 4)), tied=False)
    assert loaded == {"norms": 512}


def test_a_tied_head_that_is_stored_is_not_loaded(read_some: Read) -> None:
    """Falcon and many fine-tunes keep both copies on disk."""
    config = {**COMMON, "model_type": "llama", "tie_word_embeddings": True}
    tensors = (
        header("model.embed_tokens.weight", (1000, 256)),
        header("lm_head.weight", (1000, 256)),
    )
    spec = read_some(config, tensors=tensors)
    assert by_component(spec) == {"embedding": 512_000}
    assert spec.checkpoint is not None
    assert spec.checkpoint.total_bytes == 1_024_000
    assert (
        read_some({**config, "tie_word_embeddings": False}, tensors=tensors).parameters_total
        == 512_000
    )


def test_a_tower_is_no_layer_of_the_decoder(read_some: Read) -> None:
    text = {"model_type": "gemma3_text", "hidden_size": 256, "sliding_window": 64}
    vision = {"hidden_size": 128, "intermediate_size": 64, "vision_use_head": False}
    config = {"model_type": "gemma3", "text_config": text, "vision_config": vision}
    tower = "vision_tower.vision_model"
    tensors = (
        header(f"{tower}.encoder.layers.0.self_attn.q_proj.weight", (128, 128)),
        header(f"{tower}.encoder.layers.1.self_attn.q_proj.weight", (128, 128)),
        header(f"{tower}.embeddings.patch_embedding.weight", (128, 3, 16, 16)),
        header("multi_modal_projector.mm_input_projection_weight", (128, 256)),
        header("multi_modal_projector.mm_soft_emb_norm.weight", (128,)),
        header("language_model.model.layers.0.self_attn.q_norm.weight", (256,)),
    )
    spec = read_some(config, tensors=tensors)
    assert by_component(spec) == {
        "vision": sum(tensor.size for tensor in tensors) - 512,
        "attention": 512,
    }
    assert spec.notes == ()
    projection = next(w for w in spec.weights if w.name == "self_attn.q_proj.weight")
    assert (projection.place, projection.copies, projection.sharding) == ("tower", 2, "column")


def test_unknown_tensors_are_counted_and_named(read_some: Read) -> None:
    names = [f"model.layers.0.extra_{index}.weight" for index in range(7)]
    spec = read_some(
        {**COMMON, "model_type": "llama"}, tensors=tuple(header(n, (8, 8)) for n in names)
    )
    assert by_component(spec) == {"other": 7 * 128}
    assert spec.parameters_total == 7 * 64
    assert names[0] in spec.notes[0]
    assert "and 2 more" in spec.notes[0]


def test_odd_headers_do_not_break(read_some: Read) -> None:
    tensors = (
        TensorHeader(name="", dtype="F4", shape=(3,), size=2),
        TensorHeader(name="model.layers.0.self_attn.k_proj.weight", dtype="X", shape=(), size=5),
        TensorHeader(name="empty", dtype="F32", shape=(0, 4), size=0),
        TensorHeader(name="model.layers.99999.mlp.up_proj.weight", dtype="F32", shape=(1,), size=4),
    )
    spec = read_some({**COMMON, "model_type": "llama"}, tensors=tensors)
    assert sum(by_component(spec).values()) == 11


def test_files_of_another_size_are_noted(read: Read) -> None:
    config = {**COMMON, "model_type": "llama"}
    size = 2 * read(config).parameters_total
    assert read(config, checkpoint_bytes=size).notes == ()
    assert read(config, checkpoint_bytes=int(size * 1.004)).notes == ()
    (note,) = read(config, checkpoint_bytes=2 * size).notes
    assert "50.0% less than the files hold" in note
    spec = read(config, checkpoint_bytes=size, checkpoint_source="index")
    assert spec.checkpoint is not None
    assert (spec.checkpoint.total_bytes, spec.checkpoint.source) == (size, "index")


@pytest.mark.parametrize(
    ("name", "module", "kind", "layer"),
    [
        ("lm_head.weight", "lm_head", "weight", None),
        ("model.layers.7.mlp.experts.3.up_proj.weight", "mlp.experts.up_proj", "weight", 7),
        ("transformer.h.0.self_attention.dense.weight", "self_attention.dense", "weight", 0),
        ("model.layers.2.mlp.experts.down_proj", "mlp.experts.down_proj", "weight", 2),
        ("model.layers.2.mlp.experts.down_proj_bias", "mlp.experts.down_proj", "bias", 2),
        (
            "model.layers.2.mlp.experts.down_proj_blocks",
            "mlp.experts.down_proj",
            "weight_packed",
            2,
        ),
    ],
)
def test_names_are_taken_apart(name: str, module: str, kind: str, layer: int | None) -> None:
    parsed = parse_name(name)
    assert (parsed.module, parsed.kind, parsed.layer) == (module, kind, layer)
    assert parsed.loaded
    assert not parsed.tower


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.self_attn.rotary_emb.inv_freq",
        "h.0.attn.bias",
        "gpt_neox.layers.0.attention.masked_bias",
    ],
)
def test_buffers_are_not_loaded(name: str) -> None:
    assert not parse_name(name).loaded


HYBRIDS: tuple[Config, ...] = (
    {"model_type": "bailing_hybrid", "layer_group_size": 2, "num_shared_experts": 1},
    {"model_type": "falcon_h1", "mamba_n_heads": 8, "mamba_d_head": 64, "mamba_n_groups": 4},
    {"model_type": "granitemoehybrid", "layer_types": ["mamba", "attention"] * 2},
    {"model_type": "jamba", "attn_layer_period": 2, "attn_layer_offset": 1},
    {
        "model_type": "kimi_linear",
        "linear_attn_config": {
            "kda_layers": [1, 2, 4],
            "full_attn_layers": [3],
            "num_heads": 8,
            "head_dim": 128,
        },
    },
    {"model_type": "lfm2_moe", "layer_types": ["conv", "full_attention"] * 2},
    {"model_type": "mamba2", "num_heads": 8, "head_dim": 64, "n_groups": 4},
    {"model_type": "nemotron_h", "hybrid_override_pattern": "M*-E", "mamba_num_heads": 8},
    {"model_type": "olmo_hybrid"},
    {"model_type": "qwen3_next", "linear_num_key_heads": 4, "linear_num_value_heads": 8},
    {
        "model_type": "zamba2",
        "layers_block_type": ["mamba", "hybrid"] * 2,
        "n_mamba_heads": 8,
        "num_mem_blocks": 2,
    },
)


@pytest.mark.parametrize("config", HYBRIDS, ids=lambda config: config["model_type"])
def test_headers_of_hybrids_give_the_inventory_back(read: Read, config: Config) -> None:
    """Layers of two kinds may use one name for different matrices."""
    formula = read({**COMMON, "num_local_experts": 0, **config})
    exact = read({**COMMON, "num_local_experts": 0, **config}, tensors=tensors_of(formula))
    assert by_component(exact) == by_component(formula)
    assert exact.parameters_total == formula.parameters_total
    assert exact.parameters_active == formula.parameters_active
    assert exact.notes == ()
    for tp in (1, 2, 4, 8):
        layout = RankLayout(tp=tp, layers=(0, 4))
        parts = [
            rank_bytes(spec.weights, PLAIN["bfloat16"], layout, tied=spec.tied_embeddings)
            for spec in (formula, exact)
        ]
        assert parts[0] == parts[1]


def test_a_draft_branch_is_no_layer_of_the_decoder(read_some: Read) -> None:
    """Qwen 3.5 and Nemotron 3 count the layers of the module from 0 again."""
    config = {**COMMON, "model_type": "qwen3_next"}
    tensors = (
        header("model.layers.3.self_attn.o_proj.weight", (256, 512)),
        header("mtp.layers.0.self_attn.o_proj.weight", (256, 512)),
        header("mtp.fc.weight", (256, 512)),
        header("mtp.norm.weight", (256,)),
    )
    spec = read_some(config, tensors=tensors)
    assert by_component(spec) == {"attention": 262_144, "mtp": 2 * 262_144 + 512}
    assert spec.parameters_total == 256 * 512
    assert spec.notes == ()


def test_both_halves_of_a_gate_in_one_tensor(read_some: Read) -> None:
    """Qwen 3.5 keeps all experts of a layer, gate above up, in one tensor."""
    config = {**COMMON, "model_type": "qwen3_5_moe_text", "shared_expert_intermediate_size": 128}
    tensors = (
        header("model.language_model.layers.0.mlp.experts.gate_up_proj", (4, 256, 256)),
        header("model.language_model.layers.0.mlp.experts.down_proj", (4, 256, 128)),
        header("model.language_model.layers.0.mlp.shared_expert.gate_up_proj.weight", (256, 256)),
    )
    spec = read_some(config, tensors=tensors)
    found = [(weight.component, weight.shape, weight.copies) for weight in spec.weights]
    assert found == [
        ("experts", (128, 256), 4),
        ("experts", (128, 256), 4),
        ("experts", (256, 128), 4),
        ("shared_experts", (128, 256), 1),
        ("shared_experts", (128, 256), 1),
    ]
    assert spec.parameters_active == 2 * 3 * 256 * 128 + 2 * 128 * 256
    assert spec.notes == ()
