"""The same model with its weights in another format: what `--weights` asks for."""

from __future__ import annotations

from types import MappingProxyType

from kvplan.architectures.quantization.awq import awq_format
from kvplan.architectures.quantization.compressed_tensors import int8
from kvplan.architectures.quantization.fp8 import per_channel
from kvplan.architectures.quantization.gptq import gptq_format
from kvplan.architectures.quantization.scheme import with_format
from kvplan.errors import UnknownNameError, UsageError, nearest
from kvplan.models.formats import PLAIN, Dtype, NumberFormat
from kvplan.models.spec import ModelSpec

_GROUP = 128  # the group size that published AWQ and GPTQ checkpoints use

# Each goes for the linear layers of the decoder, as published checkpoints do.
_SCHEMES = MappingProxyType(
    {
        "fp8": per_channel(),
        "int8": int8(channel=True),
        "awq": awq_format(bits=4, group=_GROUP),
        "gptq": gptq_format(bits=4, group=_GROUP),
    }
)
_PLAIN = MappingProxyType[str, Dtype](
    {
        "bf16": "bfloat16",
        "bfloat16": "bfloat16",
        "fp16": "float16",
        "float16": "float16",
        "fp32": "float32",
        "float32": "float32",
    }
)
WEIGHT_FORMATS = ("auto", *_SCHEMES, *_PLAIN)


def quantize(spec: ModelSpec, name: str) -> ModelSpec:
    """The model with its weights in the format ``name``.

    Args:
        spec: A model whose checkpoint is not quantized.
        name: ``fp8`` (one scale an output row), ``int8`` (W8A8), ``awq`` or ``gptq`` (four bits,
            groups of 128), ``bf16``, ``fp16``, ``fp32``; ``auto`` leaves the model as it is.

    Raises:
        UnknownNameError: no such format.
        UsageError: the checkpoint is quantized already.
    """
    wanted = name.lower()
    if wanted == "auto":
        return spec
    if wanted not in WEIGHT_FORMATS:
        raise UnknownNameError(
            f"{name[:40]!r} is not a format of weights.",
            hint=nearest(name, WEIGHT_FORMATS) or f"Known are {', '.join(WEIGHT_FORMATS)}.",
        )
    if spec.quantization is not None:
        raise UsageError(
            f"{spec.id} is quantized already ({spec.quantization}); its weights can't be taken"
            f" as {wanted}.",
            hint="Name the model that it was made from, or leave the weights at auto.",
        )
    if wanted in _PLAIN:
        return _plain(spec, PLAIN[_PLAIN[wanted]])
    weights = with_format(spec.weights, _SCHEMES[wanted], lambda _module: True)
    return spec.model_copy(update={"weights": weights, "quantization": wanted})


def _plain(spec: ModelSpec, number_format: NumberFormat) -> ModelSpec:
    weights = tuple(weight.model_copy(update={"format": number_format}) for weight in spec.weights)
    return spec.model_copy(update={"weights": weights})
