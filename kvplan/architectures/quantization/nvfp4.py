"""NVFP4: four-bit floats, an FP8 scale every sixteen inputs, fp32 scales a matrix."""

from __future__ import annotations

from kvplan.models.formats import NumberFormat

_GLOBAL_SCALE = 4  # fp32: one of the weight, and one of its input where that is in four bits too


def nvfp4_format(group: int = 16, *, input_scale: bool = True) -> NumberFormat:
    """One layout for ModelOpt and compressed-tensors, which only name the tensors differently."""
    return NumberFormat(
        name="nvfp4",
        bits=4,
        block_rows=1,
        block_columns=group,
        scale_bytes=1,
        tensor_bytes=(2 if input_scale else 1) * _GLOBAL_SCALE,
        source="vLLM v0.33.0 vllm/model_executor/layers/quantization/modelopt.py",
    )
