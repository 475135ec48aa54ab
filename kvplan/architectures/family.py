"""Which family a configuration belongs to, or why none."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvplan.architectures.drafts.table import REFUSED_DRAFTS, find_draft
from kvplan.architectures.elsewhere import ELSEWHERE
from kvplan.architectures.encoders import ENCODERS
from kvplan.architectures.fields import Fields
from kvplan.architectures.heads import find_head
from kvplan.architectures.table import FAMILIES, Family
from kvplan.architectures.wrappers.table import UNTYPED, WRAPPERS, Wrapper
from kvplan.errors import InputError, NotModelledError, nearest
from kvplan.models.facts import ModelFacts

_KNOWN: Mapping[str, Family | Wrapper] = MappingProxyType({**FAMILIES, **WRAPPERS})

# Types are short: below this any two of them look alike.
_ALIKE = 0.75


def find_family(facts: ModelFacts) -> tuple[str, str, Family | Wrapper]:
    """The model's type, the name of its class, and how it is read.

    Raises:
        NotModelledError: the type is not in the table, or the class is a variant of it.
        InputError: the fields that say so are no texts.
    """
    fields = Fields(facts.config, where=facts.source, source="")
    model_type = fields.optional_text("model_type")
    classes = fields.texts("architectures", most=100) or ()
    if model_type is None:
        model_type = next((UNTYPED[name] for name in classes if name in UNTYPED), None)
    if model_type is None:
        raise _untyped(facts, classes)
    draft = find_draft(classes, narrowed=fields.has("draft_vocab_size"))
    if draft is not None:
        return model_type, *draft
    family = _KNOWN.get(model_type)
    if family is None:
        raise _unknown(model_type, classes, facts.source)
    if not classes:
        return model_type, family.classes[0], family
    for name in classes:
        if name in family.classes or find_head(name, family.classes[0]):
            return model_type, name, family
    # Some exporters write the text model's type beside the wrapper's class.
    for wrapper in WRAPPERS.values():
        if classes[0] in wrapper.classes and any(map(fields.has, wrapper.sections)):
            return model_type, classes[0], wrapper
    raise _variant(model_type, classes[0], family, facts.source)


def _untyped(facts: ModelFacts, classes: tuple[str, ...]) -> InputError | NotModelledError:
    if not classes:
        return InputError(
            "The configuration states neither `model_type` nor `architectures`.",
            hint="Is this the config.json of a language model?",
            location=facts.source,
        )
    return NotModelledError(
        f"The configuration states no `model_type` ({classes[0][:60]}), so it is not modelled.",
        hint="Add the type to the file if you know it.",
        location=facts.source,
    )


def _unknown(model_type: str, classes: tuple[str, ...], where: str) -> NotModelledError:
    named = f" ({classes[0][:60]})" if classes else ""
    if model_type in ENCODERS:
        return NotModelledError(
            f"Models of type {model_type!r}{named} are encoders: they keep no KV cache to plan.",
            hint="Their memory is the weights and the activations of one batch.",
            location=where,
        )
    if model_type in ELSEWHERE:
        return NotModelledError(
            f"{ELSEWHERE[model_type]} Models of type {model_type!r}{named} are not modelled.",
            hint="Language models with one decoder are, with or without towers.",
            location=where,
        )
    return NotModelledError(
        f"Models of type {model_type[:60]!r}{named} are not modelled.",
        hint=f"{_relatives(model_type)}To add the type: one file and one row of"
        " kvplan/architectures/table.py, with the sizes of its caches and weights.",
        location=where,
    )


def _variant(model_type: str, name: str, family: Family | Wrapper, where: str) -> NotModelledError:
    if name.endswith("EncoderModel"):
        return NotModelledError(
            f"{name[:60]!r} is the encoder of {model_type!r} alone: it keeps no KV cache to plan.",
            hint="Plan the whole model, or count its weights and the activations of one batch.",
            location=where,
        )
    if name in REFUSED_DRAFTS:
        return NotModelledError(
            f"Drafts of class {name!r} are not modelled: {REFUSED_DRAFTS[name]}.",
            hint="Plan the model it was made for, and leave room for the draft's files.",
            location=where,
        )
    return NotModelledError(
        f"{name[:60]!r} is built on {model_type!r} but is not a plain {family.classes[0]}"
        " (it may be a draft or have another head), and is not modelled.",
        hint="Plan the model that it belongs to or was made from.",
        location=where,
    )


def _relatives(model_type: str) -> str:
    relatives = [known for known in _KNOWN if model_type.lower().startswith(known)]
    if relatives:
        return f"A related family is modelled: {max(relatives, key=len)}. "
    close = nearest(model_type, _KNOWN, count=1, cutoff=_ALIKE)
    return f"{close} " if close else ""
