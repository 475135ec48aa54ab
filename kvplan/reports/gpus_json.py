"""GPUs as JSON: every field of the spec, and what an engine sees of its memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from kvplan.hardware import DetectedGpu, GpuSpec, device_memory


def gpu_json(gpu: GpuSpec) -> str:
    """One device (`kvplan.gpu/1`)."""
    return _dump({"schema": "kvplan.gpu/1", **_gpu(gpu)})


def gpu_list_json(gpus: Sequence[GpuSpec]) -> str:
    """Several devices (`kvplan.gpus/1`)."""
    return _dump({"schema": "kvplan.gpus/1", "gpus": [_gpu(gpu) for gpu in gpus]})


def detected_json(gpus: Sequence[DetectedGpu]) -> str:
    """This machine's GPUs (`kvplan.detected/1`); null is what the driver does not say."""
    return _dump(
        {"schema": "kvplan.detected/1", "gpus": [gpu.model_dump(mode="json") for gpu in gpus]}
    )


def _gpu(gpu: GpuSpec) -> dict[str, Any]:
    memory = device_memory(gpu).model_dump(mode="json")
    return {**gpu.model_dump(mode="json", exclude_none=True), "memory_bytes": memory}


def _dump(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=2, allow_nan=False) + "\n"
