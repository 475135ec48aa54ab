"""MXFP8: eight-bit floats, a power of two as scale every 32 inputs."""

from __future__ import annotations

from kvplan.models.formats import NumberFormat

MXFP8 = NumberFormat(
    name="mxfp8",
    bits=8,
    block_rows=1,
    block_columns=32,
    scale_bytes=1,
    source=(
        "vLLM v0.33.0 vllm/model_executor/layers/quantization/compressed_tensors/schemes/"
        "compressed_tensors_w8a8_mxfp8.py"
    ),
)
