"""NVFP4: four-bit floats, an FP8 scale every sixteen inputs, fp32 scales a matrix."""

from __future__ import annotations

from kvplan.models.formats import NumberFormat

_GLOBAL_SCALES = 2 * 4  # of the weight and of its input, fp32 each


def nvfp4_format(group: int = 16) -> NumberFormat:
    """One layout for ModelOpt and compressed-tensors, which only name the tensors differently."""
    return NumberFormat(
        name="nvfp4",
        bits=4,
        block_rows=1,
        block_columns=group,
        scale_bytes=1,
        tensor_bytes=_GLOBAL_SCALES,
        source="vLLM v0.33.0 vllm/model_executor/layers/quantization/modelopt.py",
    )
