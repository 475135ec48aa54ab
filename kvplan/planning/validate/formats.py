"""The model as the engine loaded it: the record's words on its weights → a ModelSpec.

The configuration at hand is often that of the base model, while the start loaded a quantized copy.
"""

from __future__ import annotations

from collections.abc import Mapping

from kvplan.architectures import quantize
from kvplan.errors import KvplanError
from kvplan.measurement import Measurement
from kvplan.models.spec import ModelSpec
from kvplan.planning.validate.lacking import LackingError, extra

_PLAIN = frozenset({"bf16", "fp16", "bfloat16", "float16"})
# Formats as records name them -> formats of `--weights`.
_FORMATS: Mapping[str, str] = {
    "fp8": "fp8",
    "fp8_block": "fp8-block",
    "fp8_online": "fp8",
    "int8": "int8",
    "mxfp4": "mxfp4",
    "nf4": "nf4",
    "int4_group128": "awq",
}
# Names of a checkpoint's scheme that go with a record's format. Any other pair is two copies of
# one model, and the weights of one say nothing of the other's.
_SCHEMES: Mapping[str, tuple[str, ...]] = {
    "fp8": ("fp8", "compressed-tensors", "modelopt"),
    "int8": ("compressed-tensors", "int8"),
    "int4": ("awq", "gptq", "compressed-tensors", "auto"),
    "mxfp4": ("mxfp4", "quark"),
    "nf4": ("bitsandbytes", "nf4"),
    "nvfp4": ("modelopt", "nvfp4", "compressed-tensors"),
    "fp4": ("fp8", "fp4"),
}


def as_loaded(spec: ModelSpec, record: Measurement) -> ModelSpec:
    """The model in the record's format.

    Raises:
        LackingError: the format is not known, or can't be made of this configuration.
    """
    if spec.quantization is not None:
        if record.weight_format is not None:
            _check_same(spec.quantization, record.weight_format)
        return _as_text(spec, record)
    stated = _stated(record)
    return _as_text(spec if stated in _PLAIN else _quantized(spec, stated, record), record)


def _stated(record: Measurement) -> str:
    """The format of a plain model's copy; nothing said at all is the model as it is."""
    stated = record.weight_format or record.quantization or "bf16"
    if stated in ("unknown", "plugin"):
        raise LackingError("weight_format is not stated")
    return stated


def _quantized(spec: ModelSpec, stated: str, record: Measurement) -> ModelSpec:
    wanted = _FORMATS.get(stated, stated)
    if stated.startswith("int4") and "gptq" in (record.quantization or ""):
        wanted = "gptq"
    try:
        return quantize(spec, wanted)
    except KvplanError:
        raise LackingError(
            f"weights in a format that can't be planned from a plain model: {stated}"
        ) from None


def with_own_cache_scheme(spec: ModelSpec, record: Measurement) -> ModelSpec:
    """Without the cache format that a copy in another format prescribes: it is not this start's."""
    if spec.kv_scheme is None or spec.quantization is None or record.weight_format is None:
        return spec
    try:
        _check_same(spec.quantization, record.weight_format)
    except LackingError:
        return spec.model_copy(update={"kv_scheme": None})
    return spec


def _check_same(scheme: str, stated: str) -> None:
    known = [names for start, names in _SCHEMES.items() if stated.startswith(start)]
    if stated in ("unknown", "plugin"):
        raise LackingError("weight_format is not stated")
    if not known or not any(name in scheme for name in known[0]):
        raise LackingError(
            f"the configuration at hand is of a copy in another format: {scheme}, not {stated}"
        )


def _as_text(spec: ModelSpec, record: Measurement) -> ModelSpec:
    """Without towers where the start left them out."""
    parts = extra(record, "multimodal")
    if not isinstance(parts, Mapping) or not parts.get("language_model_only"):
        return spec
    kept = tuple(w for w in spec.weights if w.component not in ("vision", "audio"))
    return spec.model_copy(update={"weights": kept})
