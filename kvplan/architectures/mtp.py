"""Multi-token prediction modules: on disk, but loaded only to draft tokens.

A module is one more decoder layer of the last kind with two normalizations and a projection in
front, and copies of embedding and head: vLLM v0.33.0 vllm/model_executor/models/deepseek_mtp.py
and glm4_moe_mtp.py.
"""

from __future__ import annotations

from kvplan.architectures.blocks import Weights, linear, norm
from kvplan.architectures.fields import Fields
from kvplan.architectures.shapes import DecoderShape
from kvplan.models.weights import Weight

_MOST_MODULES = 100


def read_modules(fields: Fields, shape: DecoderShape) -> tuple[int, ...]:
    """Layer numbers of the modules: they follow the decoder's own.

    The number is taken only where the file states it: an older checkpoint of the class has none.
    """
    count = fields.optional_integer(
        "num_nextn_predict_layers", "num_mtp_layers", least=0, most=_MOST_MODULES
    )
    return tuple(range(shape.layers, shape.layers + (count or 0)))


def mtp_weights(shape: DecoderShape, body: Weights, modules: tuple[int, ...]) -> Weights:
    """What the modules hold, as component ``mtp``."""
    if not modules:
        return ()
    last = shape.layers - 1
    layer = tuple(_as_mtp(weight, modules) for weight in body if last in weight.layers)
    return layer + _ends(shape, modules)


def _as_mtp(weight: Weight, modules: tuple[int, ...]) -> Weight:
    return weight.model_copy(update={"component": "mtp", "layers": modules})


def _ends(shape: DecoderShape, modules: tuple[int, ...]) -> Weights:
    weights: Weights = ()
    for name in ("enorm", "hnorm", "shared_head.norm"):
        weights += norm(name, shape.hidden, layers=modules, component="mtp")
    weights += linear(
        "eh_proj",
        (shape.hidden, 2 * shape.hidden),
        component="mtp",
        sharding="replicated",
        layers=modules,
    )
    for name in ("embed_tokens", "shared_head.head"):
        weights += linear(
            name,
            (shape.vocab, shape.hidden),
            component="mtp",
            sharding="vocab",
            layers=modules,
        )
    return weights
