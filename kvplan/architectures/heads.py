"""Models on a known decoder without its language head: embeddings, rewards, classes.

What they cache is the decoder's; of the weights only the head differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights, linear
from kvplan.architectures.fields import Fields

_MOST_LABELS = 1_000_000
_LANGUAGE_HEADS = ("ForCausalLM", "LMHeadModel")

Build = Callable[[Fields, int], Weights]


def without_head(anatomy: Anatomy, weights: Weights) -> Anatomy:
    """The same decoder with ``weights`` in place of its language head."""
    kept = tuple(weight for weight in anatomy.weights if weight.component != "lm_head")
    return anatomy.model_copy(update={"weights": kept + weights, "tied": False})


def score(name: str, hidden: int, labels: int, *, bias: bool = False) -> Weights:
    """A matrix with a row a label; every rank holds all of it."""
    return linear(
        name,
        (labels, hidden),
        component="lm_head",
        sharding="replicated",
        place="head",
        bias=bias,
    )


def find_head(name: str, language_model: str) -> Build | None:
    """What stands on the decoder of class ``language_model`` in class ``name``, if known.

    >>> find_head("LlamaForCausalLMEagle3", "LlamaForCausalLM") is None
    True
    """
    named = _NAMED.get(name)
    if named is not None:
        return named if language_model.startswith(name.split("For", maxsplit=1)[0]) else None
    for ending in _LANGUAGE_HEADS:
        if language_model.endswith(ending):
            stem = language_model.removesuffix(ending)
            return _COMMON.get(name.removeprefix(stem)) if name.startswith(stem) else None
    return None


def _nothing(fields: Fields, hidden: int) -> Weights:
    """The bare decoder, as embedding models are saved."""
    del fields, hidden
    return ()


def _sequence_classes(fields: Fields, hidden: int) -> Weights:
    # transformers v5.24.0 src/transformers/modeling_layers.py GenericForSequenceClassification.
    return score("score", hidden, _labels(fields))


def _token_classes(fields: Fields, hidden: int) -> Weights:
    # transformers v5.24.0 src/transformers/modeling_layers.py GenericForTokenClassification.
    return score("score", hidden, _labels(fields), bias=True)


def _qwen2_reward(fields: Fields, hidden: int) -> Weights:
    """Two matrices with a nonlinearity between: vLLM v0.33.0 models/qwen2_rm.py."""
    del fields
    return _two_layers(hidden, 1)


def _qwen2_process_reward(fields: Fields, hidden: int) -> Weights:
    del fields
    return _two_layers(hidden, 2)


def _internlm2_reward(fields: Fields, hidden: int) -> Weights:
    """One row: vLLM v0.33.0 models/internlm2.py InternLM2ForRewardModel."""
    del fields
    return score("v_head", hidden, 1)


def _two_layers(hidden: int, labels: int) -> Weights:
    first = linear(
        "score.0",
        (hidden, hidden),
        component="lm_head",
        sharding="column",
        place="head",
        bias=True,
    )
    return first + score("score.2", hidden, labels, bias=True)


def _labels(fields: Fields) -> int:
    """As many as are named; two by default."""
    named = fields.section("id2label")
    if named is not None and named.names():
        return min(len(named.names()), _MOST_LABELS)
    return fields.integer("num_labels", default=2, most=_MOST_LABELS)


_COMMON: Mapping[str, Build] = MappingProxyType(
    {
        "ForSequenceClassification": _sequence_classes,
        "ForTokenClassification": _token_classes,
        "Model": _nothing,
        "TextModel": _nothing,
    }
)
_NAMED: Mapping[str, Build] = MappingProxyType(
    {
        "InternLM2ForRewardModel": _internlm2_reward,
        "Qwen2ForProcessRewardModel": _qwen2_process_reward,
        "Qwen2ForRewardModel": _qwen2_reward,
    }
)
