"""What a scenario file may say: `kvplan.scenario/1` as types, and as a JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kvplan.scenario.fields import (
    Context,
    Count,
    EngineName,
    Expected,
    Name,
    Seconds,
    Size,
    Tokens,
    Word,
)

SCHEMA = "kvplan.scenario/1"
Scope = Literal["global", "tenant", "user", "session"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Prefix(_Part):
    """Tokens that many requests start with."""

    name: Name = Field(description="What is shared: system prompt, tools, a document.")
    tokens: Tokens = Field(description="Its length.")
    scope: Scope = Field(
        "tenant", description="Who shares it: everybody, a tenant, a user, one session."
    )
    version: Word | None = Field(
        None, description="Changes whenever the text does, so that old blocks are not counted on."
    )
    distinct: Count = Field(1, description="Different ones of it that are resident at once.")
    tenants: Count | None = Field(None, description="Tenants whose requests start with it.")
    personal_data: bool = Field(
        default=False, description="It holds data about a person, such as a profile or a history."
    )


class Sessions(_Part):
    """Conversations whose cache is kept between turns."""

    ttl: Seconds | None = Field(None, description="How long an idle session keeps its cache.")
    count: Count | None = Field(None, description="Sessions that are kept at once.")
    tokens: Tokens | None = Field(None, description="Tokens that one of them keeps.")


class Workload(_Part):
    """What is asked of the deployment."""

    input_tokens: Tokens | None = Field(None, description="Tokens of a prompt, at most.")
    output_tokens: Tokens | None = Field(None, description="Tokens of an answer, at most.")
    tokens_p99: Tokens | None = Field(
        None, description="Prompt and answer together that 99 % of requests stay below."
    )
    concurrency: Count | None = Field(None, description="Requests at once.")
    seconds_per_request: Seconds | None = Field(
        None, description="How long a request is held; with a price it gives cost_per_request."
    )
    trace: Word | None = Field(None, description="A recorded trace (a path). Not planned yet.")
    prefixes: tuple[Prefix, ...] = Field((), description="What requests share.")
    sessions: Sessions | None = Field(None, description="What is kept between turns.")


class Prices(_Part):
    """What the hardware costs."""

    gpu_hour: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        description="Price of one GPU for an hour."
    )
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = Field(
        "USD", description="Three letters."
    )


class Pool(_Part):
    """GPUs that several scenarios share."""

    gpu: Word = Field(description="The GPU.")
    count: Count = Field(description="How many there are.")
    prices: Prices | None = Field(None, description="What one of them costs.")


class Settings(_Part):
    """What may stand in a scenario and in `defaults`."""

    description: Annotated[str, Field(max_length=2000)] | None = Field(
        None, description="For people."
    )
    model: Word | None = Field(
        None, description="Hub id (org/name@revision), bundled id, or a path below this file."
    )
    gpu: Word | None = Field(None, description="Name of a GPU, or custom:48GiB.")
    engine: EngineName | None = Field(None, description="Serving engine, pinned: vllm==0.33.0.")
    tp: Count | None = Field(None, description="Tensor parallel size.")
    pp: Count | None = Field(None, description="Pipeline parallel size.")
    dp: Count | None = Field(None, description="Data parallel size.")
    dcp: Count | None = Field(None, description="Decode context parallel size.")
    gpus_per_node: Count | None = Field(None, description="GPUs of one machine.")
    context: Context | None = Field(
        None, description="Tokens a request may have; max: the model's own; auto: what fits."
    )
    concurrency: Count | None = Field(None, description="Requests at once over the deployment.")
    weights: Word | None = Field(None, description="Format of the weights: auto, fp8, awq.")
    kv_dtype: Word | None = Field(None, description="The engine's own cache type.")
    dtype: Word | None = Field(None, description="The compute type.")
    kv_budget: Size | None = Field(
        None, description="Plan exactly this KV cache on each GPU: 40.5GiB."
    )
    options: dict[str, Any] | None = Field(
        None, description="The engine's options by their own names."
    )
    command: Annotated[str, Field(min_length=1, max_length=20_000)] | None = Field(
        None, description="A command that starts vLLM, as it is; keys beside it win."
    )
    pool: Name | None = Field(None, description="The pool that the GPUs come from.")
    prices: Prices | None = Field(None, description="What the hardware costs.")
    workload: Workload | None = Field(None, description="What is asked of it.")
    expect: tuple[Expected, ...] | None = Field(
        None, description="What has to hold: NAME OPERATOR VALUE. `verdict == fits` is implied."
    )


class Scenario(Settings):
    """One deployment."""

    matrix: dict[str, Annotated[list[Any], Field(min_length=1, max_length=100)]] | None = Field(
        None, description="Values by key; the scenario is checked for every combination."
    )


class ScenarioFile(_Part):
    """A scenario file."""

    schema_: Literal["kvplan.scenario/1"] = Field(alias="schema", description="Names the format.")
    extends: Word | tuple[Word, ...] | None = Field(
        None, description="Files whose defaults, pools and scenarios come first (relative paths)."
    )
    defaults: Settings = Field(default_factory=Settings, description="Holds for every scenario.")
    pools: dict[Name, Pool] = Field(default_factory=dict, description="GPUs that are shared.")
    scenarios: dict[Name, Scenario] = Field(
        default_factory=dict, description="The deployments by name."
    )


_REFERENCE = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
_NOT_TEXT = ("integer", "number", "boolean")


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file, for editors and validators.

    A reference to the environment (``${NAME}``) may stand wherever a single value may.
    """
    schema = ScenarioFile.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:kvplan:schema:scenario-1",
        **schema,
        "$defs": {name: _with_references(each) for name, each in definitions.items()},
    }


def _with_references(definition: dict[str, Any]) -> dict[str, Any]:
    """A definition whose numbers may be references as well."""
    properties = {name: _referable(each) for name, each in definition.get("properties", {}).items()}
    return {**definition, "properties": properties} if properties else definition


def _referable(schema: dict[str, Any]) -> dict[str, Any]:
    choices = schema.get("anyOf", [schema])
    if not any(each.get("type") in _NOT_TEXT or "enum" in each for each in choices):
        return schema
    if "anyOf" in schema:
        return {**schema, "anyOf": [*choices, _REFERENCE]}
    about: dict[str, Any] = {
        key: schema[key] for key in ("description", "default", "title") if key in schema
    }
    return {**about, "anyOf": [schema, _REFERENCE]}
