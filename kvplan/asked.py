"""The arguments of `kvplan.size`, checked: what was asked for, before anything is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kvplan.engines.base import Engine, parse_version
from kvplan.engines.registry import PLACES, Engines
from kvplan.errors import UnknownNameError, UsageError, nearest, shown
from kvplan.hardware import GpuSpec
from kvplan.models.spec import ModelSpec
from kvplan.plan import Parallelism
from kvplan.planning.images import Images
from kvplan.planning.size import MAX_RANKS, Load
from kvplan.sources.gpus import find_gpus
from kvplan.units import MAX_BYTES, MAX_TOKENS

ENGINES: Mapping[str, Engine] = Engines(PLACES)
MAX_REQUESTS = 2**31
_LONGEST_WORD = 4096
# Engines that spread one model over all devices of a machine, unlike ones and the host too.
_WHOLE_MACHINE = ("llama.cpp", "ollama")
_MOST_IMAGES = 10_000
_WIDEST_IMAGE = 65_536


@dataclass(frozen=True, slots=True)
class Pinned:
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
class Asked:
    """The checked arguments of `size`, model apart.

    Attributes:
        draft: The model that drafts tokens, where somebody has read it; None: read it if the
            options ask for one.
    """

    engine: Pinned
    parallelism: Parallelism
    load: Load
    weights: str
    kv_dtype: str
    dtype: str
    kv_budget: tuple[int, ...] | None
    options: dict[str, Any]
    gpus: tuple[GpuSpec, ...]
    images: Images
    draft: ModelSpec | None = None

    @property
    def gpu(self) -> GpuSpec:
        """The first device named, which is the only one for most engines."""
        return self.gpus[0]


def asked_of(
    gpu: str | GpuSpec,
    *,
    engine: str,
    sizes: Mapping[str, int],
    load: tuple[int | str | None, int | None],
    words: Mapping[str, str],
    kv_budget: int | Sequence[int] | None,
    options: Mapping[str, Any] | None,
    images: tuple[int, tuple[int, int] | None, int | None],
) -> Asked:
    """Checks the arguments of `kvplan.size`.

    Args:
        gpu: The name of a device, or one.
        engine: The engine's name, optionally pinned.
        sizes: ``tp``, ``pp``, ``dp`` and ``dcp``.
        load: Context and concurrency.
        words: ``weights``, ``kv_dtype`` and ``dtype``.
        kv_budget: Bytes of KV cache on each GPU, one figure a rank, or None.
        options: The engine's own.
        images: Their number, size and tokens.

    Raises:
        UsageError: one of them makes no sense.
    """
    pinned = engine_of(engine)
    return Asked(
        engine=pinned,
        parallelism=_parallelism(sizes),
        load=_load(*load),
        weights=word("weights", words["weights"]),
        kv_dtype=word("kv_dtype", words["kv_dtype"]),
        dtype=word("dtype", words["dtype"]),
        kv_budget=_budget(kv_budget),
        options=_options(options),
        gpus=(gpu,) if isinstance(gpu, GpuSpec) else _devices(pinned, gpu),
        images=_images(*images),
    )


def _devices(engine: Pinned, gpu: str) -> tuple[GpuSpec, ...]:
    return find_gpus(word("gpu", gpu), whole_machine=engine.name in _WHOLE_MACHINE)


def engine_of(text: str) -> Pinned:
    """The engine of that name, optionally pinned.

    Raises:
        UsageError: there is none, or its version is none.
    """
    name, pin, version = word("engine", text).partition("==")
    if pin and name in ENGINES:
        parse_version(version)
    if name in ENGINES:
        return Pinned(name, version or None)
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
        whole("context", context, MAX_TOKENS)
    if concurrency is not None:
        whole("concurrency", concurrency, MAX_REQUESTS)
    return Load(context=context, concurrency=concurrency)


def _parallelism(sizes: Mapping[str, int]) -> Parallelism:
    for name, value in sizes.items():
        whole(name, value, MAX_RANKS)
    parallel = Parallelism(**sizes)
    whole("tp × pp × dp", parallel.gpus, MAX_RANKS)
    return parallel


def _budget(kv_budget: int | Sequence[int] | None) -> tuple[int, ...] | None:
    if kv_budget is None:
        return None
    text = isinstance(kv_budget, str | bytes)
    budget = tuple(kv_budget) if isinstance(kv_budget, Sequence) and not text else (kv_budget,)
    if not budget:
        raise UsageError("The list of KV budgets is empty.", hint="Give one figure a rank.")
    return tuple(whole("kv_budget", part, MAX_BYTES) for part in budget)


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
        size = tuple(whole("image_size", side, _WIDEST_IMAGE) for side in size)
    if tokens is not None:
        whole("image_tokens", tokens, MAX_TOKENS)
    return Images(count=whole("images", count, _MOST_IMAGES), size=size, tokens=tokens)


def _options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise UsageError(
            f"engine_options is a mapping of names to values, not {shown(options)}.",
            hint='Give {"max_num_seqs": 64}.',
        )
    return {word("An option's name", name): value for name, value in options.items()}


def word(name: str, value: Any) -> str:
    """A short text.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(value, str) or len(value) > _LONGEST_WORD:
        raise UsageError(f"{name} is a name, not {shown(value)}.", hint="Give a short text.")
    return value


def whole(name: str, value: Any, most: int) -> int:
    """A whole number from 1 to ``most``.

    Raises:
        UsageError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise UsageError(
            f"{name} is a whole number from 1 to {most:,}, not {shown(value)}.",
            hint=f"Give a {name} in that range.",
        )
    return value
