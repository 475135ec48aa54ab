"""Drafts: weights by hand, caches of their own, and modules that a model drafts with itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvplan.architectures import read_model
from kvplan.architectures.drafts.own import eagle_draft, mtp_draft
from kvplan.errors import InputError, NotModelledError
from kvplan.models.caches import FullCache, LatentCache, WindowCache
from kvplan.models.facts import ModelFacts
from kvplan.models.formats import PLAIN
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import stored_bytes

Read = Callable[..., ModelSpec]
Config = dict[str, Any]

EAGLE3: Config = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 1,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "draft_vocab_size": 32000,
    "torch_dtype": "float16",
}
# The first layer sees two vectors a token, three of the target's are fused into one.
LAYER = 2 * 4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14336 + 3 * 4096
FUSION = 3 * 4096 * 4096
HEAD = 32000 * 4096
FULL = FullCache(kv_heads=8, head_dim=128, head_dim_v=128)

DFLASH: Config = {
    "architectures": ["DFlashDraftModel"],
    "model_type": "qwen3",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 2,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 1000,
    "dflash_config": {"target_layer_ids": [1, 4, 7, 10, 13]},
    "dtype": "bfloat16",
}
BLOCK = 2 * (2048 * 128 * (2 * 32 + 2 * 8) + 3 * 2048 * 6144 + 2 * 2048 + 2 * 128)
DFLASH_WEIGHTS = BLOCK + 5 * 2048 * 2048 + 2 * 2048


def total(spec: ModelSpec) -> int:
    return sum(stored_bytes(spec.weights, PLAIN[spec.dtype]).values())


def test_eagle3(read: Read) -> None:
    spec = read(EAGLE3)
    assert spec.parameters_total == LAYER + FUSION + HEAD + 4096
    # The numbers of the draft's tokens at the target are no parameters, but eight bytes each.
    assert total(spec) == 2 * spec.parameters_total + 8 * 32000
    assert [layer.caches for layer in spec.layers] == [(FULL,)]
    assert spec.draft == "EAGLE-3"
    assert "takes the embedding from that model" in spec.notes[0]
    assert (spec.vocab_size, spec.max_context) == (128256, 2048)


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"architectures": ["LlamaForCausalLM"]}, 0),
        ({"model_type": "qwen2"}, 0),
        ({"attention_bias": True}, 4096 + 2 * 1024),
        ({"draft_vocab_size": None}, (128256 - 32000) * 4096),
        ({"num_aux_hidden_states": 5}, 2 * 4096 * 4096),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2]}}, -4096 * 4096),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": []}}, 0),
        ({"norm_before_fc": True}, 3 * 4096),
        ({"eagle_config": {"norm_before_fc": True}, "norm_before_fc": False}, 3 * 4096),
        ({"fc_norm": True}, 3 * 4096),
        ({"target_hidden_size": 8192}, 3 * 4096 * 4096),
        ({"target_hidden_size": 5000}, 3 * (5000 - 4096) * 4096 + 128256 * 4096),
        ({"architectures": ["Eagle3Qwen3ForCausalLM"]}, 2 * 128),
        ({"architectures": ["PEagleDraftModel"]}, 3 * 4096),
        (
            {"architectures": ["PEagleDraftModel"], "num_hidden_layers": 2},
            3 * 4096 + LAYER - 4096 * (4096 + 2 * 1024),
        ),
    ],
    ids=str,
)
def test_variants_of_eagle3(read: Read, changes: Config, more: int) -> None:
    spec = read({**EAGLE3, **changes})
    assert spec.parameters_total == LAYER + FUSION + HEAD + 4096 + more
    assert spec.draft in ("EAGLE-3", "P-EAGLE")


def test_dflash(read: Read) -> None:
    spec = read(DFLASH)
    assert spec.parameters_total == DFLASH_WEIGHTS
    assert [layer.caches for layer in spec.layers] == [(FULL,)] * 2
    assert "embedding and head" in spec.notes[0]
    assert read({**DFLASH, "has_own_lm_head": True}).parameters_total == (
        DFLASH_WEIGHTS + 1000 * 2048
    )
    narrowed = read({**DFLASH, "draft_vocab_size": 500})
    assert narrowed.parameters_total == DFLASH_WEIGHTS + 500 * 2048
    without = read({**DFLASH, "dflash_config": None})
    assert without.parameters_total == DFLASH_WEIGHTS - 3 * 2048 * 2048


def test_windows_of_dflash(read: Read) -> None:
    types = {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 512}
    kinds = [layer.caches[0].kind for layer in read({**DFLASH, **types}).layers]
    assert kinds == ["window", "full"]
    all_of_them = {"dflash_config": {"use_swa": True}, "sliding_window": 512}
    assert {type(cache) for cache in read({**DFLASH, **all_of_them}).caches} == {WindowCache}


def test_dspark_and_domino(read: Read) -> None:
    own = {"target_layer_ids": [1, 4, 7, 10, 13], "markov_rank": 256}
    spark = {**DFLASH, "architectures": ["DSparkDraftModel"], "dflash_config": own}
    assert read(spark).parameters_total == DFLASH_WEIGHTS + 2 * 1000 * 256
    sure = {**spark, "dflash_config": own | {"enable_confidence_head": True}}
    assert read(sure).parameters_total == DFLASH_WEIGHTS + 2 * 1000 * 256 + 2048 + 256 + 1
    alone = {"enable_confidence_head": True, "confidence_head_with_markov": False}
    assert read({**spark, "dflash_config": own | alone}).parameters_total == (
        DFLASH_WEIGHTS + 2 * 1000 * 256 + 2048 + 1
    )
    with pytest.raises(NotModelledError, match="'gated' Markov head"):
        read({**spark, "dflash_config": own | {"markov_head_type": "gated"}})
    own = {"target_layer_ids": [1, 4, 7, 10, 13], "emb_dim": 64, "gru_hidden_dim": 128}
    correction = 3 * 128 * (2048 + 128) + 64 * (2048 + 128) + 1000 * 64
    domino = {**DFLASH, "architectures": ["DominoDraftModel"], "dflash_config": own}
    assert read(domino).parameters_total == DFLASH_WEIGHTS + correction


@pytest.mark.parametrize("name", ["QwenDFlareDraftModel", "Eagle3DeepseekV3ForCausalLM"])
def test_drafts_that_are_refused(read: Read, name: str) -> None:
    with pytest.raises(NotModelledError, match=f"Drafts of class '{name}'") as caught:
        read({**DFLASH, "architectures": [name]})
    assert caught.value.hint


@pytest.mark.parametrize(
    "changes",
    [
        {"draft_vocab_size": 200_000},
        {"eagle_config": [1]},
        {"eagle_config": {"eagle_aux_hidden_state_layer_ids": ["a"]}},
        {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1] * 5000}},
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_drafts_that_make_no_sense(read: Read, changes: Config) -> None:
    with pytest.raises(InputError):
        read({**EAGLE3, **changes})


def test_real_drafts(shared: Path) -> None:
    """Every folder of a draft is read as one, is an EAGLE-1 head, or is refused with a reason."""
    kinds: dict[str, int] = {}
    for path in sorted(shared.glob("configs/*/config.json")):
        config = json.loads(path.read_text())
        name = (config.get("architectures") or [""])[0]
        if not ("agle" in name or "Draft" in name or "SafeAILab" in str(path)):
            continue
        try:
            spec = read_model(ModelFacts(id="draft", source=str(path), config=config))
        except NotModelledError:
            kinds["refused"] = kinds.get("refused", 0) + 1
            continue
        assert 10**8 < spec.parameters_total < 3 * 10**9
        kinds[str(spec.draft)] = kinds.get(str(spec.draft), 0) + 1
    assert kinds["EAGLE-3"] >= 17
    assert {"DFlash", "DSpark", "Domino", "P-EAGLE"} <= set(kinds)
    assert kinds["refused"] <= 3


# Drafts that no configuration announces


def test_an_eagle_head_reads_like_a_llama_of_one_layer(read: Read) -> None:
    plain = {**EAGLE3, "architectures": ["LlamaForCausalLM"], "draft_vocab_size": None}
    llama = read(plain)
    assert llama.draft is None
    head = eagle_draft(llama)
    # Its projection comes in; the head and two normalizations go.
    assert head.parameters_total == (
        llama.parameters_total + 2 * 4096 * 4096 - 128256 * 4096 - 2 * 4096
    )
    assert head.layers == llama.layers
    assert head.draft == "EAGLE"
    two = eagle_draft(read({**plain, "num_hidden_layers": 2}))
    (norm,) = [weight for weight in two.weights if weight.name == "input_layernorm.weight"]
    assert norm.layers == (1,)


DEEPSEEK: Config = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "vocab_size": 129280,
    "num_nextn_predict_layers": 1,
    "torch_dtype": "bfloat16",
}


def test_modules_of_deepseek(read: Read) -> None:
    spec = read(DEEPSEEK)
    draft = mtp_draft(spec)
    assert [layer.caches for layer in draft.layers] == [(LatentCache(latent_dim=512, rope_dim=64),)]
    # One more layer of experts, a projection and three normalizations; no second embedding.
    last = sum(w.parameters // len(w.layers) for w in spec.weights if 60 in w.layers)
    assert draft.parameters_total == last + 2 * 7168 * 7168 + 3 * 7168
    components = {weight.component for weight in draft.weights}
    assert {"attention", "experts", "router", "norms", "other"} <= components
    assert "mtp" not in components
    assert {layer for weight in draft.weights for layer in weight.layers} == {0}


def test_a_module_of_a_hybrid_keeps_what_its_attention_layers_keep(read: Read) -> None:
    """Qwen3-Next: three of four layers keep a state, its module keeps keys and values."""
    config = {
        "model_type": "qwen3_next",
        "hidden_size": 2048,
        "intermediate_size": 5120,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "num_hidden_layers": 4,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "num_experts": 8,
        "num_experts_per_tok": 2,
        "vocab_size": 1000,
        "num_nextn_predict_layers": 1,
    }
    (layer,) = mtp_draft(read(config)).layers
    assert layer.caches == (FullCache(kv_heads=2, head_dim=256, head_dim_v=256),)


def test_a_model_without_modules_can_not_draft_with_them(read: Read, llama: Config) -> None:
    with pytest.raises(NotModelledError, match="no modules") as caught:
        mtp_draft(read(llama))
    assert caught.value.hint


def test_modules_unlike_any_layer_are_refused(read: Read) -> None:
    spec = read(DEEPSEEK)
    other = tuple(
        weight.model_copy(update={"shape": (1, 1)})
        if weight.component == "mtp" and weight.name.startswith("self_attn.o_proj")
        else weight
        for weight in spec.weights
    )
    with pytest.raises(NotModelledError, match="like none of its layers"):
        mtp_draft(spec.model_copy(update={"weights": other}))
