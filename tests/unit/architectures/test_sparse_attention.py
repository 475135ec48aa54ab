"""DeepSeek V3.2 and V4, GLM 5, MiniCPM 3: what each layer keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from family_configs import DEEPSEEK

from kvplan.errors import InputError, NotModelledError
from kvplan.models.caches import CompressedCache, CompressorCache, IndexerCache, LatentCache
from kvplan.models.formats import FP8_KV, PLAIN, plain_kv
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import stored_bytes

Read = Callable[..., ModelSpec]
Config = dict[str, Any]

V4: Config = {"model_type": "deepseek_v4", "num_hidden_layers": 3, "compress_ratios": [0, 4, 128]}
BF16 = plain_kv("bfloat16")
WINDOW = CompressedCache(latent_dim=448, rope_dim=64, cell_bytes=584, window=128)


def kinds(spec: ModelSpec) -> list[list[str]]:
    return [[cache.kind for cache in layer.caches] for layer in spec.layers]


# The indexer


def test_the_indexer_stands_before_the_attention_it_serves(read: Read) -> None:
    spec = read({**DEEPSEEK, "model_type": "deepseek_v32"})
    assert kinds(spec) == [["indexer", "latent"]] * 5
    index, latent = spec.layers[0].caches
    assert index.token_bytes(BF16, tp=8) == 128 + 4
    assert latent.token_bytes(BF16, tp=8) == 2 * (512 + 64)


@pytest.mark.parametrize(
    ("stated", "indexed"),
    [
        ({}, "FFFFF"),
        ({"indexer_types": ["full", "shared", "full", "shared", "shared"]}, "FSFSS"),
        ({"index_topk_pattern": "FSSSF"}, "FSSSF"),
        ({"index_topk_freq": 2, "index_skip_topk_offset": 3}, "FFFSF"),
        ({"index_topk_freq": 4}, "FFSSS"),
    ],
)
def test_only_some_layers_may_have_an_indexer(read: Read, stated: Config, indexed: str) -> None:
    spec = read({**DEEPSEEK, "model_type": "glm_moe_dsa", **stated})
    found = ["F" if "indexer" in layer else "S" for layer in kinds(spec)]
    assert "".join(found) == indexed
    (weight,) = (one for one in spec.weights if one.name == "self_attn.indexer.wk.weight")
    assert len(weight.layers) == indexed.count("F")


@pytest.mark.parametrize(
    "stated",
    [
        {"indexer_types": ["full"]},
        {"indexer_types": ["full", "half", "full", "full", "full"]},
        {"index_topk_pattern": "FFXFF"},
        {"index_topk_pattern": 7},
        {"q_lora_rank": None},
    ],
)
def test_indexers_that_make_no_sense(read: Read, stated: Config) -> None:
    with pytest.raises(InputError):
        read({**DEEPSEEK, "model_type": "glm_moe_dsa", **stated})


def test_a_draft_module_has_an_indexer_whatever_the_last_layer_has(read: Read) -> None:
    shared = {"index_topk_pattern": "FFFSS", "num_nextn_predict_layers": 1}
    spec = read({**DEEPSEEK, "model_type": "glm_moe_dsa", **shared})
    drafts = {weight.name for weight in spec.weights if weight.component == "mtp"}
    assert "self_attn.indexer.wk.weight" in drafts
    assert "embed_tokens.weight" not in drafts


def test_what_the_indexer_scores_with_stays_plain_in_an_fp8_checkpoint(read: Read) -> None:
    scheme = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    spec = read({**DEEPSEEK, "model_type": "deepseek_v32", "quantization_config": scheme})
    formats = {weight.name: weight.format for weight in spec.weights}
    assert formats["self_attn.indexer.weights_proj.weight"] is None
    assert formats["self_attn.indexer.wq_b.weight"] is not None


# DeepSeek V4


def test_each_rate_keeps_its_own_caches_in_vllms_order(read: Read) -> None:
    assert kinds(read(V4)) == [
        ["compressed"],
        ["indexer", "compressor", "compressed", "compressed", "compressor"],
        ["compressed", "compressed", "compressor"],
    ]


def test_sizes_of_v4_caches(read: Read) -> None:
    plain, sparse, heavy = (layer.caches for layer in read(V4).layers)
    assert plain == (WINDOW,)
    assert sparse == (
        IndexerCache(head_dim=128, stride=4),
        CompressorCache(state_dim=512, window=8),
        WINDOW,
        CompressedCache(latent_dim=448, rope_dim=64, cell_bytes=584, stride=4),
        CompressorCache(state_dim=2048, window=8),
    )
    assert heavy[1:] == (
        CompressedCache(latent_dim=448, rope_dim=64, cell_bytes=584, stride=128),
        CompressorCache(state_dim=1024, window=128),
    )


def test_a_v4_request_by_hand(read: Read) -> None:
    """1,000 tokens: windows of 128, 250 and 7 vectors, fp32 states of the last 8 and 128."""
    spec = read(V4)
    window = 128 * 584
    sparse = 250 * 132 + 8 * 512 * 4 + window + 250 * 584 + 8 * 2048 * 4
    heavy = window + 7 * 584 + 128 * 1024 * 4
    held = [
        sum(cache.request_bytes(1000, kv, spec.dtype, tp=tp) for cache in layer.caches)
        for kv, tp in ((BF16, 1), (FP8_KV, 8))
        for layer in spec.layers
    ]
    assert held == [window, sparse, heavy] * 2


def test_the_ratios_of_draft_modules_are_no_layers(read: Read) -> None:
    """Real files list one more ratio than layers: 0, the module keeps a window only."""
    longer = {**V4, "compress_ratios": [0, 4, 128, 0], "num_nextn_predict_layers": 1}
    assert read(longer).layers == read(V4).layers
    with pytest.raises(InputError, match="lists 2 layers of 3"):
        read({**V4, "compress_ratios": [0, 4]})


def test_layer_types_and_class_defaults_say_the_same(read: Read) -> None:
    types = ["heavily_compressed_attention"] * 3 + ["compressed_sparse_attention"]
    config = {"model_type": "deepseek_v4", "num_hidden_layers": 4}
    assert read({**config, "layer_types": types}).layers == read(config).layers


def test_rotary_elements_have_to_fit_in_a_head(read: Read) -> None:
    with pytest.raises(InputError, match="64 rotary elements do not fit in a head of 64"):
        read({**V4, "head_dim": 64})


def test_an_unknown_rate_is_refused(read: Read) -> None:
    with pytest.raises(NotModelledError, match="compresses 16 tokens"):
        read({**V4, "compress_ratios": [0, 4, 16]})


def test_routed_experts_of_an_fp8_file_have_four_bits_unless_it_says_fp8(read: Read) -> None:
    scheme = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    experts = 3 * 256 * 3 * 4096 * 2048

    def size(**stated: str) -> int:
        spec = read({**V4, "quantization_config": scheme, **stated})
        return stored_bytes(spec.weights, PLAIN[spec.dtype])["experts"]

    assert size(expert_dtype="fp4") == size() == experts // 2 + experts // 32
    assert size(expert_dtype="fp8") == experts + 4 * experts // 128**2


def test_tables_that_route_by_token_are_stored_but_no_parameters(read: Read) -> None:
    hashed, scored = read({**V4, "num_hash_layers": 2}), read({**V4, "num_hash_layers": 0})
    assert hashed.parameters_total == scored.parameters_total
    plain = PLAIN["bfloat16"]
    more = stored_bytes(hashed.weights, plain)["router"]
    assert more - stored_bytes(scored.weights, plain)["router"] == 2 * 129_280 * 6 * 4


# MiniCPM 3 and the plain relatives of DeepSeek


def test_minicpm3_keeps_a_latent_vector_that_some_engines_unpack(read: Read) -> None:
    spec = read({"model_type": "minicpm3"})
    (cache,) = spec.caches
    assert isinstance(cache, LatentCache)
    assert cache.token_bytes(BF16, tp=4) == 2 * (256 + 32)
    assert cache.unpacked is not None
    assert cache.unpacked.token_bytes(BF16, tp=1) == 2 * 2 * 40 * 96
    assert spec.parameters_total == 4_073_875_968


def test_deepseek_without_latent_attention_has_plain_heads(read: Read) -> None:
    config = {**DEEPSEEK, "moe_intermediate_size": 896, "n_routed_experts": 64}
    config |= {"n_shared_experts": 2, "num_experts_per_tok": 6, "hidden_size": 1280}
    config |= {"num_attention_heads": 10, "num_key_value_heads": 10}
    first = read({**config, "model_type": "deepseek"})
    second = read({**config, "model_type": "deepseek_v2", "use_mla": False})
    assert first.layers == second.layers
    assert first.caches[0].token_bytes(BF16, tp=2) == 2 * 2 * 5 * 128
