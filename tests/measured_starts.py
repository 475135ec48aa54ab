"""Measurement records by hand: starts of a small model whose figures fit on a line.

The model has four layers of four heads of 64: a block of 16 tokens holds
4 layers × 2 (K and V) × 16 tokens × 4 heads × 64 × 2 bytes = 65,536 bytes.
"""

from __future__ import annotations

from typing import Any

from kvplan.engines.base import Engine
from kvplan.engines.vllm.engine import Vllm
from kvplan.errors import ModelNotFoundError, NotModelledError
from kvplan.hardware import GpuSpec
from kvplan.measurement import Measurement
from kvplan.models.facts import ModelFacts
from kvplan.planning.validate.match import Matcher, Start
from kvplan.planning.validate.run import validate
from kvplan.sources.gpus import find_gpu
from kvplan.validation import CheckedRecord

BLOCK_BYTES = 65_536
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 4,
    "num_hidden_layers": 4,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "rope_theta": 10_000.0,
    "torch_dtype": "bfloat16",
}
MLA = CONFIG | {"architectures": ["NobodysModel"], "model_type": "nobodys"}


class Shelf:
    """Finds the models it was given, the bundled GPUs, and vLLM."""

    def __init__(self, **configs: dict[str, Any]) -> None:
        self._facts = {
            name: ModelFacts(id=name, source="by hand", config=config)
            for name, config in ({"toy": CONFIG, "strange": MLA} | configs).items()
        }

    def facts(self, record: Measurement) -> ModelFacts:
        """The facts of a model by its name."""
        if record.model not in self._facts:
            raise ModelNotFoundError(f"{record.model} is not on the shelf.")
        return self._facts[record.model]

    def gpu(self, name: str) -> GpuSpec:
        """A bundled device."""
        return find_gpu(name)

    def engine(self, name: str) -> Engine:
        """vLLM, and no other."""
        if name != "vllm":
            raise NotModelledError(f"{name} is not modelled.")
        return Vllm()


def record(**changes: Any) -> Measurement:
    """A start of the small model on an H100, whose log states a cache of 1.00 GiB."""
    values: dict[str, Any] = {
        "id": "a",
        "engine": "vllm",
        "engine_version": "0.33.0",
        "model": "toy",
        "gpu": "H100-SXM-80GB",
        "tp": 1,
        "gpu_memory_utilization": 0.9,
        "max_model_len": 4096,
        "available_kv_gib": 1.0,
        "num_gpu_blocks": 16_384,
        "kv_tokens": 262_144,
        "max_concurrency": 64.0,
        "weights_gib": 0.01,
        "outcome": "started",
    }
    return Measurement.model_validate(values | changes)


def start(shelf: Shelf | None = None, **changes: Any) -> Start:
    """That record with everything that it names found."""
    return Matcher(shelf or Shelf()).match(record(**changes))


def checked(shelf: Shelf | None = None, **changes: Any) -> CheckedRecord:
    """That record through all checks."""
    return validate([record(**changes)], shelf or Shelf()).records[0]
