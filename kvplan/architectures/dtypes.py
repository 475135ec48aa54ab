"""The type a checkpoint computes in: what the configuration says, or the files, or the class."""

from __future__ import annotations

import math

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.origin import TRANSFORMERS
from kvplan.models.facts import ModelFacts
from kvplan.models.formats import PLAIN, Dtype
from kvplan.models.weights import stored_bytes

_SPELLINGS: dict[str, Dtype] = {
    "float32": "float32",
    "float": "float32",
    "float16": "float16",
    "half": "float16",
    "bfloat16": "bfloat16",
}
_HEADERS: dict[str, Dtype] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_NAMES = ("dtype", "torch_dtype")  # transformers v5 renamed it and keeps reading both
_SIZE_TOLERANCE = 0.005


def read_dtype(
    parts: tuple[Fields, Fields], facts: ModelFacts, weights: Weights, scheme: str | None
) -> Dtype:
    """The type, searched where vLLM searches it.

    The order is that of vLLM v0.33.0 vllm/transformers_utils/model_arch_config_convertor.py
    get_torch_dtype: the file, its text part, its vision part, the tensors, float32. Where the
    tensors were not read, the size of the files stands in for them. What an engine then makes of
    float32 is the engine's business.

    Args:
        parts: The configuration, and the part of it that describes the decoder.
        facts: Headers or size of the files, if known.
        weights: The inventory with the formats of its quantization scheme.
        scheme: Name of that scheme, or None.

    Raises:
        InputError: a type that no model computes in.
    """
    fields, text = parts
    for part in (fields, text, fields.section("text_config"), fields.section("vision_config")):
        stated = _stated(part) if part is not None else None
        if stated is not None:
            return stated
    dtype, source = _concluded(facts, weights, scheme)
    fields.fill("dtype", dtype, source)
    return dtype


def _stated(fields: Fields) -> Dtype | None:
    for name in _NAMES:
        text = fields.optional_text(name)
        if text is None or text == "auto":
            continue
        dtype = _SPELLINGS.get(text.removeprefix("torch."))
        if dtype is None:
            raise fields.error(name, text, f"one of {', '.join(_SPELLINGS)}")
        return dtype
    return None


def _concluded(facts: ModelFacts, weights: Weights, scheme: str | None) -> tuple[Dtype, str]:
    tensors = facts.tensors or ()
    found = {_HEADERS[tensor.dtype] for tensor in tensors if tensor.dtype in _HEADERS}
    if len(found) == 1:
        return found.pop(), "the type of the tensors"
    if scheme == "mxfp4":
        return "bfloat16", (
            "vLLM v0.33.0 vllm/model_executor/layers/quantization/mxfp4.py get_supported_act_dtypes"
        )
    if not tensors and facts.checkpoint_bytes is not None:
        half = sum(stored_bytes(weights, PLAIN["bfloat16"]).values())
        if math.isclose(half, facts.checkpoint_bytes, rel_tol=_SIZE_TOLERANCE):
            return "bfloat16", "the size of the files: two bytes an element"
    return "float32", (
        f"transformers {TRANSFORMERS} src/transformers/configuration_utils.py states none:"
        " torch's own default"
    )
