"""Bundled facts of models: ``model_specs/ORG--NAME.yaml``, and the same form by a user's hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kvplan.errors import InputError
from kvplan.models.facts import ModelFacts
from kvplan.sources.bundled import specs_dir
from kvplan.sources.references import is_model_id
from kvplan.sources.yaml_reader import YamlDocument, read_yaml, validate

_SUFFIX = ".yaml"
_SEPARATOR = "--"  # no id has it, by the Hub's rules

Text = Annotated[str, Field(min_length=1, max_length=2000)]
Count = Annotated[int, Field(gt=0, lt=2**60)]


class StatedCheckpoint(BaseModel):
    """Size of the weight files as a source states it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    total_bytes: Count | None = None
    parameters: Count | None = None
    source: Text


class StatedLicense(BaseModel):
    """The licence's name as a source states it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    value: Text
    source: Text


class StatedProcessor(BaseModel):
    """Keys of the file that says how images are prepared, only those that matter."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    config: Annotated[dict[str, Any], Field(min_length=1)]
    source: Text


class ModelSpecFile(BaseModel):
    """One file of the form ``kvplan.model/1``.

    Attributes:
        id: The model's name on the Hub.
        base: Another bundled model whose ``config`` this one starts from.
        config: Keys of ``config.json``, only those that matter. On top of a base's: mappings are
            merged, and null takes a key away.
        source: Where ``config`` was read: repository@commit:path or an address.
        revision: The commit on the Hub that the facts belong to, if known.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    form: Literal["kvplan.model/1"] = Field(alias="schema")
    id: Text
    base: Text | None = None
    config: Annotated[dict[str, Any], Field(min_length=1)] | None = None
    source: Text | None = None
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")] | None = None
    processor: StatedProcessor | None = None
    checkpoint: StatedCheckpoint | None = None
    license: StatedLicense | None = None
    notes: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not is_model_id(self.id):
            raise ValueError(f"{self.id[:100]!r} is not a name that a model can have.")
        if self.base is None and self.config is None:
            raise ValueError("A model needs a config, a base, or both.")
        if (self.config is None) != (self.source is None):
            raise ValueError("A config needs its source, and a source its config.")
        return self


def list_model_specs() -> tuple[str, ...]:
    """Ids of all bundled models, sorted; only file names are read."""
    return tuple(sorted((_id_of(path) for path in _spec_files()), key=str.casefold))


def find_model_spec(model_id: str) -> Path | None:
    """The bundled file of a model, whatever the case of its name, or None.

    The organization may be left out where that leaves one model.
    """
    wanted = model_id.casefold()
    paths = {_id_of(path).casefold(): path for path in _spec_files()}
    if wanted in paths:
        return paths[wanted]
    if "/" in wanted:
        return None
    same_name = [path for name, path in paths.items() if name.rpartition("/")[2] == wanted]
    return same_name[0] if len(same_name) == 1 else None


def _spec_files() -> tuple[Path, ...]:
    return tuple(specs_dir("model_specs").glob(f"*{_SUFFIX}"))


def _id_of(path: Path) -> str:
    return path.name.removesuffix(_SUFFIX).replace(_SEPARATOR, "/", 1)


def read_model_spec(path: Path) -> ModelSpecFile:
    """Reads and checks one file, without its base.

    Raises:
        InputError: it can't be read, or is not of the form.
    """
    return _checked(read_yaml(path))


def load_model_spec(path: Path) -> ModelFacts:
    """The facts that a file states, with its base's configuration underneath.

    Raises:
        InputError: the file or its base can't be read, or the base is none.
    """
    return facts_of(read_yaml(path))


def facts_of(document: YamlDocument) -> ModelFacts:
    """The facts that a document of the form states, with its base's configuration underneath.

    Raises:
        InputError: it is not of the form, or its base can't be read or is none.
    """
    spec = _checked(document)
    base = None if spec.base is None else _read_base(document, spec.base)
    config = _merged(base.config or {} if base else {}, spec.config or {}, keep_null=base is None)
    stated = spec.checkpoint
    return ModelFacts(
        id=spec.id,
        revision=spec.revision,
        source=_source(document, spec, base),
        config=config,
        processor=_first_processor(spec, base),
        checkpoint_bytes=stated.total_bytes if stated else None,
        checkpoint_parameters=stated.parameters if stated else None,
        checkpoint_source=stated.source if stated else None,
        license=spec.license.value if spec.license else None,
        license_source=spec.license.source if spec.license else None,
        notes=spec.notes,
    )


def _first_processor(spec: ModelSpecFile, base: ModelSpecFile | None) -> dict[str, Any] | None:
    """The model's own; else its base's, which a fine-tune or a quantized variant keeps."""
    for stated in (spec.processor, base and base.processor):
        if stated is not None:
            return stated.config
    return None


def _checked(document: YamlDocument) -> ModelSpecFile:
    if document.data.get("schema") == "kvplan.gpu/1":
        raise InputError(
            "This is a GPU spec (schema kvplan.gpu/1), not a model spec.",
            hint="Name a model here, and the GPU by its id with --gpu.",
            location=document.location(("schema",)),
        )
    return validate(document, ModelSpecFile)


def _read_base(document: YamlDocument, base_id: str) -> ModelSpecFile:
    where = document.location(("base",))
    path = find_model_spec(base_id)
    if path is None:
        raise InputError(
            f"No bundled model is called {base_id[:100]!r}.",
            hint="`kvplan models` lists the bundled models.",
            location=where,
        )
    base = read_model_spec(path)
    if base.base is not None:
        raise InputError(
            f"{base.id} has a base itself, and one level of it is all there is.",
            hint=f"Use its base, {base.base}.",
            location=where,
        )
    return base


def _merged(base: Mapping[str, Any], over: Mapping[str, Any], *, keep_null: bool) -> dict[str, Any]:
    """``over`` on top of ``base``; unless ``keep_null``, null takes a key away."""
    result = dict(base)
    for key, value in over.items():
        if value is None and not keep_null:
            result.pop(key, None)
        elif isinstance(value, dict):
            below = result.get(key)
            below = below if isinstance(below, dict) else {}
            result[key] = _merged(below, value, keep_null=keep_null)
        else:
            result[key] = value
    return result


def _source(document: YamlDocument, spec: ModelSpecFile, base: ModelSpecFile | None) -> str:
    stated = [source for source in (base and base.source, spec.source) if source]
    return f"{Path(document.name).name}, from {' and '.join(stated)}"
