"""FP8 checkpoints of transformers and DeepSeek, AutoFP8 and FBGEMM."""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.quantization.modules import Modules
from kvplan.architectures.quantization.scheme import Quantized, with_format, without
from kvplan.models.formats import NumberFormat

_SCALE = 4  # fp32
_VLLM = "vLLM v0.33.0 vllm/model_executor/layers/quantization/"


def per_tensor(*, static: bool) -> NumberFormat:
    """One scale a matrix; a second one for the activations if they are scaled statically."""
    return NumberFormat(
        name="fp8",
        bits=8,
        scale_bytes=_SCALE,
        tensor_bytes=_SCALE if static else 0,
        source=f"{_VLLM}fp8.py",
    )


def per_channel() -> NumberFormat:
    """One scale an output row."""
    return NumberFormat(
        name="fp8",
        bits=8,
        block_rows=1,
        scale_bytes=_SCALE,
        source=f"{_VLLM}utils/fp8_utils.py create_fp8_scale_parameter",
    )


def per_block(rows: int, columns: int) -> NumberFormat:
    """One scale a block of the matrix, as in DeepSeek V3."""
    return NumberFormat(
        name="fp8",
        bits=8,
        block_rows=rows,
        block_columns=columns,
        scale_bytes=_SCALE,
        source=f"{_VLLM}utils/fp8_utils.py create_fp8_scale_parameter",
    )


def fp8(settings: Fields, weights: Weights) -> Quantized:
    """``quant_method: fp8``: blocks where ``weight_block_size`` is stated, else one scale."""
    block = settings.integers("weight_block_size", least=1, most=2**20)
    if block is None:
        static = settings.optional_text("activation_scheme") == "static"
        number_format = per_tensor(static=static)
    elif len(block) == 2:
        number_format = per_block(*block)
    else:
        raise settings.error("weight_block_size", list(block), "two whole numbers")
    return Quantized(
        name="fp8", weights=with_format(weights, number_format, without(_ignored(settings)))
    )


def fbgemm_fp8(settings: Fields, weights: Weights) -> Quantized:
    """``quant_method: fbgemm_fp8``: one scale an output row (Llama 3.1 405B FP8)."""
    return Quantized(
        name="fbgemm_fp8",
        weights=with_format(weights, per_channel(), without(_ignored(settings))),
    )


def _ignored(settings: Fields) -> Modules:
    # AutoFP8 and transformers name the list differently.
    names = settings.texts("modules_to_not_convert") or settings.texts("ignored_layers") or ()
    return Modules(names)
