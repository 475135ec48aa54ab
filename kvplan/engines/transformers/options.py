"""Options of a generation: names, types, aliases, and what follows where one is left out.

Names are those of the cache classes (src/transformers/cache_utils.py, 5.24.0) and of
``GenerationConfig``, dashes or underscores alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kvplan.engines.transformers import values
from kvplan.engines.transformers.quantized import Backend
from kvplan.errors import NotModelledError, UnknownNameError, UsageError, nearest, shown

DYNAMIC, STATIC, QUANTIZED = "DynamicCache", "StaticCache", "QuantizedCache"
ENCODER_DECODER, MINIMAX = "EncoderDecoderCache", "MiniMaxCache"
HYBRID = ("HybridCache", "HybridChunkedCache")
SLIDING = "SlidingWindowCache"
CACHES = (DYNAMIC, STATIC, QUANTIZED, ENCODER_DECODER, MINIMAX, SLIDING, *HYBRID)
QUANTIZED_BACKENDS = ("quanto", "hqq", "fp8")
# What a class name says of the backend, and the words of ``cache_implementation``.
_IMPLIED = {"QuantoQuantizedCache": "quanto", "HQQQuantizedCache": "hqq"}
_WORDS = {
    "dynamic": DYNAMIC,
    "static": STATIC,
    "quantized": QUANTIZED,
    "sliding_window": SLIDING,
    "hybrid": HYBRID[0],
    "hybrid_chunked": HYBRID[1],
}
_OFFLOADED = ("OffloadedCache", "OffloadedStaticCache", "OffloadedHybridCache", "offloaded",
              "offloaded_static", "offloaded_hybrid", "paged")  # fmt: skip
# Source: cache_utils.py, QuantizedLayer.__init__.
DEFAULT_BITS, DEFAULT_GROUP, DEFAULT_RESIDUAL = 4, 64, 128


def _cache(name: str, value: Any) -> str:
    if isinstance(value, str) and value in _OFFLOADED:
        raise NotModelledError(
            f"kvplan does not size {value}, which moves the cache off the GPU or into pages.",
            hint=f"Plan for one of {', '.join(CACHES[:4])}.",
        )
    if isinstance(value, str):
        value = _WORDS.get(value, value)
    known = (*CACHES, *_IMPLIED)
    return values.word(name, value, known)


def _backend(name: str, value: Any) -> str:
    return values.word(name, value, QUANTIZED_BACKENDS)


def _axis(name: str, value: Any) -> int:
    return values.integer(name, value, -1, 1)


READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "cache": _cache,
    "batch_size": values.count,
    "decode_steps": values.amount,
    "max_cache_len": values.count,
    "encoder_len": values.count,
    "quant_backend": _backend,
    "nbits": values.count,
    "q_group_size": values.count,
    "residual_length": values.amount,
    "axis_key": _axis,
    "axis_value": _axis,
}
_ALIASES = {
    "cache_implementation": "cache",
    "past_key_values": "cache",
    "backend": "quant_backend",
    "encoder_length": "encoder_len",
}
_GROUPED = ("nbits", "q_group_size", "residual_length", "axis_key", "axis_value")
# Refused rather than ignored, unless given as they are by default.
_NOT_YET: Mapping[str, Any] = {
    "num_beams": 1,
    "num_return_sequences": 1,
    "assistant_model": None,
    "prompt_lookup_num_tokens": None,
    "prefill_chunk_size": None,
    "offloading": False,
    "attn_implementation": "sdpa",
}
# Arguments of their own; given as options they would silently compete.
_ARGUMENTS = {
    "model": "the first argument",
    "max_length": "--context",
    "tp_plan": "--tp",
    "device_map": "--pp",
    "dtype": "--dtype",
    "torch_dtype": "--dtype",
    "quantization_config": "--weights",
}


@dataclass(frozen=True, slots=True)
class Options:
    """Checked options. None: not given.

    Attributes:
        cache: A class name.
        decode_steps: Forward passes of one token after the prompt.
        encoder_len: Tokens of an encoder's output.
        backend, nbits, q_group_size, residual_length, axis_key, axis_value: Of a quantized cache.
        given: Names as they were given.
    """

    cache: str | None = None
    batch_size: int | None = None
    decode_steps: int = 0
    max_cache_len: int | None = None
    encoder_len: int | None = None
    backend: Backend = "quanto"
    nbits: int = DEFAULT_BITS
    q_group_size: int = DEFAULT_GROUP
    residual_length: int = DEFAULT_RESIDUAL
    axis_key: int = 0
    axis_value: int = 0
    given: tuple[str, ...] = ()


def read_options(options: Mapping[str, Any]) -> Options:
    """Checks names and types.

    Raises:
        UnknownNameError: transformers has no such option; the nearest name is the hint.
        UsageError: a value of the wrong type or out of range, or a name given twice.
        NotModelledError: an option that kvplan does not size.
    """
    read: dict[str, Any] = {}
    for written, value in options.items():
        for name in _names(written):
            if name in read:
                raise UsageError(f"{name} is given twice.", hint="Keep one of the two.")
            checked = _read(name, value)
            if checked is not None:
                read[name] = checked
    return _combined(read)


def _names(written: str) -> tuple[str, ...]:
    """The options that a name stands for: ``axis`` is both axes."""
    name = written.strip().removeprefix("--").replace("-", "_")
    return ("axis_key", "axis_value") if name == "axis" else (_ALIASES.get(name, name),)


def _read(name: str, value: Any) -> Any:
    reader = READERS.get(name)
    if reader is not None:
        return None if value is None else reader(name, value)
    if name in _ARGUMENTS:
        raise UsageError(f"{name} is not set with -o.", hint=f"Use {_ARGUMENTS[name]}.")
    if name not in _NOT_YET:
        raise UnknownNameError(
            f"transformers has no option {shown(name)} that kvplan knows.",
            hint=nearest(name, (*READERS, *_ALIASES, *_NOT_YET, *_ARGUMENTS))
            or f"It knows {', '.join(READERS)}.",
        )
    if value != _NOT_YET[name]:
        raise NotModelledError(
            f"kvplan does not size {name} of transformers yet.",
            hint="Leave it out to plan without it.",
        )
    return None


def _combined(read: dict[str, Any]) -> Options:
    cache = read.get("cache")
    if cache in _IMPLIED:
        read = {**read, "cache": QUANTIZED, "quant_backend": _IMPLIED[cache]}
    grouped = [name for name in _GROUPED if name in read]
    backend, given = read.pop("quant_backend", None), tuple(read)
    if cache is None and (grouped or backend):
        read["cache"] = QUANTIZED
    elif cache is None and "max_cache_len" in read:
        read["cache"] = STATIC
    if backend == "fp8" and grouped:
        raise UsageError(
            f"The fp8 backend quantizes whole tensors and has no {grouped[0]}.",
            hint="Leave it out, or use -o quant_backend=quanto.",
        )
    given += ("quant_backend",) if backend else ()
    return Options(**read, backend=backend or "quanto", given=given)
