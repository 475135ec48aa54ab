"""Reference cases of llama.cpp: how they are asked, and what they must be equal to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import kvplan
from kvplan.architectures import read_model
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec
from kvplan.plan import Plan
from kvplan.sources.gguf_model import read_gguf

# What the reference calls the options, and what the public interface does.
_NAMES = {"type_k": "cache_type_k", "type_v": "cache_type_v", "fa": "flash_attn"}
BOX = "custom:8192GiB"


@lru_cache(maxsize=128)
def spec_of(path: Path) -> ModelSpec:
    """The model in a GGUF file."""
    return read_model(read_gguf(path))


def spec_from(metadata: Mapping[str, Any]) -> ModelSpec:
    """The model that a file with such metadata describes."""
    lists = {key: tuple(v) if isinstance(v, list) else v for key, v in metadata.items()}
    return read_model(ModelFacts(id="case", source="case", config=lists, gguf=True))


def plan_of(spec: ModelSpec, params: Mapping[str, Any], **more: Any) -> Plan:
    """The plan on devices that hold everything."""
    options = {_NAMES.get(name, name): value for name, value in params.items()} | more
    return kvplan.size(spec, BOX, engine="llama.cpp", engine_options=options, advice=False)


def expected_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The reference's answer in few fields."""
    if not row["ok"]:
        return {"refused": _reason(row)}
    measured = row["measured"]
    caches = [[c["cells"], c["layers"], c["streams"], c["mib"]] for c in measured["kv_caches"]]
    states = [[s["cells"], s["rs_seq"], s["mib"]] for s in measured["recurrent"]]
    return {
        "bytes": measured["context_bytes"],
        "n_ctx": measured["n_ctx"],
        "n_ctx_seq": measured["n_ctx_seq"],
        "n_ubatch": measured["n_ubatch"],
        "caches": caches,
        "states": states,
    }


def _reason(row: dict[str, Any]) -> str:
    """Why llama.cpp refuses; where it says nothing, types of K and V differ with latent keys."""
    quantized = any("quantized V cache requires flash_attn" in text for text in row["error"])
    return "without flash attention" if quantized else "different types for K"


def difference(spec: ModelSpec, params: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """What differs, or nothing."""
    plan = plan_of(spec, params)
    if plan.verdict == "refused":
        said = plan.reasons[0].message
        return "" if expected.get("refused", "-") in said else f"refused: {said}"
    if "refused" in expected:
        return f"not refused: {params}"
    assert plan.kv is not None
    got = {
        "bytes": plan.kv.allocated_bytes,
        "n_ctx": plan.engine.options["n_ctx"],
        "n_ctx_seq": plan.workload.context,
        "n_ubatch": plan.engine.options["n_ubatch"],
    }
    wrong = [f"{name}: {got[name]} not {expected[name]}" for name in got
             if got[name] != expected[name]]  # fmt: skip
    return "; ".join([*wrong, *_lines(plan, expected)])


def _lines(plan: Plan, expected: Mapping[str, Any]) -> list[str]:
    """Ledger lines beside the caches that llama.cpp logs: cells, streams and MiB of each."""
    lines = [line for line in plan.ledger if line.section == "pool"]
    kv = [line for line in lines if line.name.startswith("kv_cache")]
    logged: dict[tuple[int, int], float] = {}
    for cells, _, streams, mib in expected["caches"]:
        logged[cells, streams] = logged.get((cells, streams), 0.0) + mib
    ours: dict[tuple[int, int], int] = {}
    for line in kv:
        key = (int(line.inputs["cells"]), int(line.inputs["streams"]))
        ours[key] = ours.get(key, 0) + line.bytes
    wrong = [
        f"{key}: {ours.get(key)} bytes, logged {mib} MiB"
        for key, mib in logged.items()
        if abs(ours.get(key, 0) / 2**20 - mib) > 0.006
    ]
    states = sum(line.bytes for line in lines if line.name == "recurrent_state") / 2**20
    if abs(states - sum(mib for *_, mib in expected["states"])) > 0.006:
        wrong.append(f"states: {states} MiB, logged {expected['states']}")
    return wrong


def device_difference(spec: ModelSpec, row: Mapping[str, Any]) -> str:
    """What differs between the devices' caches, or nothing."""
    params = {"n_seq_max": 1, **row["params"]}
    plan = plan_of(
        spec, params, n_gpu_layers=row["n_gpu_layers"], tensor_split=tuple(row["tensor_split"])
    )
    got = {device.name: device.cache_bytes for device in plan.devices}
    wrong = [
        f"{name}: {got.get(name)} not {parts['context']}"
        for name, parts in row["measured"].items()
        if got.get(name) != parts["context"]
    ]
    return "; ".join(wrong)
