"""A variant → the question that is put to the planner, checked but not yet asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kvplan.check_result import Place
from kvplan.errors import UnknownNameError, UsageError, nearest
from kvplan.scenario.command import read_command, settings_of
from kvplan.scenario.layers import MergedDocument
from kvplan.scenario.matrix import Variant
from kvplan.scenario.option_checks import option_problems
from kvplan.scenario.overrides import FLAG, Override, overridden
from kvplan.scenario.paths import model_of, options_of, trace_of
from kvplan.scenario.problems import Found, refuse
from kvplan.scenario.schema import Pool, Prices, Scenario
from kvplan.scenario.workload import Workload
from kvplan.scenario.workload_checks import check_workload
from kvplan.sources.gpus import find_gpus
from kvplan.sources.yaml_document import KeyPath
from kvplan.sources.yaml_validation import validate


@dataclass(frozen=True, slots=True)
class Question:
    """What `kvplan.size` is asked for one variant.

    Attributes:
        trace: The recorded trace, if the workload names one.
        online: The weight format that the command makes of a plain checkpoint while loading.
        remarks: What the command says and is not planned.
    """

    name: str
    scenario: Scenario
    variant: Variant
    model: str
    gpu: str
    engine: str
    sizes: Mapping[str, int]
    context: int | Literal["auto"] | None
    concurrency: int | None
    weights: str
    kv_dtype: str
    dtype: str
    options: Mapping[str, Any]
    kv_budget: int | None
    gpus_per_node: int | None
    prices: Prices | None
    trace: Path | None = None
    online: str | None = None
    remarks: tuple[str, ...] = ()
    pinned_by_command: bool = False

    @property
    def workload(self) -> Workload:
        """What is asked of the deployment; empty where nothing is said."""
        return self.scenario.workload or Workload()

    def place(self, path: KeyPath = ()) -> Place:
        """Where a key stands in a file, or the nearest thing around it."""
        document = self.variant.document
        found = document.place(path)
        if path and found == document.place() and self.scenario.command is not None:
            found = document.place(("command",))  # which then says it
        return document.place() if found.file.startswith(FLAG) else found

    def given(self, key: str) -> bool:
        """Whether the scenario itself states a key."""
        return getattr(self.scenario, key) is not None


@dataclass(frozen=True, slots=True)
class _Filled:
    """A scenario with what its command and its pool add."""

    values: Mapping[str, Any]
    options: Mapping[str, Any]
    prices: Prices | None
    online: str | None = None
    remarks: tuple[str, ...] = field(default=())
    pinned_by_command: bool = False


def question(
    variant: Variant, pools: Mapping[str, tuple[Pool, Place]], overrides: Sequence[Override] = ()
) -> Question:
    """Checks a variant and puts together what is asked.

    Raises:
        InputError: it does not fit the schema, or lacks its model or GPU.
        UsageError: a pool that there is not, or a command that can't be read.
    """
    document = overridden(variant.document, variant.scenario, overrides)
    variant = Variant(variant.name, variant.scenario, variant.layered, document)
    scenario = validate(document, Scenario)
    filled = _fill(variant, scenario, pools)
    values = filled.values
    _check_filled(variant, filled)
    workload = scenario.workload or Workload()
    concurrency = scenario.concurrency or workload.concurrency
    check_workload(variant, workload, concurrency)
    return Question(
        name=variant.name,
        scenario=scenario,
        variant=variant,
        model=model_of(variant, values["model"]),
        gpu=values["gpu"],
        engine=values.get("engine", "vllm"),
        sizes={key: values[key] for key in ("tp", "pp", "dp", "dcp") if key in values},
        context=_context(values.get("context"), workload),
        concurrency=concurrency,
        weights=values.get("weights", "auto"),
        kv_dtype=values.get("kv_dtype", "auto"),
        dtype=values.get("dtype", "auto"),
        options=options_of(variant, filled.options),
        kv_budget=scenario.kv_budget,
        gpus_per_node=scenario.gpus_per_node,
        prices=filled.prices,
        trace=trace_of(variant, workload),
        online=filled.online,
        remarks=filled.remarks,
        pinned_by_command=filled.pinned_by_command,
    )


_KEYS = (
    *("model", "gpu", "engine", "tp", "pp", "dp", "dcp", "context"),
    *("weights", "kv_dtype", "dtype"),
)


def _fill(variant: Variant, scenario: Scenario, pools: Mapping[str, tuple[Pool, Place]]) -> _Filled:
    stated = {key: getattr(scenario, key) for key in _KEYS if getattr(scenario, key) is not None}
    options, prices = dict(scenario.options or {}), scenario.prices
    pool = _pool(variant, scenario, pools)
    if pool is not None:
        _check_gpu(variant, stated.setdefault("gpu", pool.gpu), pool)
        prices = pool.prices or prices
    if scenario.command is None:
        return _Filled(stated, options, prices)
    _check_vllm(variant, stated.get("engine", "vllm"))
    command = read_command(scenario.command, variant.document.location(("command",)))
    said = settings_of(command)
    return _Filled(
        {**said, **stated},
        {**command.options, **options},
        prices,
        command.made_while_loading,
        command.remarks,
        pinned_by_command=command.version is not None,
    )


def _check_vllm(variant: Variant, engine: str) -> None:
    if engine.partition("==")[0] != "vllm":
        raise UsageError(
            f"Commands are read of vLLM, not of {engine}.",
            hint="Write `options:` instead of `command:`.",
            location=variant.document.location(("command",)),
        )


def _pool(
    variant: Variant, scenario: Scenario, pools: Mapping[str, tuple[Pool, Place]]
) -> Pool | None:
    if scenario.pool is None:
        return None
    if scenario.pool not in pools:
        raise UnknownNameError(
            f"There is no pool {scenario.pool!r}.",
            hint=nearest(scenario.pool, tuple(pools)) or "Write it under `pools:`.",
            location=variant.document.location(("pool",)),
        )
    return pools[scenario.pool][0]


def _check_gpu(variant: Variant, gpu: str, pool: Pool) -> None:
    """A scenario that takes its GPUs from a pool takes those that the pool has."""
    if find_gpus(gpu) != find_gpus(pool.gpu):
        raise UsageError(
            f"The GPU {gpu} is not that of the pool, {pool.gpu}.",
            hint="Write `gpu: null` beside `pool`, or name another pool.",
            location=variant.document.location(("gpu",)),
        )


def _check_filled(variant: Variant, filled: _Filled) -> None:
    """Refuses a scenario that lacks something, or has options that its engine has not."""
    document, values = variant.document, filled.values
    found = []
    missing = [key for key in ("model", "gpu") if key not in values]
    if missing:
        found.append(
            Found(
                document.location(),
                f"The scenario {variant.scenario!r} lacks {' and '.join(missing)}. Write it there,"
                " or under `defaults:`.",
            )
        )
    for name, sentence in option_problems(values.get("engine", "vllm"), filled.options):
        found.append(Found(_option_location(document, name), sentence))
    refuse(found, file=document.location())


def _option_location(document: MergedDocument, name: str | None) -> str:
    """Where an option stands: in the scenario, else in its command."""
    options = document.data.get("options") or {}
    if name is not None and name in options:
        return document.location(("options", name))
    return document.location(("options",) if name is None and options else ("command",))


def _context(
    stated: int | Literal["auto", "max"] | None, workload: Workload
) -> int | Literal["auto"] | None:
    """Tokens a request: as stated, else prompt and answer of the workload."""
    if stated == "max":
        return None
    if stated is not None or workload.input_tokens is None:
        return stated
    return workload.input_tokens + (workload.output_tokens or 0)
