"""GPU names → GpuSpec, from the bundled `gpu_specs/`.

Resolving a name must not parse every file: names stand before the first source in a file, so the
raw text up to there says whether a file can be meant at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from kvplan.errors import AmbiguousNameError, InputError, UnknownNameError, UsageError, nearest
from kvplan.hardware import Fact, GpuSpec
from kvplan.sources.bundled import specs_dir
from kvplan.sources.yaml_reader import read_yaml, validate
from kvplan.units import GIB, format_bytes, parse_bytes

SCHEMA = "kvplan.gpu/1"
_CUSTOM = "custom:"
_HOST = "cpu:"
_AUTO = "auto"
_MOST_GPUS = 128
_LIST = "`kvplan gpus list` shows all."
# Offered where a name is like none.
_COMMON = "H100-SXM-80GB, H200-SXM-141GB, A100-SXM-80GB, L40S-48GB, RTX-4090-24GB"
# Names say little beyond this; longer input is a mistake.
_LONGEST_NAME = 100
_MOST_LISTED = 12
_IGNORED = str.maketrans("", "", " -_\t")
_WITH_MEMORY = re.compile(r"(.+)[ _-](\d+gb)\s*", re.ASCII | re.IGNORECASE)


def fold(name: str) -> str:
    """What counts of a name: not case, ``NVIDIA``, spaces, dashes and underscores.

    >>> fold("NVIDIA A100-SXM4-80GB")
    'a100sxm480gb'
    """
    return name.casefold().replace("nvidia", "").translate(_IGNORED)


def find_gpu(name: str) -> GpuSpec:
    """The device of that name.

    An id or alias wins; then the name that the driver prints; then a product without its memory
    (``L40S``, ``Apple M2 Max``); then the start of an id, with or without the memory at its end
    (``A100 80GB``). ``auto`` reads this machine, ``custom:48GiB`` is a device of exactly that
    memory and nothing else, and ``cpu:64GiB`` is the memory of a host.

    Raises:
        UnknownNameError: no device is called that.
        AmbiguousNameError: several are.
        NoDeviceError: ``auto`` on a machine without a GPU that can be read.
    """
    if _folded(name) == _AUTO:
        from kvplan.sources.nvml import auto_gpu  # noqa: PLC0415  pynvml is needed only here

        return auto_gpu()
    if _folded(name).startswith(_CUSTOM):
        return _custom(name.strip()[len(_CUSTOM) :])
    if _folded(name).startswith(_HOST):
        return _host(name.strip()[len(_HOST) :])
    folded = fold(name) if len(name) <= _LONGEST_NAME else ""
    if not folded:
        raise _unknown(name)
    start, memory = _split(name)
    candidates = tuple(_candidates(start or folded))
    for found in (
        [gpu for gpu in candidates if folded in map(fold, (gpu.id, *gpu.aliases))],
        [gpu for gpu in candidates if folded == fold(gpu.name)],
        [gpu for gpu in candidates if folded == fold(gpu.id.rpartition("-")[0])],
        _worded(name, [gpu for gpu in candidates if _starts(gpu, start, memory)]),
    ):
        if found:
            return _only(name, found)
    raise _unknown(name)


def find_gpus(names: str, *, whole_machine: bool = False) -> tuple[GpuSpec, ...]:
    """Several devices of one machine: ``RTX 4090 + RTX 3060``, ``RTX 4090 + cpu:64GiB``.

    Args:
        names: Names, with plus signs between them.
        whole_machine: ``auto`` is every device that this machine has, unlike ones too, and its
            host's memory.

    Raises:
        KvplanError: see `find_gpu`.
    """
    parts = names.split("+")
    if len(parts) > _MOST_GPUS:
        raise UsageError(f"Those are {len(parts):,} devices.", hint=f"At most {_MOST_GPUS}.")
    if not whole_machine:
        return tuple(map(find_gpu, parts))
    host_named = any(_folded(part).startswith(_HOST) for part in parts)
    found = [_every(part, host=not host_named) for part in parts]
    return tuple(spec for specs in found for spec in specs)


def _every(name: str, *, host: bool) -> tuple[GpuSpec, ...]:
    if _folded(name) != _AUTO:
        return (find_gpu(name),)
    from kvplan.sources.nvml import auto_machine  # noqa: PLC0415  pynvml is needed only here

    return auto_machine(host=host)


def _folded(name: str) -> str:
    return name.strip().casefold()


@lru_cache(maxsize=32)
def bundled_gpu(identity: str) -> GpuSpec:
    """The bundled device of exactly that id; one file is read, and once."""
    return _read(specs_dir("gpu_specs") / f"{identity}.yaml")


def list_gpus() -> tuple[GpuSpec, ...]:
    """All bundled devices, in the order of their ids."""
    return tuple(_read(path) for path in _paths())


def search_gpus(text: str) -> tuple[GpuSpec, ...]:
    """The bundled devices with ``text`` in their id, name, aliases, vendor or architecture."""
    folded = fold(text)
    return tuple(
        gpu
        for gpu in list_gpus()
        if any(folded in fold(part) for part in (*_names(gpu), gpu.vendor, gpu.architecture))
    )


def _paths() -> list[Path]:
    return sorted(specs_dir("gpu_specs").glob("*.yaml"), key=_natural)


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sorts L4 before L20, and 8GB before 16GB."""
    parts = re.split(r"(\d+)", path.stem.casefold())
    return [(int(part), "") if part.isdigit() else (0, part) for part in parts]


