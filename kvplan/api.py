"""The only wiring: resolve references, plan, return a `Plan`. The CLI and libraries call this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kvplan.architectures import quantize, read_model
from kvplan.architectures.drafts.own import eagle_draft, mtp_draft
from kvplan.engines.base import Engine, Prepared, Setup, parse_version
from kvplan.engines.registry import PLACES, Engines
from kvplan.errors import NotModelledError, UnknownNameError, UsageError, nearest, shown
from kvplan.hardware import GpuSpec
from kvplan.host_profile import HostProfile
from kvplan.measurement import Measurement
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import ModelSpec
from kvplan.plan import EnginePart, Parallelism, Plan, Workload
from kvplan.planning.advise import advise
from kvplan.planning.hosts import with_device_notes, with_profile, with_profile_note
from kvplan.planning.images import Images, with_image_note, with_images
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
from kvplan.sources.gpus import find_gpus
from kvplan.sources.models import read_model as read_facts
from kvplan.sources.profile import as_profile
from kvplan.units import MAX_BYTES, MAX_TOKENS
from kvplan.validation import Validation

if TYPE_CHECKING:
    from kvplan.planning.calibrate import Calibration
    from kvplan.sources.records import NamedInRecords

ENGINES: Mapping[str, Engine] = Engines(PLACES)
MAX_REQUESTS = 2**31
_LONGEST_WORD = 4096
_MOST_IMAGES = 10_000
_WIDEST_IMAGE = 65_536


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
    request = _Request(
        engine=_engine(engine),
        parallelism=_parallelism(tp=tp, pp=pp, dp=dp, dcp=dcp),
        load=_load(context, concurrency),
        weights=_word("weights", weights),
        kv_dtype=_word("kv_dtype", kv_dtype),
        dtype=_word("dtype", dtype),
        kv_budget=_budget(kv_budget),
        options=_options(engine_options),
        gpus=(gpu,) if isinstance(gpu, GpuSpec) else find_gpus(_word("gpu", gpu)),
        images=_images(images, image_size, image_tokens),
    )
    if gpus_per_node is not None:
        _whole("gpus_per_node", gpus_per_node, MAX_RANKS)
    host = as_profile(profile)
    known: ModelFacts | ModelSpec
    known = model if isinstance(model, ModelSpec) else _facts(model, offline=offline)
    try:
        known = spec = _spec(known, weights)
        request = replace(request, load=with_images(spec, request.load, request.images))
        planner = request.engine.planner()
        check_devices(request.engine.name, request.gpus)
        known = spec = as_loaded(spec, request.engine.name, request.weights)
        setup = _setup(request, spec, planner.unstated_context)
        setup = replace(setup, draft=_draft(planner, request.options, spec, offline=offline))
        setup = with_profile(setup, host, request.engine.name)
    except NotModelledError as refusal:
        return _not_modelled(request, known, refusal)
    plan = size_setup(planner, setup, request.load)
    plan = with_image_note(with_node_note(plan, gpus_per_node), spec, request.images)
    plan = with_device_notes(with_profile_note(plan, host, setup), setup.gpu)
    if not advice:
        return plan
    return plan.model_copy(update={"advice": advise(planner, setup, request.load, plan)})


@dataclass(frozen=True, slots=True)
class _Pinned:
    """An engine of the contract, and the release that was asked for."""

    name: str
    version: str | None

    def planner(self) -> Engine:
        """The engine's model."""
        return ENGINES[self.name]

    def release(self) -> str:
        """The release that rules are taken from."""
        return self.version or ENGINES[self.name].newest


@dataclass(frozen=True, slots=True)
class _Request:
    """The checked arguments of `size`, model apart."""

    engine: _Pinned
    parallelism: Parallelism
    load: Load
    weights: str
    kv_dtype: str
    dtype: str
    kv_budget: tuple[int, ...] | None
    options: dict[str, Any]
    gpus: tuple[GpuSpec, ...]
    images: Images

    @property
    def gpu(self) -> GpuSpec:
        """The first device named, which is the only one for most engines."""
        return self.gpus[0]


def read_spec(model: str, *, offline: bool = False) -> ModelSpec:
    """Reads what a model stores, from wherever the reference points.

    Raises:
        KvplanError: see `size`; also NotModelledError for a family kvplan does not model.
    """
    return read_model(_facts(model, offline=offline))


def prepare(model: ModelSpec, gpu: GpuSpec, *, engine: str = "vllm", **changes: Any) -> Prepared:
    """A configuration that can then be asked many times, for searches.

    ``changes`` are the other fields of `kvplan.engines.base.Setup`.
    """
    pinned = _engine(engine)
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


def _facts(model: str, *, offline: bool) -> ModelFacts:
    return read_facts(_word("model", model), offline=offline)


