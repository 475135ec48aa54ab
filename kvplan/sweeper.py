"""`kvplan.sweep`: one configuration with some of its inputs varied, every combination planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kvplan import api
from kvplan.asked import Asked, asked_of
from kvplan.errors import KvplanError, NotModelledError, UsageError
from kvplan.hardware import GpuSpec
from kvplan.host_profile import HostProfile
from kvplan.models.spec import ModelSpec
from kvplan.planning.size import Load
from kvplan.planning.sweep.axes import at, axes_of, raise_all
from kvplan.planning.sweep.run import Configuration, Progress
from kvplan.planning.sweep.run import run as run_grid
from kvplan.planning.sweep.typos import typos, whys_of
from kvplan.planning.sweep.words import KINDS, Kind
from kvplan.sources.profile import as_profile
from kvplan.sweep_grid import Grid
from kvplan.sweep_names import Names, read_names
from kvplan.sweep_result import CONCURRENCY, Sweep

NAMED = ("model", "gpu")
MOST_POINTS = 10_000_000
_NO_IMAGES: Mapping[str, Any] = {"images": 0, "image_size": None, "image_tokens": None}
# Columns only where they are asked for.
_RARE: Mapping[str, Any] = {"kv_budget": None, **_NO_IMAGES}
# Inputs whose values are numbers or short words, whatever the engine.
_CHECKED = tuple(name for name in KINDS if name not in ("model", "gpu", "engine"))


def sweep(  # noqa: PLR0913 - the arguments of `kvplan.size`
    model: str | ModelSpec | None = None,
    gpu: str | GpuSpec | None = None,
    *,
    vary: Mapping[str, str | Sequence[Any]],
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
    progress: Progress | None = None,
) -> Sweep:
    """Plans every combination of some inputs.

    The arguments are those of `kvplan.size`, but for ``vary`` and ``progress``; an input that is
    varied need not be given otherwise.

    Args:
        model: The model, unless it is varied.
        gpu: The device, unless it is varied.
        vary: For each input its values, or a text for them: ``{"context": "8k..128k*2",
            "kv_dtype": ["auto", "fp8"], "gpu": "H100*,H200", "max_num_seqs": "64,256"}``. What is
            no argument of `kvplan.size` is an option of the engine.
        engine: The engine, optionally pinned.
        tp: Tensor parallel size.
        pp: Pipeline parallel size.
        dp: Data parallel size, i.e. replicas.
        dcp: Decode-context parallel size.
        context: Tokens a request; None is the model's maximum, ``"auto"`` the longest that fits.
        concurrency: Requests held at once over the deployment; None: report, don't judge.
        weights: ``auto`` or a format to plan for.
        kv_dtype: The engine's own cache type.
        dtype: The compute type.
        kv_budget: Bytes of KV cache on each GPU, or one figure a rank.
        engine_options: The engine's own option names and values.
        gpus_per_node: GPUs that share fast links.
        images: Images a request.
        image_size: Width and height of each in pixels.
        image_tokens: Tokens of each, instead of a size.
        profile: What was learned of the machine that is planned for, or its file.
        offline: Use bundled specs and the local cache only.
        progress: Told how many points are done, of how many.

    Raises:
        KvplanError: a bad argument, facts that can't be had, or unreadable input. What an engine
            refuses, or does not know, at some points only is the verdict on those.

    Example:
        >>> found = sweep(
        ...     "meta-llama/Llama-3.1-8B-Instruct",
        ...     vary={"gpu": "L4,H100", "concurrency": "1..64*8"},
        ...     context=16384,
        ...     offline=True,
        ... )
        >>> [(row["gpu"], row["concurrency"], row["verdict"]) for row in found.rows()][:2]
        [('L4-24GB', 1, 'fits'), ('L4-24GB', 8, 'does_not_fit')]
    """
    given = {
        "model": model, "gpu": gpu, "engine": engine, "tp": tp, "pp": pp, "dp": dp, "dcp": dcp,
        "context": context, "concurrency": concurrency, "weights": weights, "kv_dtype": kv_dtype,
        "dtype": dtype, "kv_budget": kv_budget, "images": images, "image_size": image_size,
        "image_tokens": image_tokens,
    }  # fmt: skip
    question = question_of(given, engine_options or {}, vary, offline=offline)
    facts = Facts(question.names, as_profile(profile), gpus_per_node, offline=offline)
    found = run_grid(question.inputs, question.grid, facts.configure, progress)
    lines = found.grid.without(CONCURRENCY)
    raise_all(list(typos(lines, whys_of(found), tuple(KINDS))))
    return found


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, checked: all inputs by name, what is varied, and what the names mean."""

    inputs: dict[str, Any]
    grid: Grid
    names: Names