def _candidates(folded: str) -> Iterator[GpuSpec]:
    for path in _paths():
        if folded in fold(path.read_text(encoding="utf-8").partition("source:")[0]):
            yield _read(path)


def _read(path: Path) -> GpuSpec:
    document = read_yaml(path)
    if document.data.get("schema") != SCHEMA:
        raise InputError(
            "This is not a GPU spec of this version of kvplan.",
            hint=f"Its first line is `schema: {SCHEMA}`.",
            location=document.location(("schema",)),
        )
    facts = {key: value for key, value in document.data.items() if key != "schema"}
    return validate(replace(document, data=facts), GpuSpec)


def _names(gpu: GpuSpec) -> Iterable[str]:
    return (gpu.id, gpu.name, *gpu.aliases)


def _split(name: str) -> tuple[str, str]:
    """``A100 80GB`` → (``a100``, ``80gb``); without a memory at its end the whole name, folded."""
    match = _WITH_MEMORY.fullmatch(name)
    return (fold(match[1]), match[2].casefold()) if match else (fold(name), "")


def _starts(gpu: GpuSpec, start: str, memory: str) -> bool:
    folded = fold(gpu.id)
    return folded.startswith(start) and folded.endswith(memory)


def _worded(name: str, found: list[GpuSpec]) -> list[GpuSpec]:
    """Adds the devices whose id has all words of the name: ``RTX 6000`` is a PRO 6000 too."""
    words = _words(name)
    ids = {gpu.id for gpu in found}
    others = [path for path in _paths() if found and words <= _words(path.stem)]
    return found + [_read(path) for path in others if path.stem not in ids]


def _words(name: str) -> set[str]:
    return set(re.split(r"[ _-]+", name.casefold().strip())) - {"", "nvidia"}


def _only(name: str, found: list[GpuSpec]) -> GpuSpec:
    if len(found) == 1:
        return found[0]
    listed = ", ".join(gpu.id for gpu in found[:_MOST_LISTED])
    if len(found) > _MOST_LISTED:
        listed += f" and {len(found) - _MOST_LISTED} more"
    raise AmbiguousNameError(f"{name!r} may be several GPUs: {listed}.", hint="Give one of these.")


def _unknown(name: str) -> UnknownNameError:
    shown = name if len(name) <= _LONGEST_NAME else name[:40] + "…"
    ids = [path.stem for path in _paths()]
    aliases = (name for gpu in list_gpus() for name in _names(gpu))
    # An id where one is alike; else a shorter name that people use, such as H100.
    close = nearest(shown, ids) or nearest(shown, aliases, cutoff=0.7)
    close = close or f"There are {_COMMON} and others:"
    return UnknownNameError(
        f"No GPU is called {shown!r}.",
        hint=f"{close or f'There are {_COMMON} and others:'} {_LIST}",
    )


def _custom(size: str) -> GpuSpec:
    return GpuSpec(
        id=f"{_CUSTOM}{size.strip()}",
        name=f"a GPU with {size.strip()}",
        vendor="custom",
        architecture="unknown",
        torch_total_gib=_given(size, "A GPU", _CUSTOM),
    )


def host_of(total_bytes: int, in_use: int, source: str) -> GpuSpec:
    """The memory of a host that was read."""
    size = format_bytes(total_bytes).replace(" ", "")
    return _host(size).model_copy(
        update={
            "torch_total_gib": Fact(value=total_bytes / GIB, source=source),
            "in_use": (in_use,) if in_use else (),
        }
    )


def _host(size: str) -> GpuSpec:
    return GpuSpec(
        id=f"{_HOST}{size.strip()}",
        name=f"a host with {size.strip()}",
        vendor="cpu",
        architecture="unknown",
        torch_total_gib=_given(size, "A host", _HOST),
        shared_memory=True,
    )


def _given(size: str, what: str, prefix: str) -> Fact:
    memory = parse_bytes(size)
    if memory < GIB:
        raise UsageError(
            f"{what} has at least 1 GiB, and {size.strip()[:40]!r} is {format_bytes(memory)}.",
            hint=f"Write the unit too: {prefix}48GiB.",
        )
    if size.strip()[-1].isdigit():
        raise UsageError(
            f"{size.strip()[:40]!r} is a memory without its unit.",
            hint=f"Write {prefix}48GiB.",
        )
    return Fact(value=memory / GIB, source="given as the device's name")
