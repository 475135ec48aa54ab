"""What transformers itself allocated, case by case, and what kvplan makes of the same question.

A case is a flat dictionary: the question (``version``, ``model``, ``dtype``, ``context``,
``options``) and the answer: ``tensor`` and ``storage``, bytes without the scalars beside the
tensors (``storage`` is null where nobody counted it), or ``refused``: what the reason has to say.
"""

from __future__ import annotations

from typing import Any

from kvplan.architectures import read_model
from kvplan.engines.base import Setup
from kvplan.engines.transformers.engine import Transformers
from kvplan.hardware import Fact, GpuSpec
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec
from kvplan.planning.size import Load, size

_OPTIONS = ("max_cache_len", "nbits", "q_group_size", "residual_length", "axis", "encoder_len")
_REFUSALS = {
    "only full attention layers": "full attention layers alone",
    "uses cache of its own": "uses a cache of its own",
    "The size of tensor a (0)": "can't unpack 3 bits along axis 1",
    "Group size (64) must be a divisor of (2000)": "group size 64 does not divide 2000",
}
_LENGTHS = ("seq_len", "prompt", "decoder_len", "max_cache_len")
GPU = GpuSpec(
    id="test",
    name="test",
    vendor="custom",
    architecture="test",
    torch_total_gib=Fact(value=1024.0, source="test"),
)


def case_of(row: dict[str, Any]) -> dict[str, Any]:
    """A reference row as a case."""
    asked = row["params"]
    options = {"cache": row["cache"], "batch_size": asked["batch"]}
    options |= {name: asked[name] for name in _OPTIONS if name in asked}
    options |= {"quant_backend": asked["backend"]} if "backend" in asked else {}
    options |= {"decode_steps": row["decode_steps"]} if row["decode_steps"] else {}
    case = {
        "version": row["version"],
        "model": row["model"],
        "dtype": row["dtype"],
        "context": next(asked[name] for name in _LENGTHS if name in asked),
        "options": options,
    }
    if not row["ok"]:
        return {**case, "refused": _reason(row["error"])}
    measured = row["measured"]
    scalars = sum(t["bytes"] for t in measured.get("tensors", ()) if not t["shape"])
    storage = measured.get("storage_bytes")
    return {
        **case,
        "tensor": measured["tensor_bytes"] - scalars,
        "storage": None if storage is None else storage - scalars,
    }


def _reason(error: str) -> str:
    """What kvplan's sentence has to hold where transformers says this."""
    return next(ours for theirs, ours in _REFUSALS.items() if theirs in error)


def config_of(row: dict[str, Any]) -> dict[str, Any]:
    """The configuration of a reference row."""
    return {"model_type": row["model_type"], **row["config"]}


def model_of(name: str, config: dict[str, Any]) -> ModelSpec:
    """The model of a case."""
    return read_model(ModelFacts(id=name, source="test", config=config))


def difference(case: dict[str, Any], model: ModelSpec) -> str | None:
    """What kvplan gets wrong, or None."""
    setup = Setup(
        model=model,
        gpu=GPU,
        version=case["version"],
        dtype=case["dtype"],
        options=case["options"],
        context=case["context"],
    )
    plan = size(Transformers(), setup, Load(context=case["context"]))
    if "refused" in case:
        said = plan.reasons[0].message if plan.verdict == "refused" else plan.verdict
        return None if case["refused"] in said else f"not refused: {said}"
    if plan.verdict != "fits" or plan.kv is None:
        return f"{plan.verdict}: {[reason.message for reason in plan.reasons]}"
    storage = case["storage"] if case["storage"] is not None else plan.kv.storage_bytes
    got, want = (plan.kv.allocated_bytes, plan.kv.storage_bytes), (case["tensor"], storage)
    return None if got == want else f"{got} instead of {want}"
