"""A YAML document → a pydantic model, with every problem reported at its line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kvplan.errors import InputError, nearest
from kvplan.sources.yaml_document import KeyPath, YamlDocument

ModelT = TypeVar("ModelT", bound=BaseModel)

# More than a reader takes in at once.
_MOST_PROBLEMS = 20
_HINT = "Correct the file at the place named."


def validate(document: YamlDocument, model: type[ModelT]) -> ModelT:
    """Builds a model from a document; types are taken as they are written, without conversion.

    Raises:
        InputError: the document does not fit; one error lists all problems, each with its place,
            and for an unknown key the known ones that look like it.
    """
    built, problems = find_problems(document, model)
    if built is not None:
        return built
    if len(problems) == 1:
        ((location, sentence),) = problems
        raise InputError(sentence, hint=_HINT, location=location)
    lines = [f"{location}: {text}" for location, text in problems]
    more = len(lines) - _MOST_PROBLEMS
    if more > 0:
        lines[_MOST_PROBLEMS:] = [f"and {more:,} more"]
    raise InputError(
        "\n  ".join([f"{len(problems):,} problems:", *lines]), hint=_HINT, location=document.name
    )


def find_problems(
    document: YamlDocument, model: type[ModelT]
) -> tuple[ModelT | None, list[tuple[str, str]]]:
    """The model and no problem, or None and every problem: its place and a sentence.

    Beyond the first 20 the sentences are empty: more than a reader takes in at once.
    """
    try:
        # As JSON, a list may fill a tuple and a whole number a float, but "8" is no number.
        return model.model_validate_json(json.dumps(document.data), strict=True), []
    except ValidationError as error:
        details = error.errors(include_url=False)
    problems = _problems(document, model, details)
    return None, [(document.location(path), text) for path, text in problems.items()]


def _problems(
    document: YamlDocument, model: type[BaseModel], details: list[ErrorDetails]
) -> dict[KeyPath, str]:
    """One sentence a place, in the order of the file."""
    grouped: dict[KeyPath, list[ErrorDetails]] = {}
    for detail in details:
        grouped.setdefault(_path_in(document, detail), []).append(detail)
    ordered = sorted(grouped, key=lambda path: _order(document, path))
    return {
        path: _sentence(model, path, grouped[path]) if count < _MOST_PROBLEMS else ""
        for count, path in enumerate(ordered)
    }


def _order(document: YamlDocument, path: KeyPath) -> tuple[tuple[int, int], str]:
    known = path
    while known not in document.places:
        known = known[:-1]
    return document.places[known], str(path)


def _path_in(document: YamlDocument, detail: ErrorDetails) -> KeyPath:
    """Where in the document the problem is.

    pydantic's own path also names the members of a union that it tried; those are no keys.
    """
    path: KeyPath = ()
    for part in detail["loc"]:
        if (*path, part) in document.places:
            path = (*path, part)
    if detail["type"] == "missing":
        path = (*path, detail["loc"][-1])
    return path


def _sentence(model: type[BaseModel], path: KeyPath, details: list[ErrorDetails]) -> str:
    first = details[0]
    name = f"`{_dotted(path)}`" if path else "The file"
    context = first.get("ctx", {})
    match first["type"]:
        case "missing":
            return f"{name} is missing."
        case "extra_forbidden":
            hint = nearest(str(path[-1]), _known_keys(model, path[:-1]))
            return f"`{_short(str(path[-1]))}` is not a known key." + (f" {hint}" if hint else "")
        case "union_tag_not_found":
            return f"{name} lacks the key {context['discriminator']}."
        case "union_tag_invalid":
            tag = _short(repr(context["tag"]))
            return f"{name}: {context['discriminator']} is {context['expected_tags']}, not {tag}."
        case "value_error" | "assertion_error":
            text = str(context["error"])
            return f"{name}: {text}" + ("" if text.endswith((".", "?")) else ".")
    wanted = " or ".join(dict.fromkeys(_wanted(detail) for detail in details))
    return f"{name} should be {wanted}, not {_short(json.dumps(first['input']))}."


def _wanted(detail: ErrorDetails) -> str:
    message, limits = detail["msg"], detail.get("ctx", {})
    match detail["type"]:
        case "too_short" | "string_too_short":
            return _length("at least", limits["min_length"], detail["type"])
        case "too_long" | "string_too_long":
            return _length("at most", limits["max_length"], detail["type"])
        case "string_pattern_mismatch":
            return f"text of the form {limits['pattern']}"
    for start in ("Input should be a valid ", "Input should be "):
        if message.startswith(start):
            kind = message.removeprefix(start)
            return f"a valid {kind}" if start.endswith("valid ") else kind
    return f"acceptable ({message[:1].lower()}{message[1:]})"


def _length(bound: str, count: int, kind: str) -> str:
    noun = "character" if kind.startswith("string") else "item"
    return f"something with {bound} {count:,} {noun}" + ("" if count == 1 else "s")


def _dotted(path: KeyPath) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{_short(part)}"
    return text.removeprefix(".")


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"


def _known_keys(model: type[BaseModel], path: KeyPath) -> list[str]:
    """The keys that may stand at a path, over all models that may stand there."""
    found: list[Any] = [model]
    for part in path:
        found = [inner for outer in found for inner in _step(outer, part)]
    models = (member for annotation in found for member in _members(annotation))
    return [name for member in models if _is_model(member) for name in member.model_fields]


def _step(annotation: Any, part: str | int) -> Iterator[Any]:
    for member in _members(annotation):
        arguments = get_args(member)
        if _is_model(member):
            if part in member.model_fields:
                yield member.model_fields[part].annotation
        elif isinstance(part, int):
            yield from arguments
        elif get_origin(member) in (dict, Mapping):
            yield arguments[1]


def _members(annotation: Any) -> Iterator[Any]:
    """The members of a union; anything else is its own only member."""
    if get_origin(annotation) is Annotated:
        yield from _members(get_args(annotation)[0])
    elif isinstance(annotation, type) or get_origin(annotation) in (tuple, list, dict, Mapping):
        yield annotation
    else:
        for member in get_args(annotation):
            yield from _members(member)


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
