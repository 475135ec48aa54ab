"""The engines there are, by name: each is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from typing_extensions import override

from kvplan.engines.base import Engine

# Where each engine's class is, in the order in which reports name them.
PLACES: Mapping[str, str] = {
    "vllm": "kvplan.engines.vllm.engine:Vllm",
    "sglang": "kvplan.engines.sglang.engine:Sglang",
    "tensorrt-llm": "kvplan.engines.tensorrt_llm.engine:TensorRtLlm",
    "llama.cpp": "kvplan.engines.llamacpp.engine:LlamaCpp",
    "ollama": "kvplan.engines.ollama.engine:Ollama",
    "transformers": "kvplan.engines.transformers.engine:Transformers",
}


class Engines(Mapping[str, Engine]):
    """Engines by name. Asking for names alone imports none of them.

    Args:
        places: ``module:Class`` by name.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = dict(places)
        self._made: dict[str, Engine] = {}

    @override
    def __getitem__(self, name: str) -> Engine:
        if name not in self._made:
            module, _, kind = self._places[name].partition(":")
            self._made[name] = getattr(import_module(module), kind)()
        return self._made[name]

    @override
    def __contains__(self, name: object) -> bool:
        return name in self._places

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    @override
    def __len__(self) -> int:
        return len(self._places)
