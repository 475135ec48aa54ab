"""What a scenario file may say: `kvplan.scenario/1` as types."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from kvplan.errors import shown
from kvplan.scenario.fields import (
    Context,
    Count,
    EngineName,
    Expected,
    Name,
    Size,
    Word,
    sentence,
)
from kvplan.scenario.keys import split_keys
from kvplan.scenario.workload import Workload

SCHEMA = "kvplan.scenario/1"


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


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


def _varied_key(path: str) -> str:
    def read(text: str) -> tuple[str, ...]:
        return split_keys(text, Settings.model_fields)

    sentence(read, path)
    return path


def _distinct(values: list[Any]) -> list[Any]:
    seen: set[str] = set()
    for value in values:
        written = json.dumps(value, sort_keys=True)
        if written in seen:
            raise ValueError(f"{shown(value)} stands here twice. Two variants can't be the same.")
        seen.add(written)
    return values


_VariedKey = Annotated[str, AfterValidator(_varied_key)]
_Varied = Annotated[
    list[Any],
    Field(min_length=1, max_length=100, json_schema_extra={"uniqueItems": True}),
    AfterValidator(_distinct),
]


class Scenario(Settings):
    """One deployment."""

    matrix: dict[_VariedKey, _Varied] | None = Field(
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
