"""Cheap shell completion: the names of the bundled files, nothing opened."""

from __future__ import annotations

from typing import Literal

from kvplan.errors import KvplanError

# The engines of kvplan.api, whose import would make every TAB wait; a test compares them.
ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "ollama", "transformers")


def complete_gpu(incomplete: str) -> list[str]:
    """Ids of the bundled GPUs, and ``auto``."""
    return [name for name in ("auto", *_names("gpu_specs")) if name.startswith(incomplete)]


def complete_engine(incomplete: str) -> list[str]:
    """Engines that are modelled."""
    return [name for name in (*ENGINES, "all") if name.startswith(incomplete)]


def complete_model(incomplete: str) -> list[str]:
    """Ids of the bundled models: ``org--name.yaml`` is ``org/name``."""
    names = (name.replace("--", "/", 1) for name in _names("model_specs"))
    return [name for name in names if name.startswith(incomplete)]


def _names(kind: Literal["gpu_specs", "model_specs"]) -> list[str]:
    from kvplan.sources.bundled import specs_dir

    try:
        folder = specs_dir(kind)
    except KvplanError:
        return []
    return sorted(path.stem for path in folder.glob("*.yaml"))
