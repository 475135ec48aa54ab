"""Drafts that a configuration does not announce: a model's own modules, and EAGLE-1 heads."""

from __future__ import annotations

from kvplan.architectures.blocks import Weights, linear, norm
from kvplan.architectures.drafts.parts import fusion
from kvplan.errors import NotModelledError
from kvplan.models.spec import Layer, ModelSpec
from kvplan.models.weights import Weight

# The model's embedding and head serve its modules as well: vLLM v0.33.0
# vllm/v1/spec_decode/llm_base_proposer.py _maybe_share_embeddings, _maybe_share_lm_head.
# Modules of families whose configuration does not state them: vLLM v0.33.0
# vllm/model_executor/models/qwen3_next_mtp.py.
_UNSTATED = {"qwen3_next": 1}
_COPIES = ("embed_tokens.", "shared_head.head.")


def mtp_draft(spec: ModelSpec) -> ModelSpec:
    """What drafting with a model's modules for multi-token prediction adds to it.

    A module keeps what the last decoder layer with the same attention keeps. Copies of embedding
    and head that some checkpoints hold are not loaded a second time. Where neither headers nor the
    family tell a module's weights, it is taken for the last layer that keeps every token, with a
    projection of embedding and state side by side and three normalizations.

    Args:
        spec: A model with weights of component ``mtp``, or one that states its modules.

    Returns:
        The modules alone, numbered from 0.

    Raises:
        NotModelledError: there are no modules, or none of the layers is like them.
    """
    modules = tuple(weight for weight in spec.weights if weight.component == "mtp")
    numbers = sorted({layer for weight in modules for layer in weight.layers})
    stated = spec.prediction_modules or _UNSTATED.get(spec.model_type)
    if not numbers and stated:
        return _by_formula(spec, stated)
    if not numbers:
        raise NotModelledError(
            f"{spec.id} has no modules for multi-token prediction.",
            hint="Choose another way of drafting: a draft model, EAGLE, n-grams.",
        )
    layer = spec.layers[_like(spec, modules)]
    renumbered = tuple(
        _loaded(weight, spec, numbers) for weight in modules if not weight.name.startswith(_COPIES)
    )
    changes = {
        "layers": (Layer(caches=layer.caches),) * len(numbers),
        "weights": renumbered,
        "draft": "MTP",
        "checkpoint": None,
    }
    return spec.model_copy(update=changes)


def _by_formula(spec: ModelSpec, count: int) -> ModelSpec:
    """Modules like the last layer that keeps every token: DeepSeek-V3's report, section 2.2."""
    index = next((i for i in reversed(range(len(spec.layers))) if _keeps_all(spec.layers[i])), None)
    if index is None:
        raise NotModelledError(
            f"{spec.id} has no layer like its modules for multi-token prediction.",
            hint="Choose another way of drafting: a draft model, EAGLE, n-grams.",
        )
    modules = tuple(range(count))
    weights = tuple(
        weight.model_copy(update={"layers": modules})
        for weight in spec.weights
        if weight.place == "layers" and index in weight.layers and weight.component != "mtp"
    )
    width = spec.hidden_size
    weights += linear(
        "eh_proj", (width, 2 * width), component="other", sharding="replicated", layers=modules
    )
    for name in ("enorm", "hnorm", "shared_head.norm"):
        weights += norm(name, width, layers=modules)
    changes = {
        "layers": (Layer(caches=spec.layers[index].caches),) * count,
        "weights": weights,
        "draft": "MTP",
        "checkpoint": None,
    }
    return spec.model_copy(update=changes)


def _keeps_all(layer: Layer) -> bool:
    return any(cache.kind in ("full", "latent") for cache in layer.caches)


def eagle_draft(spec: ModelSpec) -> ModelSpec:
    """An EAGLE-1 head, whose configuration reads like a Llama of one layer.

    It has a projection of embedding and state side by side, no normalization before its first
    layer nor after its last, and takes the head from its target: vLLM v0.33.0
    vllm/model_executor/models/llama_eagle.py.
    """
    weights: Weights = fusion(2 * spec.hidden_size, spec.hidden_size)
    for weight in spec.weights:
        if weight.place == "head":
            continue
        if weight.name == "input_layernorm.weight":
            weights += _after_first(weight)
            continue
        weights += (weight,)
    return spec.model_copy(update={"weights": weights, "draft": "EAGLE"})


def _after_first(weight: Weight) -> Weights:
    later = tuple(layer for layer in weight.layers if layer)
    return (weight.model_copy(update={"layers": later}),) if later else ()


def _like(spec: ModelSpec, modules: Weights) -> int:
    """The last layer that has the modules' attention, matrix by matrix."""
    wanted = {
        (weight.name, weight.shape) for weight in modules if weight.name.startswith("self_attn.")
    }
    there: dict[int, set[tuple[str, tuple[int, ...]]]] = {}
    for weight in spec.weights:
        if weight.component != "mtp" and weight.place == "layers":
            for layer in weight.layers:
                there.setdefault(layer, set()).add((weight.name, weight.shape))
    for layer in sorted(there, reverse=True):
        if wanted and wanted <= there[layer]:
            return layer
    raise NotModelledError(
        f"The modules for multi-token prediction of {spec.id} are like none of its layers.",
        hint="Choose another way of drafting: a draft model, EAGLE, n-grams.",
    )


def _loaded(weight: Weight, spec: ModelSpec, numbers: list[int]) -> Weight:
    """The weight under the component that it has in the decoder."""
    component = next(
        (
            other.component
            for other in spec.weights
            if other.name == weight.name and other.component != "mtp"
        ),
        "norms" if "norm" in weight.name else "other",
    )
    layers = tuple(numbers.index(layer) for layer in weight.layers)
    return weight.model_copy(update={"component": component, "layers": layers})
