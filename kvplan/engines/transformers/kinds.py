"""Which cache a generation has: what was asked for, or what the model's class makes by itself."""

from __future__ import annotations

from kvplan.engines.transformers import options as names
from kvplan.engines.transformers.history import Rules
from kvplan.engines.transformers.kept import OWN_CACHE
from kvplan.engines.transformers.options import Options
from kvplan.engines.transformers.quantized import AXES, BITS
from kvplan.errors import EngineRefusesError
from kvplan.models.spec import Layer, ModelSpec

# What cache_utils.py calls a layer by what it keeps.
_LAYER_TYPES = {
    "full": "full_attention",
    "latent": "full_attention",
    "window": "sliding_attention",
    "chunked": "chunked_attention",
    "indexer": "indexed_attention",
    "recurrent": "linear_attention",
    "shared": "dummy",
}


def cache_class(model: ModelSpec, options: Options, rules: Rules) -> str:
    """The class of the cache; names that only alias ``StaticCache`` are that.

    Raises:
        EngineRefusesError: the model's class or this release has no such cache.
    """
    asked = _static_alias(options.cache, rules)
    own = model.architecture in OWN_CACHE
    if own or asked == names.MINIMAX:
        return _own(model, asked, own=own)
    if is_encoder_decoder(model):
        return _of_encoder_decoder(model, asked)
    if asked == names.ENCODER_DECODER:
        raise EngineRefusesError(
            f"{model.architecture} is no encoder-decoder model: it has no {asked}.",
            hint="Leave out -o cache.",
        )
    if asked == names.QUANTIZED:
        _check_quantized(model, options, rules)
    return asked or names.DYNAMIC


def is_encoder_decoder(model: ModelSpec) -> bool:
    """Whether each layer reads an encoder beside its own tokens."""
    kinds = [{cache.kind for cache in layer.caches} for layer in model.layers]
    return any({"full", "cross"} <= kept for kept in kinds)


def _static_alias(asked: str | None, rules: Rules) -> str | None:
    gone = (asked in names.HYBRID and not rules.hybrid_classes) or (
        asked == names.SLIDING and not rules.sliding_class
    )
    if gone:
        raise EngineRefusesError(
            f"This release of transformers has no {asked} any more.",
            hint="StaticCache keeps windows by itself: -o cache=StaticCache.",
        )
    return names.STATIC if asked in (names.SLIDING, *names.HYBRID) else asked


def _own(model: ModelSpec, asked: str | None, *, own: bool) -> str:
    if own and asked in (None, names.MINIMAX):
        return names.MINIMAX
    if own:
        raise EngineRefusesError(
            f"{model.architecture} uses a cache of its own and takes no {asked}.",
            hint="Leave out -o cache.",
        )
    raise EngineRefusesError(
        f"{asked} is the cache of MiniMax alone, not of {model.architecture}.",
        hint="Leave out -o cache.",
    )


def _of_encoder_decoder(model: ModelSpec, asked: str | None) -> str:
    if asked == names.QUANTIZED:
        raise EngineRefusesError(
            f"{model.architecture} is an encoder-decoder model, which has no quantized cache.",
            hint="Leave out -o cache.",
        )
    return names.STATIC if asked == names.STATIC else names.ENCODER_DECODER


def _check_quantized(model: ModelSpec, options: Options, rules: Rules) -> None:
    others = {each for layer in model.layers for each in _types(layer)} - {"full_attention"}
    if others:
        raise EngineRefusesError(
            "QuantizedCache takes models with full attention layers alone; this one also has "
            f"{', '.join(sorted(others))}.",
            hint="Leave out -o cache.",
        )
    if options.backend == "fp8":
        _check_fp8(rules)
        return
    _check_known(options.backend, "nbits", options.nbits, BITS[options.backend])
    for name in ("axis_key", "axis_value"):
        _check_known(options.backend, name, getattr(options, name), AXES[options.backend])


def _types(layer: Layer) -> set[str]:
    return {_LAYER_TYPES.get(cache.kind, cache.kind) for cache in layer.caches} or {"dummy"}


def _check_fp8(rules: Rules) -> None:
    if not rules.fp8_backend:
        raise EngineRefusesError(
            "This release of transformers has no fp8 backend for QuantizedCache.",
            hint="Plan for 5.21 or later, or use -o quant_backend=quanto.",
        )


def _check_known(backend: str, name: str, value: int, known: tuple[int, ...]) -> None:
    if value not in known:
        raise EngineRefusesError(
            f"The {backend} backend has no {name}={value}.",
            hint=f"It takes {', '.join(map(str, known))}.",
        )
