"""kvplan.lock: the facts that scenarios were planned from, and what came of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kvplan._version import __version__
from kvplan.check_result import TrafficResult
from kvplan.errors import InputError
from kvplan.hardware import GpuSpec, device_memory
from kvplan.models.spec import ModelSpec
from kvplan.plan import Plan
from kvplan.scenario.question import Question
from kvplan.sources.files import read_whole
from kvplan.sources.text_lines import opened

SCHEMA = "kvplan.lock/1"
NAME = "kvplan.lock"
_LARGEST = 64 * 2**20
_PART = 2**20


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


class LockedModel(_Part):
    """A model as it was read.

    Attributes:
        config_sha256: Of ``config.json`` with sorted keys and no spaces.
    """

    revision: str | None
    config_sha256: str
    spec: ModelSpec


class LockedGpu(_Part):
    """A GPU as it was planned for, and its memory as an engine sees it."""

    total_bytes: int
    spec: GpuSpec


class LockedPlan(_Part):
    """What was planned for one scenario: the facts by which drift is told."""

    model: str
    gpu: str
    engine: str
    revision: str | None
    config_sha256: str
    gpu_bytes: int
    gpus: int
    options: dict[str, Any]
    context: int | None
    kv_dtype: str | None
    weights_bytes: int
    kv_bytes_per_token: float | None
    kv_bytes_per_request: int | None
    tokens_low: int | None
    requests: int | None
    verdict: str
    draft_sha256: str | None = None
    trace_sha256: str | None = None
    held_requests: int | None = None
    overload_risk: float | None = None
    replicas_needed: int | None = None


class Lock(_Part):
    """The file."""

    schema_: Literal["kvplan.lock/1"] = Field("kvplan.lock/1", alias="schema")
    kvplan_version: str = __version__
    models: dict[str, LockedModel] = {}
    gpus: dict[str, LockedGpu] = {}
    scenarios: dict[str, LockedPlan] = {}

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )


def config_hash(config: Mapping[str, Any]) -> str:
    """SHA-256 of a configuration, whatever the order of its keys."""
    text = json.dumps(config, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def locked_gpu(gpu: GpuSpec) -> LockedGpu:
    """A device as the lock keeps it."""
    return LockedGpu(total_bytes=device_memory(gpu).total, spec=gpu)


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes.

    Raises:
        UsageError: there is no such file.
        InputError: it can't be read.
    """
    digest = hashlib.sha256()
    with opened(str(path)) as stream:
        while part := stream.read(_PART):
            digest.update(part)
    return digest.hexdigest()


def locked_plan(
    question: Question,
    plan: Plan,
    *,
    model: str,
    config_sha256: str,
    draft_sha256: str | None = None,
    trace_sha256: str | None = None,
    traffic: TrafficResult | None = None,
) -> LockedPlan:
    """A plan as the lock keeps it.

    Args:
        question: What was asked.
        plan: What came of it.
        model: The lock's key of the model.
        config_sha256: Of the model's configuration.
        draft_sha256: Of the configuration of the model that drafts tokens.
        trace_sha256: Of the trace.
        traffic: What requests that come and go do to the plan.
    """
    kv, capacity = plan.kv, plan.capacity
    weights = sum(line.bytes for line in plan.ledger if line.name.startswith("weights"))
    return LockedPlan(
        model=model,
        gpu=question.gpu,
        engine=f"{plan.engine.name}=={plan.engine.version}",
        revision=plan.model.revision,
        config_sha256=config_sha256,
        gpu_bytes=plan.gpu.total_bytes,
        gpus=plan.gpu.count,
        options=json.loads(json.dumps(plan.engine.options, default=str)),
        context=plan.workload.context,
        kv_dtype=kv.dtype if kv else None,
        weights_bytes=weights,
        kv_bytes_per_token=kv.bytes_per_token if kv else None,
        kv_bytes_per_request=kv.bytes_per_request if kv else None,
        tokens_low=capacity.tokens_low if capacity else None,
        requests=capacity.requests if capacity else None,
        verdict=plan.verdict,
        draft_sha256=draft_sha256,
        trace_sha256=trace_sha256,
        held_requests=traffic.plan.held.requests if traffic else None,
        overload_risk=traffic.overload_risk if traffic else None,
        replicas_needed=traffic.replicas_needed if traffic else None,
    )


def dumped(lock: Lock) -> str:
    """The lock as text, in an order that keeps differences between two of them small."""
    data = lock.model_dump(mode="json", by_alias=True)
    for part in ("models", "gpus", "scenarios"):
        data[part] = dict(sorted(data[part].items()))
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def read_lock(path: Path) -> Lock:
    """Reads a lock.

    Raises:
        UsageError: there is no such file.
        InputError: it is no lock of this version of kvplan.
    """
    return parse_lock(read_whole(path, limit=_LARGEST), str(path))


def parse_lock(raw: bytes, name: str) -> Lock:
    """Reads the bytes of a lock; ``name`` stands for the file in messages.

    Raises:
        InputError: it is no lock of this version of kvplan.
    """
    try:
        return Lock.model_validate_json(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part)[:60] for part in first["loc"])
        raise InputError(
            f"This is no lock of this version of kvplan ({where or 'not JSON'}: {first['msg']}).",
            hint="Make it anew with `kvplan lock`.",
            location=name,
        ) from None
