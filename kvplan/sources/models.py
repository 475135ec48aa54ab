"""What a person calls a model → the facts about it, from wherever they can be had.

A path is read from disk. A name is asked of the Hub; where the Hub may not or can't be asked, or
refuses, the bundled facts of that name are used and the plan says so.
"""

from __future__ import annotations

from pathlib import Path

from kvplan.errors import (
    FactsError,
    GatedModelError,
    HubUnreachableError,
    ModelNotFoundError,
    nearest,
)
from kvplan.models.facts import ModelFacts
from kvplan.sources import hub, hub_model, local, model_specs, stdin
from kvplan.sources.references import as_path, split_reference

_SPEC_ENDINGS = (".yaml", ".yml")


def read_model(reference: str, *, offline: bool = False) -> ModelFacts:
    """Reads the facts of a model.

    Args:
        reference: A folder with ``config.json``, such a file, a GGUF file, a model spec in YAML,
            ``-`` for a configuration or a spec on standard input, or the name ``org/name`` with
            an optional ``@revision``.
        offline: Do not ask the Hub: bundled facts first, then what its client has cached.

    Raises:
        UsageError: the reference is neither a path nor a possible name.
        InputError: a file is not what it claims to be.
        FactsError: a name that nobody knows, or the Hub does not give it out.
        NotModelledError: a GGUF file of a version that is not read.
    """
    if reference in stdin.NAMES:
        return stdin.read_stdin()
    path = as_path(reference)
    if path is not None:
        is_spec = path.name.lower().endswith(_SPEC_ENDINGS)
        return model_specs.load_model_spec(path) if is_spec else local.read_path(path)
    model_id, revision = split_reference(reference)
    spec = model_specs.find_model_spec(model_id)
    if offline or hub.offline_by_environment():
        return _offline(model_id, revision, spec)
    return _online(model_id, revision, spec)


def _online(model_id: str, revision: str | None, spec: Path | None) -> ModelFacts:
    try:
        return hub_model.read_hub(model_id, revision=revision)
    except HubUnreachableError as error:
        facts = _on_this_machine(model_id, revision, spec, error.message)
        if facts is None:
            raise _with_names(error, model_id) from None
        return facts
    except GatedModelError as error:
        if spec is None:
            raise _with_names(error, model_id) from None
        return _bundled(spec, revision, error.message)
    except ModelNotFoundError as error:
        if spec is None or revision is not None:
            raise _with_names(error, model_id) from None
        return _bundled(spec, revision, error.message)


def _offline(model_id: str, revision: str | None, spec: Path | None) -> ModelFacts:
    facts = _on_this_machine(model_id, revision, spec, "Offline, the Hub was not asked.")
    if facts is None:
        missing = ModelNotFoundError(
            f"{model_id} is neither a bundled model nor in the Hub's cache, "
            "and offline the Hub is not asked.",
            hint="Name a local folder, or run once without --offline (and HF_HUB_OFFLINE).",
        )
        raise _with_names(missing, model_id)
    return facts


def _on_this_machine(
    model_id: str, revision: str | None, spec: Path | None, reason: str
) -> ModelFacts | None:
    """Bundled facts, else cached ones; a revision that was asked for is sought in the cache."""
    if spec is not None and revision is None:
        return _bundled(spec, revision, reason)
    try:
        facts = hub_model.read_hub(model_id, revision=revision, offline=True)
    except HubUnreachableError:
        return None if spec is None else _bundled(spec, revision, reason)
    return _noted(facts, f"{reason} The copy in the cache of its client was used.")


def _bundled(spec: Path, revision: str | None, reason: str) -> ModelFacts:
    facts = model_specs.load_model_spec(spec)
    of = f" of commit {facts.revision[:12]}" if facts.revision else ""
    note = f"{reason} The bundled facts about {facts.id}{of} were used."
    if revision is not None and revision != facts.revision:
        note += f" They may differ from the revision {revision} that was asked for."
    return _noted(facts, note)


def _noted(facts: ModelFacts, note: str) -> ModelFacts:
    return facts.model_copy(update={"notes": (note, *facts.notes)})


def _with_names(error: FactsError, model_id: str) -> FactsError:
    """The same error, with bundled names in its hint that look like the one asked for."""
    alike = nearest(model_id, model_specs.list_model_specs())
    hint = " ".join(text for text in (error.hint, alike) if text)
    return type(error)(error.message, hint=hint, location=error.location)
