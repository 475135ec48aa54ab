"""Parameters by component against the modules that transformers itself builds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kvplan.architectures import read_model
from kvplan.architectures.table import FAMILIES
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec

DATA = Path(__file__).parents[2] / "data"
ROWS = json.loads((DATA / "param_counts.json").read_text())
TOTALS = json.loads((DATA / "published_totals.json").read_text())
# How the rows name the components.
NAMES = {
    "norm_other": "norms",
    "shared_expert": "shared_experts",
    "ssm_or_conv": "recurrent",
}


def by_component(spec: ModelSpec) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for weight in spec.weights:
        counts[weight.component] += weight.parameters
    return dict(counts)


def renamed(components: dict[str, int]) -> dict[str, int]:
    return {NAMES.get(name, name): count for name, count in components.items()}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["model"])
def test_counts_equal_the_reference(row: dict[str, Any]) -> None:
    spec = read_model(ModelFacts(id=row["model"], source=row["source"], config=row["config"]))
    counts = by_component(spec)
    if other := counts.pop("other", 0):
        counts["norms"] += other  # the rows put all that is left with the norms
    assert counts == renamed(row["components"])
    assert spec.parameters_total == row["total"]
    assert spec.parameters_active == (row["active"] or row["total"])
    assert spec.tied_embeddings is row["tied"]


def test_the_compact_rows_are_complete(oracle: Callable[[str], Iterator[dict[str, Any]]]) -> None:
    """The rows here are those of the reference data, all of the modelled families."""
    reference = {
        row["model"]: (renamed(row["components"]), row["total_params"])
        for row in oracle("param_counts.jsonl.gz")
        if row["model_type"] in FAMILIES
    }
    assert reference == {row["model"]: (renamed(row["components"]), row["total"]) for row in ROWS}


# Totals that headers state, for classes the rows above do not have. Routing biases are buffers,
# not parameters; modules for multi-token prediction are on disk but not loaded.
PUBLISHED = [
    # deepseek-ai/DeepSeek-R1: 59 × 256 routing biases
    ("deepseek_v3", 671_026_404_352, 684_489_845_504 - 59 * 256),
    # zai-org/GLM-4.5: 90 × 160
    ("glm4_moe", 352_797_814_784, 358_337_791_296 - 90 * 160),
    # zai-org/GLM-4.7-Flash: 47 × 64
    ("glm4_moe_lite", 29_943_390_976, 31_221_488_576 - 47 * 64),
    # MiniMaxAI/MiniMax-M2: 62 × 256
    ("minimax_m2", 228_689_748_992, 228_689_764_864 - 62 * 256),
    # allenai/OLMoE-1B-7B-0924
    ("olmoe", 6_919_161_856, 6_919_161_856),
    # ByteDance-Seed/Seed-OSS-36B-Instruct
    ("seed_oss", 36_151_104_512, 36_151_104_512),
    # baidu/ERNIE-4.5-0.3B-PT
    ("ernie4_5", 360_748_032, 360_748_032),
    # ibm-granite/granite-3.1-8b-instruct
    ("granite", 8_170_848_256, 8_170_848_256),
    # bigcode/starcoder2-15b: a head of its own, unlike the class default
    ("starcoder2", 15_957_889_024, 15_957_889_024),
    # tiiuae/falcon-40b: its files keep a copy of the tied head, 65,024 × 8,192
    ("falcon", 41_835_970_560 - 65_024 * 8192, 41_835_970_560 - 65_024 * 8192),
]

LARGE: dict[str, dict[str, Any]] = {
    "deepseek_v3": {
        "vocab_size": 129280,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "num_nextn_predict_layers": 1,
    },
    "glm4_moe": {
        "vocab_size": 151552,
        "hidden_size": 5120,
        "intermediate_size": 12288,
        "moe_intermediate_size": 1536,
        "num_hidden_layers": 92,
        "num_attention_heads": 96,
        "head_dim": 128,
        "n_routed_experts": 160,
        "first_k_dense_replace": 3,
        "attention_bias": True,
        "use_qk_norm": True,
        "num_nextn_predict_layers": 1,
    },
    "glm4_moe_lite": {
        "vocab_size": 154880,
        "hidden_size": 2048,
        "intermediate_size": 10240,
        "num_hidden_layers": 47,
        "num_attention_heads": 20,
        "mlp_layer_types": ["dense"] + ["sparse"] * 46,
        "num_nextn_predict_layers": 1,
    },
    "minimax_m2": {
        "vocab_size": 200064,
        "hidden_size": 3072,
        "intermediate_size": 1536,
        "num_hidden_layers": 62,
        "num_attention_heads": 48,
    },
    "olmoe": {
        "vocab_size": 50304,
        "hidden_size": 2048,
        "intermediate_size": 1024,
        "num_hidden_layers": 16,
        "num_attention_heads": 16,
    },
    "seed_oss": {
        "vocab_size": 155136,
        "hidden_size": 5120,
        "intermediate_size": 27648,
        "num_hidden_layers": 64,
        "num_attention_heads": 80,
    },
    "ernie4_5": {
        "vocab_size": 103424,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 18,
        "num_attention_heads": 16,
    },
    "granite": {
        "vocab_size": 49155,
        "hidden_size": 4096,
        "intermediate_size": 12800,
        "num_hidden_layers": 40,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "tie_word_embeddings": True,
    },
    "starcoder2": {
        "vocab_size": 49152,
        "hidden_size": 6144,
        "intermediate_size": 24576,
        "num_hidden_layers": 40,
        "num_attention_heads": 48,
        "num_key_value_heads": 4,
        "tie_word_embeddings": False,
    },
    "falcon": {
        "vocab_size": 65024,
        "hidden_size": 8192,
        "num_hidden_layers": 60,
        "num_attention_heads": 128,
        "num_kv_heads": 8,
        "new_decoder_architecture": True,
    },
}


@pytest.mark.parametrize(("model_type", "loaded", "on_disk"), PUBLISHED)
def test_totals_equal_those_of_published_files(model_type: str, loaded: int, on_disk: int) -> None:
    config = {"model_type": model_type, **LARGE[model_type]}
    spec = read_model(ModelFacts(id=model_type, source="headers", config=config))
    assert spec.parameters_total == loaded
    assert sum(weight.parameters for weight in spec.weights) == on_disk
    drafts = {weight.layers for weight in spec.weights if weight.component == "mtp"}
    assert drafts == ({(config["num_hidden_layers"],)} if on_disk > loaded else set())


@pytest.mark.parametrize("row", TOTALS, ids=lambda row: row["model"])
def test_totals_equal_those_that_headers_state(row: dict[str, Any]) -> None:
    spec = read_model(ModelFacts(id=row["model"], source="headers", config=row["config"]))
    drafts = by_component(spec).get("mtp", 0)
    assert drafts == row["drafts"]
    assert spec.parameters_total == row["published"] - row["buffers"] - row["drafts"]
