"""`kvplan traffic`: how many requests of real traffic fit, at a chosen risk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvplan import api
from kvplan.asked import Asked, asked_of
from kvplan.errors import UsageError
from kvplan.hardware import GpuSpec
from kvplan.models.spec import ModelSpec
from kvplan.planning.size import resolve_context
from kvplan.planning.traffic.answer import Question, answer_traffic
from kvplan.planning.traffic.pools_apart import Prefill
from kvplan.sources.profile import as_profile
from kvplan.traffic_plan import TrafficPlan


def plan_traffic(  # noqa: PLR0913 - the arguments of `kvplan.size`
    model: str | ModelSpec,
    gpu: str | GpuSpec,
    question: Question,
    *,
    engine: str = "vllm",
    tp: int = 1,
    pp: int = 1,
    dp: int = 1,
    dcp: int = 1,
    context: int | str | None = None,
    weights: str = "auto",
    kv_dtype: str = "auto",
    dtype: str = "auto",
    kv_budget: int | Sequence[int] | None = None,
    engine_options: Mapping[str, Any] | None = None,
    profile: str | Path | None = None,
    offline: bool = False,
    prefill_gpu: str | GpuSpec | None = None,
    prefill_tp: int | None = None,
) -> TrafficPlan:
    """Plans one configuration for real traffic.

    The other arguments are those of `kvplan.size`.

    Args:
        model: A Hub id, a folder, a ``config.json`` or a `ModelSpec`.
        gpu: The name of a device, ``custom:48GiB``, or a `GpuSpec`.
        question: The traffic, how it is served, and the chosen risk.
        engine: The engine, optionally pinned.
        tp: Tensor parallel size.
        pp: Pipeline parallel size.
        dp: Data parallel size, i.e. replicas.
        dcp: Decode-context parallel size.
        context: The longest request that the engine takes; None is the model's own maximum,
            ``"auto"`` the longest that the pool holds.
        weights: ``auto`` or a format to plan for.
        kv_dtype: The engine's own cache type.
        dtype: The compute type.
        kv_budget: Bytes of KV cache on each GPU, or one figure a rank.
        engine_options: The engine's own option names and values.
        profile: What was learned of the machine that is planned for.
        offline: Use bundled specs and the local cache only.
        prefill_gpu: The GPU of replicas that only compute prompts (``question.apart``); None: the
            same.
        prefill_tp: Their tensor parallel size; None: the same.

    Raises:
        KvplanError: a bad argument, facts that can't be had, or unreadable input; also what the
            engine refuses and what kvplan does not model.
    """
    if question.apart is None and (prefill_gpu is not None or prefill_tp is not None):
        raise UsageError(
            "A prefill pool needs a link to the decode pool.", hint="Add --kv-link ib-400."
        )
    asked = asked_of(
        gpu,
        engine=engine,
        sizes={"tp": tp, "pp": pp, "dp": dp, "dcp": dcp},
        load=(context, None),
        words={"weights": weights, "kv_dtype": kv_dtype, "dtype": dtype},
        kv_budget=kv_budget,
        options=engine_options,
        images=(0, None, None),
    )
    known = model if isinstance(model, ModelSpec) else api.facts_of(model, offline=offline)
    spec = api.spec_of(known, weights)
    setup = api.resolve(spec, asked, as_profile(profile), offline=offline).setup
    prepared = asked.engine.planner().prepare(setup)
    longest = resolve_context(setup.model, setup.context)
    if context == "auto":
        longest = max(1, prepared.longest_context())
    prefill = None
    if question.apart is not None:
        prefill = _prefill(spec, asked, prefill_gpu or gpu, prefill_tp or tp, offline=offline)
    return answer_traffic(prepared, setup, longest, question, prefill=prefill)


def _prefill(
    spec: ModelSpec, asked: Asked, gpu: str | GpuSpec, tp: int, *, offline: bool
) -> Prefill:
    """A replica that only computes prompts, with the options of the other one."""
    first = asked_of(
        gpu,
        engine=f"{asked.engine.name}=={asked.engine.release()}",
        sizes={"tp": tp, "pp": 1, "dp": 1, "dcp": 1},
        load=(asked.load.context, None),
        words={"weights": "auto", "kv_dtype": asked.kv_dtype, "dtype": asked.dtype},
        kv_budget=None,
        options=asked.options,
        images=(0, None, None),
    )
    setup = api.resolve(spec, first, None, offline=offline).setup
    return Prefill(first.engine.planner().prepare(setup), setup)
