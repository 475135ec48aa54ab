"""A first version of a model spec from facts, and what a person has to add to it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kvplan.errors import UsageError
from kvplan.models.facts import ModelFacts
from kvplan.sources.local import CONFIG, PROCESSORS
from kvplan.sources.model_specs import ModelSpecFile
from kvplan.sources.references import is_model_id

_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
_OTHER_SPEC = re.compile(r"[^/]*\.ya?ml, from (?P<source>.+)", re.DOTALL)
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_UNKNOWN_ID = "model"
_LONGEST_NAME = 96
_LONGEST_TEXT = 2000  # of a spec's texts


def check_kind(facts: ModelFacts) -> None:
    """Refuses what has no ``config.json`` to take keys from.

    Raises:
        UsageError: a GGUF file.
    """
    if facts.gguf:
        raise UsageError(
            "A model spec takes its keys from a config.json, and a GGUF file has none.",
            hint="Name the repository or the folder that the file was made from.",
            location=facts.source,
        )


def draft_spec(
    facts: ModelFacts, config: dict[str, Any], processor: dict[str, Any] | None = None
) -> ModelSpecFile:
    """The spec that facts give.

    Args:
        facts: Where the model was read, and the size of its files.
        config: The keys of the configuration to write.
        processor: Those of the processor's file, or None.
    """
    parts: dict[str, Any] = {
        "schema": "kvplan.model/1",
        "id": _id(facts),
        "config": config,
        "source": _source(facts)[:_LONGEST_TEXT],
        "revision": facts.revision if _is_commit(facts.revision) else None,
        "processor": _processor(facts, processor),
        "checkpoint": _checkpoint(facts),
        "license": _license(facts),
    }
    return ModelSpecFile.model_validate(parts)


def missing_facts(facts: ModelFacts) -> tuple[str, ...]:
    """What is not known and a spec should state, a sentence each."""
    sentences = []
    if not _named(facts):
        sentences.append(f"No id is known: {_id(facts)} is made from the file's place.")
        sentences.append("No public source is known: replace `source` with one others can open.")
    if not _is_commit(facts.revision):
        sentences.append("No revision is known.")
    if facts.checkpoint_bytes is None:
        sentences.append("No size of the weight files is known.")
    if facts.checkpoint_parameters is None:
        sentences.append("No number of parameters is stated.")
    if facts.license is None:
        sentences.append("No licence was found on the model's card: add it with its source.")
    return tuple(sentences)


def _is_commit(revision: str | None) -> bool:
    return revision is not None and _COMMIT.fullmatch(revision) is not None


def _from_the_hub(facts: ModelFacts) -> bool:
    return facts.revision is not None and f"{facts.revision}/{CONFIG}" in facts.source


def _named(facts: ModelFacts) -> bool:
    """Whether the id is the model's own, not a place on this machine."""
    return _from_the_hub(facts) or _OTHER_SPEC.fullmatch(facts.source) is not None


def _id(facts: ModelFacts) -> str:
    """The model's id, or a name made of the folder's: ``ORG--NAME`` is how files write it."""
    if _named(facts):
        return facts.id
    path = Path(facts.source)
    if not path.suffix:  # standard input
        return _UNKNOWN_ID
    stem = path.resolve().parent.name if path.name == CONFIG else path.stem
    name = stem.replace("--", "/", 1)
    if is_model_id(name):
        return name
    tidy = _NOT_IN_A_NAME.sub("-", stem)[:_LONGEST_NAME].strip(".-")
    return tidy if is_model_id(tidy) else _UNKNOWN_ID


def _source(facts: ModelFacts) -> str:
    if _from_the_hub(facts):
        return f"{facts.id}@{facts.revision}:{CONFIG}"
    other = _OTHER_SPEC.fullmatch(facts.source)
    if other is not None:
        return other["source"]
    name = Path(facts.source).name
    # The bytes of a file's name need not be text.
    name = name if name.isprintable() else "A file"
    return f"{name}, not published; replace this with a source others can open"


def _processor(facts: ModelFacts, processor: dict[str, Any] | None) -> dict[str, Any] | None:
    if not processor:
        return None
    where = f"{facts.id}@{facts.revision}:" if _from_the_hub(facts) else ""
    return {"config": processor, "source": f"{where}{PROCESSORS[0]}"}


def _license(facts: ModelFacts) -> dict[str, Any] | None:
    if facts.license is None:
        return None
    return {"value": facts.license, "source": facts.license_source or "not stated"}


def _checkpoint(facts: ModelFacts) -> dict[str, Any] | None:
    if facts.checkpoint_bytes is None and facts.checkpoint_parameters is None:
        return None
    where = f"{facts.id}@{facts.revision}:" if _from_the_hub(facts) else ""
    return {
        "total_bytes": facts.checkpoint_bytes,
        "parameters": facts.checkpoint_parameters,
        "source": f"{where}{facts.checkpoint_source or 'not stated'}"[:_LONGEST_TEXT],
    }
