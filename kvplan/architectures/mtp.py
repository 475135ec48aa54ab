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
_COPIES = ("embed_tokens", "shared_head.head")
_NORMS = ("enorm", "hnorm", "shared_head.norm")


def read_modules(fields: Fields, shape: DecoderShape) -> tuple[int, ...]:
    """Layer numbers of the modules: they follow the decoder's own.

    The number is taken only where the file states it: an older checkpoint of the class has none.
    """
    count = fields.optional_integer(
        "num_nextn_predict_layers", "num_mtp_layers", least=0, most=_MOST_MODULES
    )
    return tuple(range(shape.layers, shape.layers + (count or 0)))


def mtp_weights(
    shape: DecoderShape,
    body: Weights,
    modules: tuple[int, ...],
    *,
    own_ends: bool = True,
    norms: tuple[str, ...] = _NORMS,
    projection: str = "eh_proj",
    copies: tuple[str, ...] = _COPIES,
) -> Weights:
    """What the modules hold, as component ``mtp``.

    Args:
        shape: The decoder's sizes.
        body: The weights of its layers.
        modules: The layer numbers of the modules.
        own_ends: The files hold copies of embedding and head; else the decoder's are used.
        norms: Names of a module's own normalizations.
        projection: Name of the matrix in front of the layer.
        copies: Names of the copies, where the files hold some.
    """
    if not modules:
        return ()
    last = shape.layers - 1
    layer = tuple(_as_mtp(weight, modules) for weight in body if last in weight.layers)
    weights = layer + _joint(shape, modules, norms, projection)
    return weights + (_ends(shape, modules, copies) if own_ends else ())


def _as_mtp(weight: Weight, modules: tuple[int, ...]) -> Weight:
    return weight.model_copy(update={"component": "mtp", "layers": modules})


def _joint(
    shape: DecoderShape, modules: tuple[int, ...], norms: tuple[str, ...], projection: str
) -> Weights:
    weights: Weights = ()
    for name in norms:
        weights += norm(name, shape.hidden, layers=modules, component="mtp")
    return weights + linear(
        projection,
        (shape.hidden, 2 * shape.hidden),
        component="mtp",
        sharding="replicated",
        layers=modules,
    )


def _ends(shape: DecoderShape, modules: tuple[int, ...], copies: tuple[str, ...]) -> Weights:
    weights: Weights = ()
    for name in copies:
        weights += linear(
            name,
            (shape.vocab, shape.hidden),
            component="mtp",
            sharding="vocab",
            layers=modules,
        )
    return weights