def question_of(
    given: Mapping[str, Any],
    options: Mapping[str, Any],
    vary: Mapping[str, str | Sequence[Any]],
    *,
    offline: bool,
    kinds: Mapping[str, Kind] = KINDS,
) -> Question:
    """Checks what is asked. Models and devices are read here.

    Args:
        given: The arguments of `kvplan.size` by name, and others that are no engine options.
        options: The engine's own.
        vary: See `sweep`.
        offline: Use bundled specs and the local cache only.
        kinds: How values are written, by name.

    Raises:
        KvplanError: what makes no sense, all of it at once.
    """
    problems: list[KvplanError] = []
    axes = axes_of(vary, problems, kinds)
    values = {axis.name: axis.values for axis in axes}
    problems += (_missing(n) for n in NAMED if given[n] is None and n not in values)
    problems += _out_of_range(given, values)
    there = {name: values.get(name, (given[name],)) for name in ("model", "gpu", "engine")}
    named = {name: [one for one in each if one is not None] for name, each in there.items()}
    names = read_names(named, varied=values, offline=offline)
    problems += names.problems
    raise_all(problems)
    grid = Grid(tuple(replace(a, values=names.labels.get(a.name, a.values)) for a in axes))
    if grid.size > MOST_POINTS:
        raise UsageError(
            f"The grid has {grid.size:,} points.",
            hint=f"At most {MOST_POINTS:,}; take larger steps.",
        )
    inputs = dict(given) | {name: each[0] for name, each in names.labels.items()}
    for name, usual in _RARE.items():
        if name not in values and inputs.get(name, usual) == usual:
            inputs.pop(name, None)
    own = {name: each[0] for name, each in values.items() if name not in inputs}
    return Question(inputs | dict(options) | own, grid, names)


def _missing(name: str) -> UsageError:
    example = {"model": "Qwen/Qwen3-8B", "gpu": "'H100*,H200'"}[name]
    flag = "MODEL" if name == "model" else "--gpu"
    return UsageError(f"{flag} is missing.", hint=f"Name one, or write --vary {name}={example}.")


def _out_of_range(
    given: Mapping[str, Any], values: Mapping[str, Sequence[Any]]
) -> Iterator[KvplanError]:
    """What `kvplan.size` would not take, whatever the rest is."""
    said = set[str]()
    base = {name: each for name, each in given.items() if name in KINDS} | {"engine": "vllm"}
    if "images" in values:
        base |= _NO_IMAGES
    checks: list[tuple[str, dict[str, Any]]] = [("", {})]
    for name in _CHECKED:
        more = {"images": 1} if name in ("image_size", "image_tokens") else {}
        checks += ((name, more | {name: one}) for one in _extremes(values.get(name, ())))
    for name, change in checks:
        try:
            _asked(base | change, ())
        except UsageError as error:
            if error.message not in said:
                said.add(error.message)
                yield at(f"--vary {name}", error) if name else error


def _extremes(values: Sequence[Any]) -> tuple[Any, ...]:
    """Those that say whether all are in range: of whole numbers the least and the greatest."""
    whole = [value for value in values if type(value) is int]
    others = tuple(value for value in values if type(value) is not int)
    return (*others, *dict.fromkeys((min(whole), max(whole)))) if whole else others


@dataclass(frozen=True)
class Facts:
    """What was read, from which a configuration is made for any inputs."""

    names: Names
    profile: HostProfile | None
    gpus_per_node: int | None
    offline: bool
    _specs: dict[tuple[str, str], ModelSpec] = field(default_factory=dict)

    def configure(self, inputs: Mapping[str, Any]) -> Configuration:
        """What is asked of the engine at some points, but for length and number of requests.

        Raises:
            RefusedError, UsageError: the verdict on those points.
        """
        if inputs.get("images") == 0:
            # Only where their number is varied: a size of none says nothing then.
            inputs = {**inputs, **_NO_IMAGES}
        asked = _asked(inputs, self.names.devices[inputs["gpu"]])
        spec = self._spec(inputs["model"], inputs["weights"])
        # A length of one token, so that what images add to it is seen.
        one = replace(asked, load=Load(1, None))
        resolved = api.resolve(spec, one, self.profile, offline=self.offline)
        more = resolved.load.context
        across = self.gpus_per_node is not None and inputs["tp"] > self.gpus_per_node
        return Configuration(
            engine=asked.engine.planner(),
            setup=resolved.setup,
            more_tokens=more - 1 if isinstance(more, int) else 0,
            notes=("tp_across_nodes",) if across else (),
        )

    def _spec(self, model: str, weights: str) -> ModelSpec:
        key = (model, weights)
        if key not in self._specs:
            self._specs[key] = spec_of(self.names, model, weights)
        return self._specs[key]


def spec_of(names: Names, model: str, weights: str) -> ModelSpec:
    """What a model that was named stores with its weights in a format.

    Raises:
        RefusedError, UsageError: it is not modelled, or there is no such format.
    """
    known = names.models[model]
    if isinstance(known, NotModelledError):
        raise known
    return api.spec_of(known, weights)


def _asked(inputs: Mapping[str, Any], gpus: tuple[GpuSpec, ...]) -> Asked:
    images = (inputs.get("images", 0), inputs.get("image_size"), inputs.get("image_tokens"))
    asked = asked_of(
        gpus[0] if gpus else "custom:1GiB",
        engine=inputs["engine"],
        sizes={name: inputs[name] for name in ("tp", "pp", "dp", "dcp")},
        load=(inputs["context"], inputs["concurrency"]),
        words={name: inputs[name] for name in ("weights", "kv_dtype", "dtype")},
        kv_budget=inputs.get("kv_budget"),
        options={name: value for name, value in inputs.items() if name not in KINDS},
        images=images,
    )
    return replace(asked, gpus=gpus) if gpus else asked
