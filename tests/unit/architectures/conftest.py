"""Configurations that several tests start from: only the fields that decide a size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvplan.architectures import read_model
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec

Read = Callable[..., ModelSpec]

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


@pytest.fixture
def llama() -> dict[str, Any]:
    """Llama 3.1 8B."""
    return dict(LLAMA)


@pytest.fixture
def read() -> Read:
    """Reads a configuration without a checkpoint."""

    def reader(config: dict[str, Any], **facts: Any) -> ModelSpec:
        return read_model(ModelFacts(id="test/model", source="config.json", config=config, **facts))

    return reader
