"""`kvplan.scenario/1` as a JSON Schema, for editors and validators.

It refuses what the loader refuses as far as a schema can say it of one file. What several keys,
layers or files say together only the loader knows.
"""

from __future__ import annotations

from typing import Any

from kvplan.engines.registry import PLACES
from kvplan.scenario import figures
from kvplan.scenario.kinds import ARE, EXAMPLES, Kind
from kvplan.scenario.schema import ScenarioFile, Settings

_REFERENCE = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
_NOT_TEXT = ("integer", "number", "boolean")
_ORDER = ">=|<=|==|!=|>|<"
_ANY_NAME = "[A-Za-z0-9_.-]+"
_NUMBER = r"-?[0-9]+([.][0-9]+)?"
# What may stand on the right of a comparison, by kind.
_VALUES: dict[Kind, str] = {
    "count": r"-?[0-9][0-9,_]*",
    "tokens": r"[0-9][0-9,_]*([.][0-9]+)?\s*[kKmM]?",
    "bytes": r"[0-9][0-9,_]*([.][0-9]+)?\s*([KMGTkmgt][Ii]?)?[Bb]?",
    "share": rf"{_NUMBER}\s*%?",
    "number": _NUMBER,
    "money": r"[0-9]+([.][0-9]+)?(\s*[A-Z]{3})?",
    "text": r"[A-Za-z0-9_.+/@-]+",
    "flag": "true|false",
    "any": r"[A-Za-z0-9_.+/@,-]+",
}


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file.

    A reference to the environment (``${NAME}``) may stand wherever a single value may.
    """
    schema = ScenarioFile.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs")
    for name in ("Scenario", "Settings"):
        _narrow(definitions[name]["properties"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:kvplan:schema:scenario-1",
        **schema,
        "$defs": {name: _with_references(each) for name, each in definitions.items()},
    }


def _narrow(properties: dict[str, Any]) -> None:
    """Says of engines, expectations and matrices what their types leave to code."""
    engines = "|".join(name.replace(".", "[.]") for name in PLACES)
    for choice in properties["engine"]["anyOf"]:
        if choice.get("type") == "string":
            choice["pattern"] = rf"^({engines})(==[vb]?[0-9].*)?$"
    for choice in properties["expect"]["anyOf"]:
        if choice.get("type") == "array":
            choice["items"] = {**choice["items"], "anyOf": [*_comparisons(), _REFERENCE]}
    for choice in properties.get("matrix", {}).get("anyOf", ()):
        if choice.get("type") == "object":
            keys = "|".join(name for name in Settings.model_fields if name != "expect")
            choice["propertyNames"] = {"pattern": rf"^({keys})([.].+)?$"}


def _comparisons() -> list[dict[str, Any]]:
    """One pattern a kind: its names, and on the right a value or another of those names."""
    names: dict[Kind, list[str]] = {}
    for name in sorted({*figures.SHORT, *figures.COMPUTED, *figures.fields()}):
        names.setdefault(figures.kind_of(name), []).append(name.replace(".", "[.]"))
    names["bytes"].append(f"ledger[.]{_ANY_NAME}")
    names["any"] = [f"engine[.]options[.]{_ANY_NAME}"]
    return [
        # The second key is the language server's own: what an editor shows in the pattern's stead.
        {
            "pattern": _comparison("|".join(known), kind),
            "patternErrorMessage": f"{ARE[kind]} is compared with {EXAMPLES[kind]}",
        }
        for kind, known in names.items()
    ]


def _comparison(names: str, kind: Kind) -> str:
    operators = "==|!=" if kind in ("text", "flag") else _ORDER
    other = "" if kind in ("text", "any", "flag") else "|[a-z][a-z_.]*"
    return rf"^\s*({names})\s*({operators})\s*({_VALUES[kind]}{other})\s*$"


def _with_references(definition: dict[str, Any]) -> dict[str, Any]:
    """A definition whose values may be references as well."""
    properties = {name: _referable(each) for name, each in definition.get("properties", {}).items()}
    return {**definition, "properties": properties} if properties else definition


def _referable(schema: dict[str, Any]) -> dict[str, Any]:
    if not _restricts(schema):
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], _REFERENCE]}
    about: dict[str, Any] = {
        key: schema[key] for key in ("description", "default", "title") if key in schema
    }
    return {**about, "anyOf": [schema, _REFERENCE]}


def _restricts(schema: dict[str, Any]) -> bool:
    """Whether a single value is taken, and not any text."""
    choices = schema.get("anyOf")
    if choices is not None:
        return any(_restricts(each) for each in choices)
    return schema.get("type") in _NOT_TEXT or "enum" in schema or "pattern" in schema
