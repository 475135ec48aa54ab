"""TensorRT-LLM's memory that is neither weights nor cache: figures of public starts.

There are few starts that state their parts, so that the ranges are wide; a plan shows the
figures as ``calibrated``.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.runtime import Range
from kvplan.engines.tensorrt_llm.history import Backend


@dataclass(frozen=True, slots=True)
class Band:
    """Figures of one path.

    Attributes:
        layer_bytes: Bytes per token of max_num_tokens and unit of hidden and feed-forward width.
        outside_gib: CUDA context, libraries, and on the PyTorch path captured graphs.
        decoder_gib: Buffers of the decoder and of requests.
        source: What they rest on.
    """

    layer_bytes: Range
    outside_gib: Range
    decoder_gib: Range
    source: str


# What connecting the ranks takes. No public start states it.
NCCL_GIB = Range(0.9, 0.2, 2.5)
NCCL_SOURCE = "no start of TensorRT-LLM states it; as much as connecting ranks takes elsewhere"

_PYTORCH = (
    "activations: 0.85 GiB at 8,192 tokens of gpt-oss-120b, 0.91 at 8,192 and 0.46 at 4,096 of a "
    "model with a feed-forward of 14,336; outside torch: 1.14-1.62 GiB on an RTX 4070 Laptop, 2.12 "
    "of a 2B model on 8 GB, 1.92 without and 5.15 with captured graphs of a hybrid of 30B on an "
    "RTX 5090 Laptop (figures in the public source of a launcher, October 2026), 1.4 left by a "
    "pool of 68.69 GiB on an H100; all of a TinyLlama start at most 2.5 GB "
    "(NVIDIA/TensorRT-LLM#6487); n=6, thin"
)

BANDS: dict[Backend, Band] = {
    "pytorch": Band(
        layer_bytes=Range(7.0, 2.0, 12.0, n=3),
        # With captured graphs, as by default, 1.4 to 5.15; without them 1.14 to 1.92.
        outside_gib=Range(1.5, 0.5, 5.2, n=6),
        decoder_gib=Range(0.1, 0.0, 0.6),
        source=_PYTORCH,
    ),
    "tensorrt": Band(
        layer_bytes=Range(8.0, 3.0, 13.0),
        outside_gib=Range(0.75, 0.4, 1.3),
        decoder_gib=Range(0.3, 0.05, 1.5),
        source="docs/source/reference/memory.md: 1,134 MiB of execution context, 224 MiB of "
        "buffers and decoder, 0.75 GiB else (one start); n=1, thin",
    ),
}
