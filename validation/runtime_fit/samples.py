"""Records → samples: a start's fitted ledger lines, and what its log says of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvplan import api
from kvplan.engines.base import parse_version
from kvplan.engines.vllm.calibration import CONSTANTS, bands, nearest
from kvplan.engines.vllm.coverage import Conditions, conditions, device_of
from kvplan.engines.vllm.deployment import VllmDeployment
from kvplan.engines.vllm.memory import non_torch_constant
from kvplan.engines.vllm.runner import other_bytes
from kvplan.errors import KvplanError
from kvplan.host_profile import ACTIVATION, GRAPHS
from kvplan.ledger import Draft
from kvplan.measurement import Measurement
from kvplan.models.spec import ModelSpec
from kvplan.planning.validate import memory
from kvplan.planning.validate.lacking import LackingError
from kvplan.planning.validate.match import Matcher, Start
from kvplan.sources.records import NamedInRecords
from kvplan.units import GIB

# One campaign on one machine; everything else is starts that people met with.
SWEEP = "llm-d-incubation/llm-d-planner"
NUMBERED = "public-file:"
# Constants whose name in a ledger line is the line's.
_LINE_NAMES = {"multimodal_profile_gib": "multimodal_gib", "compilation_gib": "compile_gib"}
_NON_TORCH = "non_torch"
_GRAPHS = "cuda_graphs"
# Since then logs count the estimate of graphs as activation: vllm/v1/worker/gpu_worker.py,
# determine_available_memory, peak_activation_memory.
_GRAPHS_ARE_ACTIVATION = (0, 27)


@dataclass(frozen=True, eq=False)
class Sample:
    """One start. Memory is in GiB; None is what nobody wrote down.

    Attributes:
        band: Index of its release's band.
        room: Its budget without what is neither weights nor fitted.
        kv: The cache that it got; None where its log does not tell what else was taken.
        lines: Ledger lines of the budget that rest on fitted constants.
        activation: The peak by the log; peak_lines: the ledger lines that it is of.
        graphs: CUDA graphs by the log, the estimate first; captures: how many there are.
        other_bytes: What `logits_bytes` is if a sampler ran that no flag tells of.
        judged: Whether the check `end_to_end` is made of it.
        weighed: Whether the check `overhead` is: the cache beside the logged weights.
            What is neither only helps to fit.
    """

    id: str
    model: str
    source: str
    conditions: Conditions
    band: int
    total: float
    room: float
    weights: float
    logged_weights: float | None
    kv: float | None
    lines: tuple[Draft, ...]
    constants: frozenset[str]
    non_torch: str
    activation: float | None
    peak_lines: tuple[str, ...]
    outside_torch: float | None
    graphs: float | None
    captures: int
    other_bytes: float | None
    judged: bool
    weighed: bool

    @property
    def is_sweep(self) -> bool:
        """Whether it belongs to the H100 sweep."""
        return self.source.startswith(SWEEP)

    @property
    def group(self) -> str:
        """What may not be split between folds: its model in the sweep, else its source."""
        if self.is_sweep:
            return f"sweep {self.model}"
        return self.source if self.source.startswith(NUMBERED) else self.source.split(":")[0]

    @property
    def campaign(self) -> str:
        """Who measured it: the sweep is one."""
        return SWEEP if self.is_sweep else self.group

    @property
    def cache(self) -> float:
        """The cache that a judged or weighed start got."""
        if self.kv is None:
            raise ValueError(f"{self.id} is not judged")
        return self.kv

    @property
    def rest(self) -> float | None:
        """What fitted lines took together, by the log."""
        if self.kv is None:
            return None
        weights = self.weights if self.logged_weights is None else self.logged_weights
        return self.room - weights - self.kv

    def values(self, constants: Mapping[str, float]) -> dict[str, float]:
        """GiB of the fitted lines by name, with these constants."""
        named = {**constants, "non_torch_gib": constants[self.non_torch]}
        for line_name, name in _LINE_NAMES.items():
            named[line_name] = constants[name]
        return {
            line.name: line.value({key: named[key] for key in line.inputs if key in named}) / GIB
            for line in self.lines
        }

    def other(self, constants: Mapping[str, float]) -> float:
        """GiB more that are left if that sampler ran."""
        if self.other_bytes is None:
            return 0.0
        without = self.values({**constants, "logits_bytes": self.other_bytes})
        return max(0.0, sum(self.values(constants).values()) - sum(without.values()))

    def predicted(self, constants: Mapping[str, float], *, logged: bool = False) -> float:
        """The cache from model, GPU and flags alone, or beside the weights as ``logged``."""
        weights = self.logged_weights if logged and self.logged_weights else self.weights
        return self.room - weights - sum(self.values(constants).values())


def read_samples(records: Iterable[Measurement], configs: Path | None) -> list[Sample]:
    """Every start that says something of fitted memory, but for those with adapters."""
    named = NamedInRecords(engines={"vllm": api.ENGINES["vllm"]}, offline=True, configs=configs)
    return list(_samples(records, Matcher(named)))


def _samples(records: Iterable[Measurement], matcher: Matcher) -> Iterator[Sample]:
    for record in records:
        modes = (record.model_extra or {}).get("modes")
        closes = not isinstance(modes, list) or bool({"end_to_end", "overhead"} & set(modes))
        if not closes and not _states_parts(record):
            continue
        try:
            yield _sample(record, matcher.match(record), modes, closes=closes)
        except (LackingError, KvplanError):
            continue


def _states_parts(record: Measurement) -> bool:
    parts = (record.activation_peak_gib, record.non_torch_gib, record.cudagraph_est_gib)
    return any(part is not None for part in parts)


def _sample(
    record: Measurement, start: Start, modes: Sequence[str] | None, *, closes: bool
) -> Sample:
    if not start.gpu_stated or record.engine_version is None:
        raise LackingError("gpu or engine_version is not stated")
    loaded, known_format = _loaded(start)
    closes = closes and (known_format or record.weights_gib is not None)
    if not closes and not _states_parts(record):
        raise LackingError("the weights are not known")
    prepared = start.engine.prepare(start.memory(loaded))
    if not isinstance(prepared, VllmDeployment) or prepared.stages is None:
        raise LackingError("not a start of vLLM's")
    if prepared.settings.enable_lora:
        raise LackingError("what adapters hold is from the source alone: nothing is learned of it")
    rank = prepared.stages[prepared.fullest]
    fitted = tuple(line for line in rank.budget if line.confidence == "calibrated")
    weights = sum(line.value() for line in rank.budget if line.name.startswith("weights"))
    other = rank.spent - weights - sum(line.value() for line in fitted)
    judged = closes and known_format and (modes is None or "end_to_end" in modes)
    graphs_too = parse_version(prepared.version)[:2] >= _GRAPHS_ARE_ACTIVATION
    non_torch = non_torch_constant(
        prepared.setup.gpu.vendor, prepared.setup.parallelism.tp, prepared.sm
    )
    return Sample(
        id=record.id or "",
        model=record.model or "",
        source=record.source or "",
        conditions=conditions(
            prepared.setup.model,
            prepared.settings,
            tp=prepared.parallelism.tp,
            pp=prepared.parallelism.pp,
            device=device_of(prepared.setup.gpu.vendor, prepared.sm),
        ),
        band=bands().index(nearest(parse_version(prepared.version), v0=prepared.pool.rules.v0)),
        total=rank.device.total / GIB,
        room=(rank.requested - other) / GIB,
        weights=weights / GIB,
        logged_weights=record.weights_gib,
        kv=_measured(start, prepared, judged=judged) if closes else None,
        lines=fitted,
        constants=_constants(fitted, non_torch),
        non_torch=non_torch,
        activation=record.activation_peak_gib,
        peak_lines=(*ACTIVATION, *(GRAPHS if graphs_too else ())),
        outside_torch=record.non_torch_gib,
        graphs=_logged_graphs(record, rank.budget),
        captures=_captures(rank.budget + rank.outside),
        other_bytes=other_bytes(
            parse_version(prepared.version),
            prepared.setup.gpu.vendor,
            v0=prepared.pool.rules.v0,
        ),
        judged=judged,
        weighed=_is_weighed(start, modes),
    )


def _is_weighed(start: Start, modes: Sequence[str] | None) -> bool:
    """Whether validation makes the check `overhead` of it."""
    if modes is not None and "overhead" not in modes:
        return False
    try:
        memory.overhead(start)
    except (LackingError, KvplanError):
        return False
    return True


def _loaded(start: Start) -> tuple[ModelSpec, bool]:
    """The model in the format that it was loaded in, and whether that is known."""
    try:
        return start.loaded(), True
    except LackingError:
        return start.model, False


def _measured(start: Start, prepared: VllmDeployment, *, judged: bool) -> float:
    if judged:
        return memory.end_to_end(start).measured_kv_gib
    return memory.measured_kv(start.record, prepared.answer(start.context, None))[0]


def _constants(lines: Iterable[Draft], non_torch: str) -> frozenset[str]:
    """The constants that decide on these lines."""
    names = {_LINE_NAMES.get(key, key) for line in lines for key in line.inputs}
    known = names & set(CONSTANTS)
    return frozenset(known - {"non_torch_gib"} | {non_torch})


def _captures(lines: Iterable[Draft]) -> int:
    return next((int(line.inputs["graphs"]) for line in lines if line.name == _GRAPHS), 0)


def _logged_graphs(record: Measurement, budget: Iterable[Draft]) -> float | None:
    """What the log says of the graphs: inside the budget the estimate, else what they took."""
    estimate, taken = record.cudagraph_est_gib, record.cudagraph_gib
    if estimate is not None or any(line.name == _GRAPHS for line in budget):
        return estimate
    return taken if taken is not None and taken > 0 else None
