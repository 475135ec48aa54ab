"""`kvplan.compare`: the same model, GPU and load on several engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvplan import api
from kvplan.engine_comparison import EngineComparison
from kvplan.errors import KvplanError, NotModelledError, RefusedError, UsageError, nearest, shown
from kvplan.hardware import GpuSpec
from kvplan.models.spec import ModelSpec
from kvplan.plan import Parallelism, Plan, Workload
from kvplan.planning.compare import Asked
from kvplan.planning.compare import compare as put_side_by_side
from kvplan.sources.gpus import find_gpus

ALL = "all"


def compare(  # noqa: PLR0913 - the arguments of `kvplan.size`
    model: str | ModelSpec,
    gpu: str | GpuSpec,
    *,
    engines: str | Sequence[str] = ALL,
    engine_options: Mapping[str, Mapping[str, Any]] | None = None,
    tp: int = 1,
    pp: int = 1,
    dp: int = 1,
    dcp: int = 1,
    context: int | str | None = None,
    concurrency: int | None = None,
    weights: str = "auto",
    kv_dtype: str = "auto",
    dtype: str = "auto",
    kv_budget: int | Sequence[int] | None = None,
    images: int = 0,
    image_size: tuple[int, int] | None = None,
    image_tokens: int | None = None,
    offline: bool = False,
) -> EngineComparison:
    """Plans the same configuration on several engines.

    The arguments are those of `kvplan.size`, but for ``engines`` and ``engine_options``.

    Args:
        model: A Hub id, a folder, a ``config.json`` or a `ModelSpec`; it is read once.
        gpu: The name of a device, ``custom:48GiB``, or a `GpuSpec`.
        engines: ``"all"``, or names, each optionally pinned: ``["vllm==0.33.0", "sglang"]``.
        engine_options: Options by engine: ``{"vllm": {"max_num_seqs": 64}}``.
        tp: Tensor parallel size.
        pp: Pipeline parallel size.
        dp: Data parallel size, i.e. replicas.
        dcp: Decode-context parallel size.
        context: Tokens a request; None is the model's maximum, ``"auto"`` the longest that fits.
        concurrency: Requests held at once over the deployment; None: report, don't judge.
        weights: ``auto`` or a format to plan for.
        kv_dtype: The cache type; an engine that does not know the word says so.
        dtype: The compute type.
        kv_budget: Bytes of KV cache on each GPU, or one figure a rank.
        images: Images a request.
        image_size: Width and height of each in pixels.
        image_tokens: Tokens of each, instead of a size.
        offline: Use bundled specs and the local cache only.

    Raises:
        KvplanError: a bad argument, facts that can't be had, or unreadable input. What one engine
            refuses, and an argument that one engine does not know, is a reason in its column.

    Example:
        >>> both = compare("Qwen/Qwen3-8B", "H100", context=8192, offline=True)
        >>> [one.engine for one in both.engines][0]
        'vllm'
    """
    pinned = engine_names(engines)
    options = _options(engine_options or {}, pinned)
    devices = (gpu,) if isinstance(gpu, GpuSpec) else find_gpus(gpu)
    known = _read(model, offline=offline)
    asked = [
        _ask(
            name,
            model=known,
            gpu=gpu,
            engine_options=options.get(_plain(name), {}),
            tp=tp,
            pp=pp,
            dp=dp,
            dcp=dcp,
            context=context,
            concurrency=concurrency,
            weights=weights,
            kv_dtype=kv_dtype,
            dtype=dtype,
            kv_budget=kv_budget,
            images=images,
            image_size=image_size,
            image_tokens=image_tokens,
            offline=offline,
        )
        for name in pinned
    ]
    return put_side_by_side(
        asked,
        model=known if isinstance(known, str) else known.id,
        gpu=" + ".join(device.id for device in devices),
        parallelism=Parallelism(tp=tp, pp=pp, dp=dp, dcp=dcp),
        workload=Workload(
            context=context if isinstance(context, int) else _length(known),
            concurrency=concurrency,
        ),
    )


def engine_names(engines: str | Sequence[str]) -> tuple[str, ...]:
    """Names, pins included, of the engines that are asked for.

    Raises:
        UsageError: an unknown name, the same engine twice, or none.
    """
    if engines == ALL:
        return tuple(api.ENGINES)
    names = [engines] if isinstance(engines, str) else list(engines)
    for name in names:
        if not isinstance(name, str) or _plain(name) not in api.ENGINES:
            raise UsageError(
                f"There is no engine {shown(name)} to compare.",
                hint=(nearest(name, api.ENGINES) if isinstance(name, str) else None)
                or f"Name some of {', '.join(api.ENGINES)}, or all.",
            )
    if not names or len(set(names)) < len(names):
        raise UsageError("Engines are named once each, and at least one.", hint="Write all.")
    return tuple(names)


def _plain(name: str) -> str:
    return name.partition("==")[0]


def _options(
    options: Mapping[str, Mapping[str, Any]], pinned: Sequence[str]
) -> dict[str, Mapping[str, Any]]:
    """Options by engine, each checked by the engine that it is for."""
    there = [_plain(name) for name in pinned]
    for name, own in options.items():
        if name not in there or not isinstance(own, Mapping):
            raise UsageError(
                f"Options are given for {shown(name)}, which is not among the engines compared.",
                hint=f"Give them by engine: {', '.join(there)}.",
            )
        try:
            api.ENGINES[name].draft_of(own)
        except RefusedError:
            continue  # its own column says so
    return dict(options)


def _read(model: str | ModelSpec, *, offline: bool) -> str | ModelSpec:
    """The model, read once; one that is not modelled is left to each engine's refusal."""
    if isinstance(model, ModelSpec):
        return model
    try:
        return api.read_spec(model, offline=offline)
    except NotModelledError:
        return model


def _length(model: str | ModelSpec) -> int | None:
    return model.max_context if isinstance(model, ModelSpec) else None


def _ask(name: str, **arguments: Any) -> Asked:
    """One engine's plan, or what it says of an argument that it does not know."""
    outcome: Plan | KvplanError
    try:
        outcome = api.size(engine=name, advice=False, **arguments)
    except UsageError as error:
        outcome = error
    version = name.partition("==")[2] or api.ENGINES[_plain(name)].newest
    return Asked(engine=_plain(name), version=version, outcome=outcome)
