"""Settings that depend on the model: the mode of recurrent states, skipped layers.

Sources: vLLM 0.33.0, vllm/model_executor/models/config.py MambaModelConfig,
vllm/engine/arg_utils.py (boundary layers of TurboQuant).
"""

from __future__ import annotations

from kvplan.engines.vllm.defaults import Attention
from kvplan.engines.vllm.history import Rules
from kvplan.engines.vllm.kv_dtypes import TURBOQUANT
from kvplan.engines.vllm.settings import Settings
from kvplan.engines.vllm.states import Mode
from kvplan.errors import EngineRefusesError, NotModelledError
from kvplan.models.spec import ModelSpec

# Layers at each end whose cache TurboQuant leaves as it is.
_BOUNDARY = 2


def attention_of(model: ModelSpec) -> Attention:
    """What the model keeps of a request, as defaults depend on it."""
    kinds = {cache.kind for cache in model.caches}
    if "cross" in kinds:
        return "encoder_decoder"
    if "recurrent" not in kinds:
        return "decoder"
    return "hybrid" if is_hybrid(model) else "attention_free"


def is_hybrid(model: ModelSpec) -> bool:
    """Whether the model has recurrent layers beside attention."""
    kinds = {cache.kind for cache in model.caches}
    return "recurrent" in kinds and len(kinds - {"shared"}) > 1


def state_mode(settings: Settings, rules: Rules) -> Mode:
    """mamba_cache_mode in force.

    Raises:
        EngineRefusesError: a mode that this release does not have.
    """
    asked = settings.mamba_cache_mode
    if asked == "all" and not rules.mode_all:
        raise EngineRefusesError(
            "This release of vLLM has no mamba_cache_mode 'all'.",
            hint="Use align, or 0.15 to 0.31.",
        )
    if not settings.enable_prefix_caching:
        return "none"
    return "all" if asked == "all" else "align"


def skipped_layers(settings: Settings, model: ModelSpec, kv_dtype: str) -> frozenset[str]:
    """Layers whose cache keeps the model's type: as asked, and TurboQuant's first and last."""
    skipped = set(settings.kv_cache_dtype_skip_layers)
    if kv_dtype in TURBOQUANT and not is_hybrid(model):
        count = len(model.layers)
        ends = min(_BOUNDARY, count // 2)
        skipped |= {str(index) for index in (*range(ends), *range(count - ends, count))}
    return frozenset(skipped)


def check_replay(settings: Settings) -> None:
    """ReplaySSM is refused by most classes, and by the others with the default backend.

    Raises:
        EngineRefusesError: it was asked for.
    """
    if settings.use_replayssm:
        raise EngineRefusesError(
            "vLLM refuses ReplaySSM here: it has it for a few Mamba-2 classes, and there with "
            "--mamba-backend flashinfer alone, whose buffers kvplan does not size.",
            hint="Leave out use_replayssm.",
        )


def check_engine(model: ModelSpec, rules: Rules) -> None:
    """The engine before V1 keeps states and encoder outputs outside of its cache.

    Raises:
        NotModelledError: the model has such layers.
    """
    kinds = {cache.kind for cache in model.caches}
    if rules.v0 and kinds & {"recurrent", "cross", "indexer"}:
        raise NotModelledError(
            "kvplan does not model recurrent states, cross attention and sparse attention in "
            "vLLM's V0 engine.",
            hint="Plan for a release with V1, 0.10 or later.",
        )
