"""`kvplan models add`: a model spec from whatever states a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from kvplan.cli import flags
from kvplan.cli.invocation import invocation_of

if TYPE_CHECKING:
    from kvplan.models.facts import ModelFacts
    from kvplan.models.spec import ModelSpec


def add(
    context: typer.Context,
    model: flags.Model,
    *,
    offline: flags.Offline = False,
    output: flags.Output = None,
) -> None:
    """Write a model spec from a Hub id or a local folder.

    Only the keys that decide sizes, caches and context are kept. What could not be found is said
    on stderr, a line each.
    """
    from kvplan.architectures import read_model
    from kvplan.architectures.essentials import (
        essential_config,
        essential_processor,
        without_headers,
    )
    from kvplan.cli.output import write
    from kvplan.reports.clean import clean
    from kvplan.sources.card import with_local_license
    from kvplan.sources.models import read_model as read_facts
    from kvplan.sources.spec_draft import check_kind, draft_spec, missing_facts
    from kvplan.sources.spec_writer import spec_text

    found = read_facts(model, offline=offline)
    check_kind(found)
    facts = with_local_license(without_headers(found))
    text = spec_text(draft_spec(facts, essential_config(facts), essential_processor(facts)))
    spec = read_model(facts)
    _check(text, spec)
    write(text, output)
    for sentence in (*missing_facts(facts), *found.notes, *spec.notes):
        invocation_of(context).remark(clean(sentence))


def _check(text: str, wanted: ModelSpec) -> None:
    """Reads the file back: it has to give the model that was read."""
    from kvplan.architectures import read_model
    from kvplan.errors import InternalError
    from kvplan.sources.model_specs import facts_of
    from kvplan.sources.yaml_reader import parse_yaml

    facts: ModelFacts = facts_of(parse_yaml(text, "the new model spec"))
    if _without_names(read_model(facts)) != _without_names(wanted):
        raise InternalError(
            "The model spec does not read back as the model it was made from.",
            hint="Write it by hand; model_specs/README.md says how.",
            location=wanted.source,
        )


def _without_names(spec: ModelSpec) -> ModelSpec:
    known = spec.checkpoint and spec.checkpoint.model_copy(update={"source": ""})
    return spec.model_copy(update={"id": "", "revision": None, "source": "", "checkpoint": known})
