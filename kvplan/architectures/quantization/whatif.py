"""The same model with its weights in another format: what `--weights` asks for.

The formats are what an engine then holds: of a checkpoint in that format, or of a plain one that
it quantizes while loading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kvplan.architectures.blocks import Weights
from kvplan.architectures.quantization.awq import awq_format
from kvplan.architectures.quantization.bitsandbytes import bnb_4bit, bnb_8bit
from kvplan.architectures.quantization.compressed_tensors import int8, packed
from kvplan.architectures.quantization.fp8 import per_block, per_channel
from kvplan.architectures.quantization.gguf import FILE_TYPES, PREFIX, as_gguf, find_file_type
from kvplan.architectures.quantization.gptq import gptq_format
from kvplan.architectures.quantization.mxfp4 import MXFP4
from kvplan.architectures.quantization.nvfp4 import nvfp4_format
from kvplan.architectures.quantization.scheme import with_format
from kvplan.errors import UnknownNameError, UsageError, nearest
from kvplan.models.formats import PLAIN, Dtype, NumberFormat
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import Weight

_GROUP = 128  # the group size that published AWQ and GPTQ checkpoints use

# Each goes for the linear layers of the decoder, as published checkpoints do.
_SCHEMES: Mapping[str, NumberFormat] = MappingProxyType(
    {
        "fp8": per_channel(),
        "fp8-block": per_block(128, 128),
        "int8": int8(channel=True),
        "awq": awq_format(bits=4, group=_GROUP),
        "gptq": gptq_format(bits=4, group=_GROUP),
        "w4a16": packed(bits=4, group=_GROUP, symmetric=True, ordered=False),
        "nf4": bnb_4bit("nf4", double=True),
        "bnb-8bit": bnb_8bit(),
        "mxfp4": MXFP4,
        "nvfp4": nvfp4_format(),
    }
)
_ALIASES: Mapping[str, str] = MappingProxyType(
    {"w8a8": "int8", "bnb-4bit": "nf4", "fp8_block": "fp8-block"}
)
_PLAIN: Mapping[str, Dtype] = MappingProxyType(
    {
        "bf16": "bfloat16",
        "bfloat16": "bfloat16",
        "fp16": "float16",
        "float16": "float16",
        "fp32": "float32",
        "float32": "float32",
    }
)
WEIGHT_FORMATS = ("auto", *_SCHEMES, *_ALIASES, *_PLAIN)


def quantize(spec: ModelSpec, name: str) -> ModelSpec:
    """The model with its weights in the format ``name``.

    Args:
        spec: A model whose checkpoint is not quantized.
        name: ``fp8`` (one scale an output row), ``fp8-block`` (one a block of 128 × 128),
            ``int8`` or ``w8a8``, ``awq``, ``gptq`` or ``w4a16`` (four bits, groups of 128),
            ``nf4`` or ``bnb-4bit`` (with double quantization), ``bnb-8bit``, ``mxfp4`` (the
            routed experts, where there are some, as in gpt-oss), ``nvfp4``, ``bf16``, ``fp16``,
            ``fp32``, ``gguf:Q4_K_M`` (or just ``Q4_K_M``) and the other file types of llama.cpp;
            ``auto`` leaves the model as it is.

    Raises:
        UnknownNameError: no such format.
        UsageError: the checkpoint is quantized already.
        NotModelledError: what a GGUF file of the model's family holds is not known.
    """
    wanted = name.lower()
    wanted = _ALIASES.get(wanted, wanted)
    if wanted == "auto":
        return spec
    file_type = _file_type(name)
    if file_type is None and wanted not in WEIGHT_FORMATS:
        raise _unknown(name)
    if spec.quantization is not None:
        raise UsageError(
            f"{spec.id} is quantized already ({spec.quantization}); its weights can't be taken"
            f" as {wanted}.",
            hint="Name the model that it was made from, or leave the weights at auto.",
        )
    spec = spec.model_copy(update={"weights": _unmarked(spec)})
    if file_type is not None:
        return as_gguf(spec, file_type)
    if wanted in _PLAIN:
        return _plain(spec, PLAIN[_PLAIN[wanted]])
    weights = with_format(spec.weights, _SCHEMES[wanted], _chosen(wanted, spec))
    return spec.model_copy(update={"weights": weights, "quantization": wanted})


def _file_type(name: str) -> str | None:
    """The file type of a GGUF file, with or without ``gguf:`` before it; None: another format."""
    if name.lower().startswith(PREFIX):
        return find_file_type(name[len(PREFIX) :])
    bare = name.lower() not in WEIGHT_FORMATS and name.upper() in FILE_TYPES
    return find_file_type(name) if bare else None


def _unknown(name: str) -> UnknownNameError:
    known = (*WEIGHT_FORMATS, *(f"{PREFIX}{file_type}" for file_type in FILE_TYPES))
    return UnknownNameError(
        f"{name[:40]!r} is not a format of weights.",
        hint=nearest(name, known)
        or f"Known are {', '.join(WEIGHT_FORMATS)}, and {PREFIX} with a file type.",
    )


def _unmarked(spec: ModelSpec) -> Weights:
    """The inventory without formats that only say what the model's own type is."""
    own = PLAIN[spec.dtype].bits

    def unmarked(weight: Weight) -> Weight:
        stated = weight.format
        if stated is None or stated.plain_bytes is None or stated.bits != own:
            return weight
        return weight.model_copy(update={"format": None})

    return tuple(map(unmarked, spec.weights))


def _chosen(wanted: str, spec: ModelSpec) -> Callable[[str], bool]:
    if wanted == "mxfp4" and spec.experts:
        return lambda module: ".experts." in module
    return lambda _module: True


def _plain(spec: ModelSpec, number_format: NumberFormat) -> ModelSpec:
    weights = tuple(
        weight.model_copy(update={"format": number_format}) if weight.format is None else weight
        for weight in spec.weights
    )
    return spec.model_copy(update={"weights": weights})
