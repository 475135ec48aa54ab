"""Configurations that several tests start from: only the fields that decide a size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kvplan.architectures import read_model
from kvplan.architectures.entries import Catalogue
from kvplan.architectures.headers import (
    bytes_by_dtype,
    exact_weights,
    sort_tensors,
    unknown_note,
)
from kvplan.models.facts import ModelFacts, TensorHeader
from kvplan.models.spec import Checkpoint, ModelSpec

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


@pytest.fixture
def read_some(read: Read) -> Read:
    """Reads a configuration and some tensors, as if a checkpoint had no others."""

    def reader(config: dict[str, Any], tensors: tuple[TensorHeader, ...]) -> ModelSpec:
        spec = read(config)
        found = sort_tensors(
            tensors, Catalogue(spec.weights), layers=len(spec.layers), tied=spec.tied_embeddings
        )
        checkpoint = Checkpoint(
            total_bytes=sum(tensor.size for tensor in tensors),
            bytes_by_dtype=bytes_by_dtype(tensors),
            source="headers",
        )
        update = {
            "weights": exact_weights(found),
            "notes": spec.notes + unknown_note(found.unknown),
            "checkpoint": checkpoint,
        }
        return spec.model_copy(update=update)

    return reader
