"""Which family a configuration belongs to, or why none."""

from __future__ import annotations

from kvplan.architectures.fields import Fields
from kvplan.architectures.table import FAMILIES, Family
from kvplan.errors import InputError, NotModelledError, nearest
from kvplan.models.facts import ModelFacts


def find_family(facts: ModelFacts) -> tuple[str, str, Family]:
    """The model's type, the name of its class, and how it is read.

    Raises:
        NotModelledError: the type is not in the table, or the class is a variant of it.
        InputError: the fields that say so are no texts.
    """
    fields = Fields(facts.config, where=facts.source, source="")
    model_type = fields.optional_text("model_type")
    classes = fields.texts("architectures", most=100) or ()
    if model_type is None:
        raise _untyped(facts, classes)
    family = FAMILIES.get(model_type)
    if family is None:
        raise _unknown(model_type, classes, facts.source)
    if not classes:
        return model_type, family.classes[0], family
    for name in classes:
        if name in family.classes:
            return model_type, name, family
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
    return NotModelledError(
        f"Models of type {model_type[:60]!r}{named} are not modelled.",
        hint=f"{_relatives(model_type)}To add the type: one file and one row of"
        " kvplan/architectures/table.py, with the sizes of its caches and weights.",
        location=where,
    )


def _variant(model_type: str, name: str, family: Family, where: str) -> NotModelledError:
    return NotModelledError(
        f"{name[:60]!r} is built on {model_type!r} but is not a plain {family.classes[0]}"
        " (a draft, an embedding or a classification model), and is not modelled.",
        hint="Plan the model that it belongs to or was made from.",
        location=where,
    )


def _relatives(model_type: str) -> str:
    relatives = [known for known in FAMILIES if model_type.lower().startswith(known)]
    if relatives:
        return f"A related family is modelled: {max(relatives, key=len)}. "
    close = nearest(model_type, FAMILIES, count=1)
    return f"{close} " if close else ""
