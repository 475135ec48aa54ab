"""Layers with a recurrent state: the traps of real configurations, one test each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kvplan.errors import InputError, NotModelledError
from kvplan.models.caches import FullCache, IndexerCache, LatentCache, RecurrentCache, StateTensor
from kvplan.models.formats import PLAIN
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout, rank_bytes

Read = Callable[..., ModelSpec]
Config = dict[str, Any]

MAMBA: Config = {"model_type": "mamba", "hidden_size": 64, "num_hidden_layers": 2}
MAMBA2: Config = {
    "model_type": "mamba2",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_heads": 16,
    "head_dim": 8,
    "n_groups": 4,
    "state_size": 32,
}
HYBRID: Config = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
}
SSM: Config = {"mamba_n_heads": 16, "mamba_d_head": 8, "mamba_d_state": 32, "mamba_n_groups": 1}
NEMOTRON: Config = {
    **HYBRID,
    "model_type": "nemotron_h",
    "hybrid_override_pattern": "M*-E",
    "mamba_num_heads": 16,
    "mamba_head_dim": 8,
    "n_routed_experts": 4,
}
QWEN: Config = {
    **HYBRID,
    "model_type": "qwen3_next",
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
KIMI: Config = {
    **HYBRID,
    "model_type": "kimi_linear",
    "linear_attn_config": {
        "kda_layers": [1, 2, 3],
        "full_attn_layers": [4],
        "num_heads": 4,
        "head_dim": 16,
    },
}
BAILING: Config = {
    **HYBRID,
    "model_type": "bailing_hybrid",
    "num_hidden_layers": 5,
    "layer_group_size": 2,
    "head_dim": 16,
    "intermediate_size": 64,
    "moe_intermediate_size": 32,
    "num_experts": 4,
    "num_experts_per_tok": 2,
}
LFM2: Config = {**HYBRID, "model_type": "lfm2", "block_ff_dim": 96, "full_attn_idxs": [1, 3]}
MINIMAX: Config = {
    **HYBRID,
    "model_type": "minimax_text_01",
    "attn_type_list": [0, 0, 0, 1],
    "head_dim": 16,
    "intermediate_size": 64,
}
ZAMBA: Config = {
    **HYBRID,
    "model_type": "zamba2",
    "layers_block_type": ["hybrid", "mamba", "hybrid", "hybrid"],
    "n_mamba_heads": 8,
    "num_mem_blocks": 2,
}


def kinds(spec: ModelSpec) -> str:
    """A layer a letter: full, latent, recurrent, nothing; + for several caches."""
    letters = {FullCache: "f", LatentCache: "l", RecurrentCache: "r", IndexerCache: "i"}
    found = ["+".join(letters[type(cache)] for cache in layer.caches) for layer in spec.layers]
    return " ".join(letter or "-" for letter in found)


def states(spec: ModelSpec, layer: int = 0) -> dict[str, StateTensor]:
    caches = spec.layers[layer].caches
    found = next(cache for cache in caches if isinstance(cache, RecurrentCache))
    return {state.name: state for state in found.states}


def components(spec: ModelSpec) -> Counter[str]:
    counts: Counter[str] = Counter()
    for weight in spec.weights:
        counts[weight.component] += weight.parameters
    return counts


def shapes(spec: ModelSpec, name: str) -> list[tuple[int, ...]]:
    return [weight.shape for weight in spec.weights if weight.name == f"{name}.weight"]


# States


def test_a_convolution_keeps_one_input_fewer_than_it_has_taps(read: Read) -> None:
    assert states(read(MAMBA))["conv"].shape == (128, 3)
    assert states(read({**MAMBA, "conv_kernel": 2}))["conv"].shape == (128, 1)


@pytest.mark.parametrize(
    "config",
    [
        {**MAMBA, "conv_kernel": 1},
        {**MAMBA2, "conv_kernel": 0},
        {**QWEN, "linear_conv_kernel_dim": 1},
        {**LFM2, "conv_L_cache": 1},
    ],
    ids=lambda config: config["model_type"],
)
def test_a_convolution_of_one_tap_is_refused(read: Read, config: Config) -> None:
    with pytest.raises(InputError, match="has to be"):
        read(config)


def test_mamba_states_follow_the_inner_width(read: Read) -> None:
    spec = read({**MAMBA, "intermediate_size": 96, "expand": 16})
    assert states(spec)["conv"].shape == (96, 3)
    assert states(spec)["ssm"].shape == (96, 16)


def test_groups_of_mamba2_are_split_and_a_single_one_is_not(read: Read) -> None:
    groups = states(read(MAMBA2))["conv groups"]
    assert groups.shape == (4, 64, 3)
    assert [groups.size("bfloat16", tp=tp) for tp in (1, 2, 4)] == [1536, 768, 384]
    single = states(read({**MAMBA2, "n_groups": 1}))["conv groups"]
    assert [single.size("bfloat16", tp=tp) for tp in (1, 2, 4)] == [384, 384, 384]


def test_a_state_of_delta_net_is_values_by_keys(read: Read) -> None:
    spec = read({**QWEN, "linear_key_head_dim": 32, "linear_value_head_dim": 16})
    assert states(spec)["recurrent"].shape == (4, 16, 32)
    assert states(spec)["conv"].shape == (2 * 2 * 32 + 4 * 16, 3)


def test_mamba2_heads_make_up_the_inner_width(read: Read) -> None:
    with pytest.raises(InputError, match="16 state heads of 4 don't make up 128 channels"):
        read({**MAMBA2, "head_dim": 4})
    with pytest.raises(InputError, match="16 state heads can't share 3 groups"):
        read({**MAMBA2, "n_groups": 3})


def test_only_some_classes_prescribe_the_type_of_their_state(read: Read) -> None:
    assert states(read(MAMBA))["ssm"].dtype is None
    assert states(read(MAMBA2))["ssm"].dtype is None
    assert states(read(NEMOTRON))["ssm"].dtype == "float32"
    assert states(read(QWEN))["recurrent"].dtype is None
    assert states(read(KIMI))["recurrent"].dtype == "float32"
    assert states(read(KIMI))["conv"].dtype is None


def test_a_file_prescribes_the_type_of_its_state(read: Read) -> None:
    stated = {"mamba_ssm_cache_dtype": "torch.bfloat16"}
    assert states(read({**NEMOTRON, **stated}))["ssm"].dtype == "bfloat16"
    assert states(read({**QWEN, "mamba_ssm_dtype": "float32"}))["recurrent"].dtype == "float32"
    with pytest.raises(InputError, match="mamba_ssm_cache_dtype"):
        read({**NEMOTRON, "mamba_ssm_cache_dtype": "int8"})


# Which layers


def test_kimi_counts_its_layers_from_one(read: Read) -> None:
    assert kinds(read(KIMI)) == "r r r l"


@pytest.mark.parametrize(
    ("linear", "full", "message"),
    [
        ([0, 1, 2], [3], "kda_layers"),
        ([1, 2], [4], "don't name each of 4 layers once"),
        ([1, 2, 3], [3, 4], "don't name each of 4 layers once"),
        ([1, 2, 3], [5], "full_attn_layers"),
    ],
)
def test_kimi_names_every_layer_once(
    read: Read, linear: list[int], full: list[int], message: str
) -> None:
    stated = {**KIMI["linear_attn_config"], "kda_layers": linear, "full_attn_layers": full}
    with pytest.raises(InputError, match=message):
        read({**KIMI, "linear_attn_config": stated})


def test_a_nemotron_pattern_is_a_block_a_letter(read: Read) -> None:
    spec = read(NEMOTRON)
    assert kinds(spec) == "r f - -"
    assert components(spec)["experts"] == 4 * 2 * 64 * 7688
    assert components(spec)["mlp"] == 2 * 64 * 21_504
    named = {**NEMOTRON, "layers_block_type": ["mamba", "attention", "mlp", "moe"]}
    assert read({**named, "hybrid_override_pattern": None}).layers == spec.layers


@pytest.mark.parametrize("pattern", ["", "MX", "m*"])
def test_a_nemotron_pattern_has_known_letters(read: Read, pattern: str) -> None:
    with pytest.raises(InputError, match="hybrid_override_pattern"):
        read({**NEMOTRON, "hybrid_override_pattern": pattern})


def test_attention_of_qwen3_next_is_every_fourth_layer(read: Read) -> None:
    assert kinds(read(QWEN)) == "r r r f"
    assert kinds(read({**QWEN, "full_attention_interval": 2})) == "r f r f"
    stated = ["full_attention"] + ["linear_attention"] * 3
    assert kinds(read({**QWEN, "layer_types": stated})) == "f r r r"


def test_a_kind_of_layer_that_a_family_lacks_is_refused(read: Read) -> None:
    with pytest.raises(NotModelledError, match="'sliding_attention'"):
        read({**QWEN, "layer_types": ["sliding_attention"] * 4})
    with pytest.raises(InputError, match="lists 3 layers of 4"):
        read({**QWEN, "layer_types": ["full_attention"] * 3})


def test_a_jamba_layer_attends_at_an_offset_in_each_period(read: Read) -> None:
    jamba = {**HYBRID, "model_type": "jamba", "attn_layer_period": 2, "attn_layer_offset": 1}
    assert kinds(read(jamba)) == "r f r f"
    with pytest.raises(InputError, match="offset` 2 has to be below the period 2"):
        read({**jamba, "attn_layer_offset": 2})


def test_jamba_with_one_expert_has_none(read: Read) -> None:
    spec = read({**HYBRID, "model_type": "jamba", "num_experts": 1})
    assert spec.experts == 0
    assert components(spec)["mlp"] == 4 * 3 * 64 * 14_336


def test_bamba_lists_its_attention_layers(read: Read) -> None:
    bamba = {**HYBRID, **SSM, "model_type": "bamba"}
    assert kinds(read({**bamba, "attn_layer_indices": [2]})) == "r r f r"
    assert kinds(read(bamba)) == "r r r r"


def test_falcon_h1_runs_both_in_every_layer(read: Read) -> None:
    falcon = {**HYBRID, **SSM, "model_type": "falcon_h1"}
    assert kinds(read({**falcon, "mamba_d_ssm": 128})) == "f+r f+r f+r f+r"
    # Absent, the width is that of the heads; null, a multiple of the hidden size.
    assert states(read(falcon))["conv"].shape == (128, 3)
    wide = {**falcon, "mamba_d_ssm": None, "mamba_expand": 4, "mamba_n_heads": 32}
    assert states(read(wide))["conv"].shape == (256, 3)
    with pytest.raises(InputError, match="don't make up 128 channels"):
        read({**wide, "mamba_d_ssm": 128})


def test_granite_without_mamba_layers_needs_no_mamba_sizes(read: Read) -> None:
    granite = {**HYBRID, "model_type": "granitemoehybrid", "num_local_experts": 0}
    spec = read({**granite, "layer_types": ["attention"] * 4, "mamba_n_heads": 3})
    assert kinds(spec) == "f f f f"
    assert components(spec)["mlp"] == 4 * 3 * 64 * 1024
    assert (spec.experts, spec.experts_per_token) == (0, 0)
    assert kinds(read({**granite, **SSM})) == "r r r r"


def test_old_and_new_lfm2_files_list_attention_differently(read: Read) -> None:
    assert kinds(read(LFM2)) == "r f r f"
    named = ["conv", "full_attention"] * 2
    assert read({**LFM2, "full_attn_idxs": None, "layer_types": named}).layers == read(LFM2).layers


def test_a_short_olmo_hybrid_ends_with_attention(read: Read) -> None:
    olmo = {**HYBRID, "model_type": "olmo_hybrid"}
    assert kinds(read(olmo)) == "r r r f"
    assert kinds(read({**olmo, "num_hidden_layers": 2})) == "r f"
    # Keys three quarters as wide as the model, values twice as wide as keys.
    assert states(read(olmo))["recurrent"].shape == (4, 24, 12)
    assert states(read({**olmo, "linear_key_head_dim": 8}))["recurrent"].shape == (4, 16, 8)
    with pytest.raises(InputError, match="A key head comes out 0 wide"):
        read({**olmo, "linear_num_key_heads": 64})


def test_a_group_of_bailing_ends_with_latent_attention(read: Read) -> None:
    # The fifth layer fills no group.
    assert kinds(read(BAILING)) == "r l r l l"
    assert kinds(read({**BAILING, "layer_group_size": 5})) == "r r r r l"


def test_the_class_of_bailing_decides_what_is_linear(read: Read) -> None:
    assert set(states(read(BAILING))) == {"conv", "recurrent"}
    lightning = read({**BAILING, "architectures": ["BailingMoeV2_5ForCausalLM"]})
    assert {name: state.shape for name, state in states(lightning).items()} == {
        "linear": (4, 16, 16)
    }
    with pytest.raises(NotModelledError, match="gates in two steps"):
        read({**BAILING, "no_kda_lora": False})


def test_minimax_states_every_layer(read: Read) -> None:
    assert kinds(read(MINIMAX)) == "r r r f"
    with pytest.raises(InputError, match="attn_type_list"):
        read({**MINIMAX, "attn_type_list": None})
    with pytest.raises(InputError, match="lists 2 layers of 4"):
        read({**MINIMAX, "attn_type_list": [0, 1]})
    with pytest.raises(NotModelledError, match="shared experts"):
        read({**MINIMAX, "shared_intermediate_size": 64})


def test_minimax_m3_keeps_16_bit_index_keys_where_it_picks(read: Read) -> None:
    stated = {"sparse_num_index_heads": 2, "sparse_index_dim": 32, "sparse_attention_freq": [0, 1]}
    config = {**HYBRID, "model_type": "minimax_m3", "num_hidden_layers": 2}
    spec = read({**config, "sparse_attention_config": stated})
    assert kinds(spec) == "f f+i"
    keys = spec.layers[1].caches[1]
    assert isinstance(keys, IndexerCache)
    assert (keys.head_dim, keys.element_bytes, keys.scale_block) == (32, 2, None)
    with pytest.raises(InputError, match="lists 2 layers of 3"):
        read({**config, "num_hidden_layers": 3, "sparse_attention_config": stated})


def test_every_run_of_a_shared_block_keeps_its_own_keys(read: Read) -> None:
    spec = read(ZAMBA)
    assert kinds(spec) == "f+r r f+r f+r"
    # Two blocks, stored where they run first; an adapter for each of the three runs.
    shared = [weight for weight in spec.weights if weight.name.startswith("shared_transformer")]
    assert {weight.layers for weight in shared if "adapter" not in weight.name} == {(0, 2)}
    adapters = [weight for weight in shared if "adapter_list" in weight.name]
    assert [weight.layers for weight in adapters[::2]] == [(0,), (2,), (0,)]


def test_zamba2_of_other_depth_lists_its_layers(read: Read) -> None:
    with pytest.raises(InputError, match="layers_block_type"):
        read({**ZAMBA, "layers_block_type": None})


# Weights


def test_a_draft_module_is_counted_only_where_it_is_stated(read: Read) -> None:
    assert components(read(QWEN))["mtp"] == 0
    drafted = read({**QWEN, "mtp_num_hidden_layers": 1})
    assert components(drafted)["mtp"] > 0
    assert drafted.parameters_total == read(QWEN).parameters_total
    assert drafted.layers == read(QWEN).layers
    assert components(read(NEMOTRON))["mtp"] == 0
    assert components(read({**NEMOTRON, "num_nextn_predict_layers": 1}))["mtp"] > 0


def test_mamba_splits_its_channels_over_ranks(read: Read) -> None:
    sharding = {weight.name: weight.sharding for weight in read(MAMBA).weights}
    assert sharding["mixer.x_proj.weight"] == sharding["mixer.out_proj.weight"] == "row"
    names = ("in_proj.weight[x]", "conv1d.weight", "dt_proj.weight", "dt_proj.bias", "A_log", "D")
    assert {sharding[f"mixer.{name}"] for name in names} == {"column"}


def test_mamba2_copies_a_group_that_ranks_share(read: Read) -> None:
    def rows(groups: int, tp: int) -> int:
        spec = read({**MAMBA2, "n_groups": groups})
        chosen = tuple(w for w in spec.weights if w.name == "mixer.in_proj.weight[b]")
        layout = RankLayout(tp=tp, layers=(0, 2))
        sizes = rank_bytes(chosen, PLAIN["bfloat16"], layout, tied=False)
        return sizes["recurrent"] // (2 * 2 * 64)

    assert [rows(4, tp) for tp in (1, 2, 4)] == [4 * 32, 2 * 32, 32]
    assert [rows(1, tp) for tp in (1, 2, 4)] == [32, 32, 32]


def test_the_query_of_qwen3_next_makes_a_gate_too(read: Read) -> None:
    spec = read({**QWEN, "head_dim": 32})
    assert shapes(spec, "self_attn.q_proj") == [(2 * 4 * 32, 64)]
    assert shapes(spec, "self_attn.o_proj") == [(64, 4 * 32)]


def test_qwen3_5_keeps_the_gate_in_a_matrix_of_its_own(read: Read) -> None:
    fused, split = read(QWEN), read({**QWEN, "model_type": "qwen3_5_moe_text"})
    assert shapes(fused, "linear_attn.in_proj_qkvz") == [(2 * (2 * 128 + 4 * 128), 64)]
    assert shapes(split, "linear_attn.in_proj_z") == [(4 * 128, 64)]
    assert components(fused)["recurrent"] == components(split)["recurrent"]
    assert fused.layers == split.layers


def test_dense_layers_of_qwen3_next_are_dense(read: Read) -> None:
    spec = read({**QWEN, "mlp_only_layers": [0], "intermediate_size": 128})
    assert components(spec)["mlp"] == 3 * 64 * 128
    dense = read({**QWEN, "model_type": "qwen3_5_text", "intermediate_size": 128})
    assert components(dense)["mlp"] == 4 * 3 * 64 * 128
    assert dense.experts == 0


def test_value_heads_share_key_heads_evenly(read: Read) -> None:
    with pytest.raises(InputError, match="4 value heads can't share 3 key heads"):
        read({**QWEN, "linear_num_key_heads": 3})


def test_experts_of_nemotron_may_work_on_a_narrower_state(read: Read) -> None:
    plain, narrow = read(NEMOTRON), read({**NEMOTRON, "moe_latent_size": 16})
    assert components(narrow)["experts"] * 4 == components(plain)["experts"]
    ways = [weight for weight in narrow.weights if "latent" in weight.name]
    assert [(weight.shape, weight.sharding) for weight in ways] == [
        ((16, 64), "replicated"),
        ((64, 16), "replicated"),
    ]


def test_kimi_k3_differs_from_kimi_linear_by_its_flags(read: Read) -> None:
    flags = {"routed_expert_hidden_size": 32, "mla_use_output_gate": True}
    plain, third = read(KIMI), read({**KIMI, **flags})
    assert components(third)["experts"] * 2 == components(plain)["experts"]
    assert shapes(third, "self_attn.g_proj") == [(4 * 128, 64)]
    assert shapes(plain, "self_attn.g_proj") == []
    assert third.layers == plain.layers


def test_lfm2_takes_two_thirds_of_the_width_unless_told_not_to(read: Read) -> None:
    # 2/3 of 96, rounded up to 256.
    assert read(LFM2).intermediate_size == 256
    assert read({**LFM2, "block_multiple_of": 16}).intermediate_size == 64
    assert read({**LFM2, "block_auto_adjust_ff_dim": False}).intermediate_size == 96


def test_routers_of_minimax_are_stored_in_float32(read: Read) -> None:
    spec = read(MINIMAX)
    formats = {weight.format.bits for weight in spec.weights if weight.format is not None}
    assert formats == {32}
    assert {weight.component for weight in spec.weights if weight.format} == {"router"}


# Nothing but a state


RWKV: Config = {"hidden_size": 128, "num_hidden_layers": 2}


@pytest.mark.parametrize(
    ("model_type", "shape"),
    [("rwkv", (128, 3)), ("rwkv5", (2, 64, 64)), ("rwkv6", (2, 64, 64)), ("rwkv7", (2, 64, 64))],
)
def test_rwkv_keeps_a_state_and_the_last_token(
    read: Read, model_type: str, shape: tuple[int, ...]
) -> None:
    spec = read({**RWKV, "model_type": model_type})
    cache = spec.layers[0].caches[0]
    assert isinstance(cache, RecurrentCache)
    assert [(state.name, state.shape, state.dtype) for state in cache.states] == [
        ("recurrent", shape, "float32"),
        ("shift", (128,), None),
        ("shift", (128,), None),
    ]
    elements = 4 * 128 * 64 if len(shape) == 3 else 4 * 128 * 3
    assert cache.fixed_bytes("bfloat16", tp=1) == elements + 2 * 128 * 2
    assert components(spec)["attention"] == 0


def test_the_first_layer_of_rwkv7_mixes_no_values(read: Read) -> None:
    spec = read({**RWKV, "model_type": "rwkv7"})
    layers = {weight.name: weight.layers for weight in spec.weights}
    assert layers["attn.v_lora.lora.0.weight"] == (1,)
    assert layers["attn.w_lora.lora.0.weight"] == (0, 1)
    assert layers["pre_norm.weight"] == (0,)


@pytest.mark.parametrize("stated", [{"attn": {"layers": [0]}}, {"value_dim": [128, 256]}])
def test_rwkv7_hybrids_are_refused(read: Read, stated: Config) -> None:
    assert read({**RWKV, "model_type": "rwkv7", "value_dim": [128, 128]}).layers
    with pytest.raises(NotModelledError, match="RWKV 7"):
        read({**RWKV, "model_type": "rwkv7", **stated})


def test_gla_keeps_a_matrix_a_head_and_what_it_convolves(read: Read) -> None:
    gla = {**RWKV, "model_type": "gla", "num_heads": 4}
    assert {name: state.shape for name, state in states(read(gla)).items()} == {
        "recurrent": (4, 16, 32)
    }
    cache = read({**gla, "use_short_conv": True}).layers[0].caches[0]
    assert isinstance(cache, RecurrentCache)
    assert [state.shape for state in cache.states[1:]] == [(64, 3), (64, 3), (128, 3)]
    with pytest.raises(NotModelledError, match="GLA with attention"):
        read({**gla, "attn": {"layers": [1]}})


def test_a_model_without_attention_has_no_context_of_its_own(read: Read) -> None:
    assert read(MAMBA).max_context is None
    assert read({**MAMBA, "max_position_embeddings": 4096}).max_context == 4096


def test_a_file_without_a_type_is_refused_with_its_class(read: Read) -> None:
    with pytest.raises(InputError, match="neither `model_type` nor `architectures`"):
        read({"num_layers": 54, "hidden_size": 2560, "state_size": 64})
