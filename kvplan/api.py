"""The only wiring: resolve references, plan, return a `Plan`. The CLI and libraries call this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvplan.architectures import quantize, read_model
from kvplan.architectures.drafts.own import eagle_draft, mtp_draft
from kvplan.asked import ENGINES, Asked, asked_of, engine_of, whole, word
from kvplan.engines.base import Engine, Prepared, Setup
from kvplan.errors import NotModelledError
from kvplan.hardware import GpuSpec
from kvplan.host_profile import HostProfile
from kvplan.measurement import Measurement
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec
from kvplan.plan import EnginePart, Plan, Workload
from kvplan.planning.advise import advise
from kvplan.planning.elsewhere import Elsewhere
from kvplan.planning.hosts import with_device_notes, with_profile, with_profile_note
from kvplan.planning.images import with_image_note, with_images
from kvplan.planning.size import (
    MAX_RANKS,
    Load,
    model_part,
    refused_plan,
    resolve_context,
    unread_part,
    with_node_note,
)
from kvplan.planning.size import size as size_setup
from kvplan.planning.spreading import as_loaded, check_devices
from kvplan.sources.gpus import bundled_gpu
from kvplan.sources.models import read_model as read_facts
from kvplan.sources.profile import as_profile
from kvplan.validation import Validation

if TYPE_CHECKING:
    from kvplan.planning.calibrate import Calibration
    from kvplan.sources.records import NamedInRecords

__all__ = ["ENGINES", "calibrate", "prepare", "read_spec", "resolve", "size", "validate"]


def size(  # noqa: PLR0913 - the signature is the contract
    model: str | ModelSpec,
    gpu: str | GpuSpec,
    *,
    engine: str = "vllm",
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
    engine_options: Mapping[str, Any] | None = None,
    gpus_per_node: int | None = None,
    images: int = 0,
    image_size: tuple[int, int] | None = None,
    image_tokens: int | None = None,
    profile: HostProfile | str | Path | None = None,
    offline: bool = False,
    advice: bool = True,
) -> Plan:
    """Plans one configuration.

    Args:
        model: A Hub id (``org/name`` or ``org/name@revision``), a folder, a ``config.json``, or
            a `ModelSpec`.
        gpu: The name of a device, ``auto``, ``custom:48GiB``, or a `GpuSpec`. llama.cpp also
            takes unlike devices and the host: ``RTX 4090 + RTX 3060 + cpu:64GiB``.
        engine: ``vllm``, optionally pinned: ``vllm==0.33.0``.
        tp: Tensor parallel size.
        pp: Pipeline parallel size.
        dp: Data parallel size, i.e. replicas.
        dcp: Decode-context parallel size; divides ``tp``.
        context: Tokens a request; None is the model's maximum, ``"auto"`` the longest that fits.
        concurrency: Requests held at once over the deployment; None: report, don't judge.
        weights: ``auto`` (as the checkpoint is) or a format to plan for: ``fp8``, ``awq``.
        kv_dtype: The engine's own cache type.
        dtype: The compute type.
        kv_budget: Bytes of KV cache on each GPU, or one figure a rank: skips the memory ledger.
        engine_options: The engine's own option names and values.
        gpus_per_node: GPUs that share fast links; a wider tensor parallel group is pointed out.
        images: Images a request; their tokens come on top of a ``context`` that is a number.
        image_size: Width and height of each in pixels; the model's own rule gives its tokens.
        image_tokens: Tokens of each, instead of a size.
        profile: What was learned of the machine that is planned for (`calibrate`), or its file.
        offline: Use bundled specs and the local cache only.
        advice: Whether to look for what to change where it does not fit.

    Raises:
        KvplanError: a bad argument, facts that can't be had, or unreadable input. What the engine
            refuses and what kvplan does not model is not raised: the plan's verdict says so.

    Example:
        >>> plan = size("meta-llama/Llama-3.1-8B-Instruct", "H100", context=8192, offline=True)
        >>> plan.verdict
        'fits'
    """
    asked = asked_of(
        gpu,
        engine=engine,
        sizes={"tp": tp, "pp": pp, "dp": dp, "dcp": dcp},
        load=(context, concurrency),
        words={"weights": weights, "kv_dtype": kv_dtype, "dtype": dtype},
        kv_budget=kv_budget,
        options=engine_options,
        images=(images, image_size, image_tokens),
    )
    if gpus_per_node is not None:
        whole("gpus_per_node", gpus_per_node, MAX_RANKS)
    host = as_profile(profile)
    return planned(model, asked, host, gpus_per_node=gpus_per_node, offline=offline, advice=advice)[
        0
    ]


def planned(
    model: str | ModelSpec,
    asked: Asked,
    host: HostProfile | None = None,
    *,
    gpus_per_node: int | None = None,
    offline: bool = False,
    advice: bool = True,
) -> tuple[Plan, Resolved | None]:
    """The plan, and what was asked of the engine for it: None where kvplan does not model it.

    Raises:
        KvplanError: see `size`.
    """
    known = model if isinstance(model, ModelSpec) else facts_of(model, offline=offline)
    try:
        known = spec = spec_of(known, asked.weights)
        resolved = resolve(spec, asked, host, offline=offline)
    except NotModelledError as refusal:
        return _not_modelled(asked, known, refusal), None
    planner, setup, load = asked.engine.planner(), resolved.setup, resolved.load
    plan = size_setup(planner, setup, load)
    plan = with_image_note(with_node_note(plan, gpus_per_node), setup.model, asked.images)
    plan = with_device_notes(with_profile_note(plan, host, setup), (setup.gpu, *setup.others))
    if not advice:
        return plan, resolved
    found = advise(planner, setup, load, plan, Elsewhere(gpu=bundled_gpu, engines=ENGINES))
    return plan.model_copy(update={"advice": found}), resolved


@dataclass(frozen=True, slots=True)
class Resolved:
    """What was asked for, with its facts: a setup for the engine, and the load on it."""

    setup: Setup
    load: Load


def resolve(spec: ModelSpec, asked: Asked, host: HostProfile | None, *, offline: bool) -> Resolved:
    """The model as it is loaded, with the draft that options ask for.

    Raises:
        NotModelledError: kvplan does not model it.
        KvplanError: see `size`.
    """
    load = with_images(spec, asked.load, asked.images)
    planner = asked.engine.planner()
    check_devices(asked.engine.name, asked.gpus)
    spec = as_loaded(spec, asked.engine.name, asked.weights)
    setup = _setup(replace(asked, load=load), spec, planner.unstated_context)
    setup = replace(setup, draft=_draft(planner, asked, spec, offline=offline))
    return Resolved(with_profile(setup, host, asked.engine.name), load)


def read_spec(model: str, *, offline: bool = False) -> ModelSpec:
    """Reads what a model stores, from wherever the reference points.

    Raises:
        KvplanError: see `size`; also NotModelledError for a family kvplan does not model.
    """
    return read_model(facts_of(model, offline=offline))


def prepare(model: ModelSpec, gpu: GpuSpec, *, engine: str = "vllm", **changes: Any) -> Prepared:
    """A configuration that can then be asked many times, for searches.

    ``changes`` are the other fields of `kvplan.engines.base.Setup`.
    """
    pinned = engine_of(engine)
    setup = Setup(model=model, gpu=gpu, version=pinned.version, **changes)
    return pinned.planner().prepare(setup)


def validate(
    records: Iterable[Measurement],
    *,
    offline: bool = False,
    configs: Path | None = None,
    strict: bool = False,
) -> Validation:
    """Compares measured engine starts with what kvplan says of them.

    Args:
        records: The starts.
        offline: Use bundled specs and the local cache only.
        configs: A folder of folders with a ``config.json``, tried before anything else: a
            record's ``config``, or its model's id with ``--`` for the slash, names one of them.
        strict: Leave out records that their author marks with a ``caution``.

    Raises:
        UsageError: ``configs`` is no folder.
        InputError: ``records`` come from a file that can't be read.
    """
    from kvplan.planning.validate.run import validate as run  # noqa: PLC0415  only needed here

    return run(records, _named(offline=offline, configs=configs), strict=strict)


def calibrate(
    records: Iterable[Measurement],
    *,
    offline: bool = False,
    configs: Path | None = None,
    name: str = "host profile",
) -> Calibration:
    """Learns from a host's own starts how its memory differs from the plan.

    ``name`` is what ledger lines show as their source; the rest is as in `validate`.

    Raises:
        UsageError, InputError: see `validate`; also where no record says anything of memory.
    """
    from kvplan.planning.calibrate import calibrate as run  # noqa: PLC0415  only needed here

    return run(records, _named(offline=offline, configs=configs), name=name)


def _named(*, offline: bool, configs: Path | None) -> NamedInRecords:
    from kvplan.sources.records import NamedInRecords  # noqa: PLC0415  only needed here

    return NamedInRecords(engines=ENGINES, offline=offline, configs=configs)


def facts_of(model: str, *, offline: bool) -> ModelFacts:
    """Facts on a model, from wherever the reference points.

    Raises:
        KvplanError: see `size`.
    """
    return read_facts(word("model", model), offline=offline)


def spec_of(known: ModelFacts | ModelSpec, weights: str) -> ModelSpec:
    """What a model stores with its weights in a format.

    Raises:
        KvplanError: see `size`.
    """
    spec = known if isinstance(known, ModelSpec) else read_model(known)
    return spec if weights == "auto" else quantize(spec, weights)


def _setup(asked: Asked, spec: ModelSpec, unstated: int | None) -> Setup:
    context = asked.load.context
    return Setup(
        model=spec,
        gpu=asked.gpu,
        version=asked.engine.version,
        parallelism=asked.parallelism,
        kv_dtype=asked.kv_dtype,
        dtype=asked.dtype,
        kv_budget=asked.kv_budget,
        options=asked.options,
        others=asked.gpus[1:],
        context=resolve_context(
            spec, context if isinstance(context, int) else None, unstated=unstated
        ),
    )


def _draft(planner: Engine, asked: Asked, target: ModelSpec, *, offline: bool) -> ModelSpec | None:
    """The model that drafts tokens for ``target``, read from wherever the options point."""
    wanted = planner.draft_of(asked.options)
    if wanted is None:
        return None
    if wanted.model is None:
        return mtp_draft(target)
    draft = asked.draft or read_model(facts_of(wanted.model, offline=offline))
    return eagle_draft(draft) if wanted.is_head else draft


def _not_modelled(asked: Asked, known: ModelFacts | ModelSpec, refusal: NotModelledError) -> Plan:
    context = asked.load.context
    return refused_plan(
        refusal,
        model=unread_part(known) if isinstance(known, ModelFacts) else model_part(known),
        gpu=asked.gpu,
        engine=EnginePart(
            name=asked.engine.name,
            version=asked.engine.release(),
            options=asked.options,
            assumed=(),
        ),
        parallelism=asked.parallelism,
        workload=Workload(
            context=context if isinstance(context, int) else None,
            concurrency=asked.load.concurrency,
        ),
    )