def _spec(known: ModelFacts | ModelSpec, weights: str) -> ModelSpec:
    spec = known if isinstance(known, ModelSpec) else read_model(known)
    return spec if weights == "auto" else quantize(spec, weights)


def _setup(request: _Request, spec: ModelSpec, unstated: int | None) -> Setup:
    asked = request.load.context
    return Setup(
        model=spec,
        gpu=request.gpu,
        version=request.engine.version,
        parallelism=request.parallelism,
        kv_dtype=request.kv_dtype,
        dtype=request.dtype,
        kv_budget=request.kv_budget,
        options=request.options,
        others=request.gpus[1:],
        context=resolve_context(spec, asked if isinstance(asked, int) else None, unstated=unstated),
    )


def _draft(
    planner: Engine, options: Mapping[str, Any], target: ModelSpec, *, offline: bool
) -> ModelSpec | None:
    """The model that drafts tokens for ``target``, read from wherever the options point."""
    wanted = planner.draft_of(options)
    if wanted is None:
        return None
    if wanted.model is None:
        return mtp_draft(target)
    draft = read_model(_facts(wanted.model, offline=offline))
    return eagle_draft(draft) if wanted.is_head else draft


def _not_modelled(
    request: _Request, known: ModelFacts | ModelSpec, refusal: NotModelledError
) -> Plan:
    asked = request.load.context
    return refused_plan(
        refusal,
        model=unread_part(known) if isinstance(known, ModelFacts) else model_part(known),
        gpu=request.gpu,
        engine=EnginePart(
            name=request.engine.name,
            version=request.engine.release(),
            options=request.options,
            assumed=(),
        ),
        parallelism=request.parallelism,
        workload=Workload(
            context=asked if isinstance(asked, int) else None,
            concurrency=request.load.concurrency,
        ),
    )


def _engine(text: str) -> _Pinned:
    name, pin, version = _word("engine", text).partition("==")
    if pin and name in ENGINES:
        parse_version(version)
    if name in ENGINES:
        return _Pinned(name, version or None)
    raise UnknownNameError(
        f"There is no engine {shown(name)}.",
        hint=nearest(name, tuple(ENGINES)) or f"Modelled: {', '.join(ENGINES)}.",
    )


def _load(context: int | str | None, concurrency: int | None) -> Load:
    if isinstance(context, str) and context != "auto":
        raise UsageError(
            f"context is a number of tokens or 'auto', not {shown(context)}.",
            hint="Give 32768, 'auto' for the longest that fits, or None for the model's maximum.",
        )
    if context is not None and context != "auto":
        _whole("context", context, MAX_TOKENS)
    if concurrency is not None:
        _whole("concurrency", concurrency, MAX_REQUESTS)
    return Load(context=context, concurrency=concurrency)


def _parallelism(**sizes: int) -> Parallelism:
    for name, value in sizes.items():
        _whole(name, value, MAX_RANKS)
    parallel = Parallelism(**sizes)
    _whole("tp × pp × dp", parallel.gpus, MAX_RANKS)
    return parallel


def _budget(kv_budget: int | Sequence[int] | None) -> tuple[int, ...] | None:
    if kv_budget is None:
        return None
    text = isinstance(kv_budget, str | bytes)
    budget = tuple(kv_budget) if isinstance(kv_budget, Sequence) and not text else (kv_budget,)
    if not budget:
        raise UsageError("The list of KV budgets is empty.", hint="Give one figure a rank.")
    return tuple(_whole("kv_budget", part, MAX_BYTES) for part in budget)


def _images(count: Any, size: Any, tokens: Any) -> Images:
    if count == 0 and isinstance(count, int):
        if size is None and tokens is None:
            return Images()
        raise UsageError(
            "A size or tokens of images are given, but no images.", hint="Give their number."
        )
    if size is not None:
        if not isinstance(size, Sequence) or isinstance(size, str) or len(size) != 2:
            raise UsageError(
                f"image_size is a width and a height, not {shown(size)}.", hint="Give (1024, 768)."
            )
        size = tuple(_whole("image_size", side, _WIDEST_IMAGE) for side in size)
    if tokens is not None:
        _whole("image_tokens", tokens, MAX_TOKENS)
    return Images(count=_whole("images", count, _MOST_IMAGES), size=size, tokens=tokens)


def _options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise UsageError(
            f"engine_options is a mapping of names to values, not {shown(options)}.",
            hint='Give {"max_num_seqs": 64}.',
        )
    return {_word("An option's name", name): value for name, value in options.items()}


def _word(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_WORD:
        raise UsageError(f"{name} is a name, not {shown(value)}.", hint="Give a short text.")
    return value


def _whole(name: str, value: Any, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise UsageError(
            f"{name} is a whole number from 1 to {most:,}, not {shown(value)}.",
            hint=f"Give a {name} in that range.",
        )
    return value
