"""Engines that spread a model over unlike devices and the host: what they are given."""

from __future__ import annotations

from collections.abc import Sequence

from kvplan.architectures import quantize
from kvplan.errors import NotModelledError, UsageError
from kvplan.hardware import GpuSpec
from kvplan.models.spec import ModelSpec

SPREADING = ("llama.cpp", "ollama")
_ON_HOSTS = (*SPREADING, "transformers")
_CONVERTED = {"bfloat16": "gguf:BF16", "float16": "gguf:F16", "float32": "gguf:F32"}


def check_devices(engine: str, gpus: Sequence[GpuSpec]) -> None:
    """Most engines run on GPUs that are all alike.

    Raises:
        UsageError: unlike devices, or a host without a GPU, of an engine that takes neither.
    """
    if engine in SPREADING or (len(gpus) == 1 and engine in _ON_HOSTS):
        return
    if len(gpus) > 1:
        raise UsageError(
            f"{engine} takes GPUs of one kind.", hint="Name one; --tp, --pp and --dp multiply it."
        )
    if gpus[0].vendor == "cpu":
        raise UsageError(
            f"{engine} is planned for GPUs, not for {gpus[0].id}.",
            hint=f"Choose a GPU, or --engine {SPREADING[0]}.",
        )


def as_loaded(spec: ModelSpec, engine: str, weights: str) -> ModelSpec:
    """The model as the engine loads it.

    Those that load GGUF files alone get a plain checkpoint as the conversion stores it; where that
    is not modelled the model stays as it is, and the engine says what is not exact then.
    """
    if engine not in SPREADING or weights != "auto" or spec.quantization is not None:
        return spec
    try:
        return quantize(spec, _CONVERTED[spec.dtype])
    except NotModelledError:
        return spec
