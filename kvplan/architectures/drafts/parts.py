"""What drafts have in common: inputs fused from the target's layers, and ends they may share."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights, linear, norm, vector
from kvplan.architectures.fields import Fields
from kvplan.architectures.shapes import DecoderShape
from kvplan.models.formats import NumberFormat
from kvplan.models.spec import Layer
from kvplan.models.weights import Weight

_MOST_FEATURES = 1024
_INT64 = NumberFormat(name="int64", bits=64, source="torch.long")


def features(fields: Fields, shape: DecoderShape, layers: int) -> int:
    """Elements that a token's states from ``layers`` layers of the target have together."""
    width = fields.optional_integer("target_hidden_size") or shape.hidden
    return width * layers


def stated_layers(fields: Fields | None, name: str) -> int | None:
    """How many layers of the target a configuration lists, or None."""
    if fields is None:
        return None
    listed = fields.integers(name, least=-1, most=10_000)
    if listed is not None and len(listed) > _MOST_FEATURES:
        raise fields.error(name, list(listed), f"a list of at most {_MOST_FEATURES} layers")
    return len(listed) or None if listed is not None else None


def fusion(width: int, hidden: int) -> Weights:
    """The projection of the target's states; every rank holds all of it."""
    return linear(
        "fc", (hidden, width), component="other", sharding="replicated", place="embedding"
    )


def end_norm(name: str, size: int) -> Weights:
    """A normalization outside the layers."""
    return norm(name, size, place="head")


def own_head(vocabulary: int, shape: DecoderShape) -> Weights:
    """A head of the draft's own; if it knows fewer tokens, with their numbers at the target."""
    head = linear(
        "lm_head",
        (vocabulary, shape.hidden),
        component="lm_head",
        sharding="vocab",
        place="head",
    )
    return head if vocabulary == shape.vocab else head + _numbers(vocabulary)


def _numbers(vocabulary: int) -> Weights:
    (table,) = vector("d2t", vocabulary, component="other", place="head")
    return (table.model_copy(update={"format": _INT64, "elements": 0}),)


def draft(
    shape: DecoderShape,
    weights: tuple[Weight, ...],
    *,
    layers: tuple[Layer, ...],
    intermediate: int,
    kind: str,
    shared: str,
) -> Anatomy:
    """A draft of some kind; ``shared`` says in words what it takes from its target."""
    sentence = (
        f"This is a draft ({kind}): it runs beside the model it was made for, with a cache of"
        f" its own, and takes {shared} from that model."
    )
    return Anatomy(
        hidden_size=shape.hidden,
        vocab_size=shape.vocab,
        intermediate_size=intermediate,
        attention_heads=shape.heads,
        layers=layers,
        tied=False,
        weights=weights,
        notes=(sentence,),
        draft=kind,
    )
