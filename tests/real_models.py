"""Models and devices that several tests plan with: real configurations, and small ones by hand."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from vllm_cases import gpu_of, model_of

from kvplan.hardware import GpuSpec
from kvplan.models.caches import FullCache, LayerCache, WindowCache
from kvplan.models.spec import Layer, ModelSpec
from kvplan.models.weights import Weight

GIB = 2**30
_DATA = Path(__file__).parent / "data" / "vllm_cases.json"


@cache
def _configs() -> dict[str, dict[str, Any]]:
    configs: dict[str, dict[str, Any]] = json.loads(_DATA.read_text(encoding="utf-8"))["models"]
    return configs


def real_names() -> list[str]:
    """The real configurations that live beside the tests."""
    return sorted(_configs())


def real(name: str) -> ModelSpec:
    """One of them, read."""
    return model_of(name, _configs()[name])


def device(gib: float = 79.19, *, sm: tuple[int, int] = (9, 0), name: str = "H100") -> GpuSpec:
    """A device of which torch sees ``gib``."""
    return gpu_of(name, sm, round(gib * GIB))


def full(kv_heads: int = 8, head_dim: int = 128, head_dim_v: int | None = None) -> FullCache:
    """A layer that keeps everything."""
    return FullCache(kv_heads=kv_heads, head_dim=head_dim, head_dim_v=head_dim_v or head_dim)


def window(
    tokens: int, kv_heads: int = 8, head_dim: int = 128, head_dim_v: int | None = None
) -> WindowCache:
    """A layer that keeps ``tokens``."""
    return WindowCache(
        kv_heads=kv_heads, head_dim=head_dim, head_dim_v=head_dim_v or head_dim, window=tokens
    )


def toy(*layers: LayerCache | None, **changes: Any) -> ModelSpec:
    """A model with these layers (None: without a cache) and 2 MiB of weights a layer."""
    interned = {cache: Layer(caches=(cache,) if cache else ()) for cache in layers}
    hidden = Weight(
        name="mlp.weight",
        component="mlp",
        shape=(1024, 1024),
        layers=tuple(range(len(layers))),
        sharding="column",
    )
    facts: dict[str, Any] = {
        "id": "test/toy",
        "model_type": "llama",
        "architecture": "LlamaForCausalLM",
        "source": "made for a test",
        "dtype": "bfloat16",
        "max_context": 8192,
        "hidden_size": 1024,
        "vocab_size": 32_000,
        "intermediate_size": 4096,
        "attention_heads": 32,
        "layers": tuple(interned[cache] for cache in layers),
        "tied_embeddings": False,
        "weights": (hidden,),
    }
    return ModelSpec(**(facts | changes))
