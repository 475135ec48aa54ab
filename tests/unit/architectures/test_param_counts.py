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

ROWS = json.loads((Path(__file__).parents[2] / "data" / "param_counts.json").read_text())
# How the rows name the components.
NAMES = {"norm_other": "norms", "shared_expert": "shared_experts"}


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
    assert by_component(spec) == renamed(row["components"])
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


# Totals that checkpoints state themselves, for classes the rows above do not have.
PUBLISHED = [
    # 684,489,845,504 in the headers (deepseek-ai/DeepSeek-R1), of which 59 × 256 are routing
    # biases: buffers, not parameters. The module for multi-token prediction is on disk.
    ("deepseek_v3", 671_026_404_352, 684_489_845_504 - 59 * 256),
    # 358,337,791,296 in the headers (zai-org/GLM-4.5), of which 90 × 160 are routing biases.
    ("glm4_moe", 352_797_814_784, 358_337_791_296 - 90 * 160),
]
LARGE = {
    "deepseek_v3": {
        "model_type": "deepseek_v3",
        "vocab_size": 129280,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "num_nextn_predict_layers": 1,
    },
    "glm4_moe": {
        "model_type": "glm4_moe",
        "vocab_size": 151552,
        "hidden_size": 5120,
        "intermediate_size": 12288,
        "moe_intermediate_size": 1536,
        "num_hidden_layers": 92,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "n_routed_experts": 160,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "attention_bias": True,
        "use_qk_norm": True,
        "num_nextn_predict_layers": 1,
    },
}


@pytest.mark.parametrize(("model_type", "loaded", "on_disk"), PUBLISHED)
def test_draft_modules_are_on_disk_but_not_in_the_total(
    model_type: str, loaded: int, on_disk: int
) -> None:
    config: dict[str, Any] = LARGE[model_type]
    spec = read_model(ModelFacts(id=model_type, source="headers", config=config))
    assert spec.parameters_total == loaded
    assert sum(weight.parameters for weight in spec.weights) == on_disk
    module = config["num_hidden_layers"]
    assert {w.layers for w in spec.weights if w.component == "mtp"} == {(module,)}
