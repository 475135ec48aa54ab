"""llama.cpp as the planner sees it: settings → devices → caches → placement → answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.engines.base import DraftRequest, Setup
from kvplan.engines.llamacpp import flash, history
from kvplan.engines.llamacpp.caches import Types, layer_stores
from kvplan.engines.llamacpp.deployment import LlamaCppDeployment
from kvplan.engines.llamacpp.devices import machine_of
from kvplan.engines.llamacpp.layout import Body
from kvplan.engines.llamacpp.options import read_options
from kvplan.engines.llamacpp.settings import Settings, resolve
from kvplan.engines.llamacpp.weights import loaded_weights, stored_layers
from kvplan.errors import EngineRefusesError, NotModelledError, UsageError, shown
from kvplan.models.spec import ModelSpec

NAME = "llama.cpp"
# Drafts that need copies of recurrent states: common/common.h need_n_rs_seq.
_ROLLED_BACK = ("draft-mtp", "draft-eagle3", "draft-dflash", "draft-dspark")
_OWN_MODULES = "draft-mtp"
_WITHOUT_MODEL = (
    "none",
    "ngram-simple",
    "ngram-map-k",
    "ngram-map-k4v",
    "ngram-mod",
    "ngram-cache",
)
# Formats of checkpoints that the conversion to GGUF takes over as they are.
_CONVERTED = (None, "mxfp4")


class LlamaCpp:
    """The engine."""

    name = NAME
    newest = history.NEWEST
    unstated_context: int | None = None

    def draft_of(self, options: Mapping[str, Any]) -> DraftRequest | None:
        """The draft that ``model_draft`` or ``spec_type`` asks for.

        Raises:
            KvplanError: see `kvplan.engines.base.Engine`.
        """
        given = read_options(options)
        model, kind = given.get("model_draft"), given.get("spec_type")
        if model is None and kind in _WITHOUT_MODEL:
            return None
        if model is None and kind is None:
            return None
        if model is None and kind != _OWN_MODULES:
            raise UsageError(
                f"spec_type {shown(kind)} needs a draft.", hint="Name it: -o model_draft=FILE."
            )
        return DraftRequest(model)

    def prepare(self, setup: Setup) -> LlamaCppDeployment:
        """Works out devices, caches and tensors.

        Raises:
            EngineRefusesError, NotModelledError, UsageError: see `kvplan.engines.base.Engine`.
        """
        settings = resolve(setup.options, setup.kv_dtype)
        version = setup.version or history.NEWEST
        _check(setup)
        machine = machine_of(setup, settings.tensor_split)
        settings = flash.settle(settings, machine)
        return LlamaCppDeployment(
            setup=setup,
            version=version,
            rules=history.rules_for(version),
            settings=settings,
            machine=machine,
            body=body_of(setup.model, _types(settings), rollback=_rollback(settings)),
            draft=_draft(setup.draft, settings),
        )


def body_of(spec: ModelSpec, types: Types, *, rollback: int = 0) -> Body:
    """A model as llama.cpp loads it.

    Raises:
        EngineRefusesError, NotModelledError: see `caches.layer_stores`.
    """
    layers = stored_layers(spec)
    return Body(
        spec=spec,
        stores=layer_stores(spec, types, rollback=rollback),
        weights=loaded_weights(spec, layers),
        file_layers=layers,
    )


def _types(settings: Settings) -> Types:
    return Types(settings.cache_type_k, settings.cache_type_v, settings.flash_attn)


def _draft(spec: ModelSpec | None, settings: Settings) -> Body | None:
    if spec is None:
        return None
    types = Types(settings.cache_type_k_draft, settings.cache_type_v_draft, settings.flash_attn)
    return body_of(spec, types)


def _rollback(settings: Settings) -> int:
    if settings.n_rs_seq is not None:
        return settings.n_rs_seq
    return settings.spec_draft_n_max if settings.spec_type in _ROLLED_BACK else 0


def _check(setup: Setup) -> None:
    spread = setup.parallelism
    if spread.tp > 1 or spread.dcp > 1:
        raise NotModelledError(
            "llama.cpp spreads whole layers; kvplan does not size its tensor-parallel split modes.",
            hint="Use --pp for the number of GPUs.",
        )
    if setup.dtype != "auto":
        raise UsageError("llama.cpp has no compute type to choose.", hint="Leave out --dtype.")
    scheme = setup.model.quantization
    if scheme not in _CONVERTED and not (scheme or "").startswith("gguf"):
        raise EngineRefusesError(
            f"llama.cpp loads GGUF files, not a checkpoint in {scheme}.",
            hint="Name a GGUF file, or the model that it was quantized from with --weights "
            "gguf:Q4_K_M.",
        )
