"""A command line that starts vLLM → what it asks for, in the terms of `kvplan.size`.

Numbers are read as vLLM reads them: ``32k`` is 32,000 there and ``32K`` is 32,768.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kvplan.engines.vllm import arguments, command_options, flags, launch, shell
from kvplan.engines.vllm.arguments import Flags, ReadFile
from kvplan.engines.vllm.defaults import Entry
from kvplan.engines.vllm.launch import Launch
from kvplan.errors import UsageError

_AUTO = ("-1", "auto")
# What vLLM quantizes while it loads a plain checkpoint, as `--weights` calls it; every other
# method of its --quantization only names how the checkpoint is stored, which is read from there.
# Source: vLLM 0.33.0, vllm/config/quantization.py.
_WHILE_LOADING = {"fp8": "fp8", "fp8_per_channel": "fp8", "fp8_per_block": "fp8-block"}


@dataclass(frozen=True, slots=True)
class Command:
    """What a command line asks for. None = it does not say.

    Attributes:
        context: Tokens a request; ``auto`` for the longest that fits.
        quantization: As vLLM names it.
        options: vLLM's own names and values, for `kvplan.size`.
        remarks: What was not understood or not planned, as sentences.
    """

    model: str | None = None
    version: str | None = None
    entry: Entry = "serve"
    tp: int | None = None
    pp: int | None = None
    dp: int | None = None
    dcp: int | None = None
    context: int | Literal["auto"] | None = None
    kv_dtype: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def made_while_loading(self) -> str | None:
        """The format that vLLM makes of a plain checkpoint, as `--weights` calls it, or None."""
        return _WHILE_LOADING.get(self.quantization or "")


def read_text(text: str, read_file: ReadFile) -> Command:
    """Reads what a person would paste into a shell.

    Args:
        text: Shell commands, one of which starts vLLM, or the arguments alone.
        read_file: Gives the mapping in a file that ``--config`` names.

    Raises:
        UsageError: nothing in it starts vLLM, or something in it can't be read.
    """
    found = launch.find(shell.split(text))
    if found is None:
        raise UsageError(
            "Nothing in that text starts vLLM.",
            hint="Give a command such as: vllm serve MODEL --max-model-len 32768.",
            location=command_options.WHERE,
        )
    return read_launch(found, read_file)


def read_arguments(
    texts: Sequence[str],
    read_file: ReadFile,
    *,
    image: str | None,
    environment: Mapping[str, str] | None = None,
) -> Command:
    """Reads a list of arguments, as a container gets them; ``image`` may name the release.

    Raises:
        UsageError: something in it can't be read.
    """
    found = launch.of_arguments(shell.plain(texts), image)
    return read_launch(
        replace(found, environment={**(environment or {}), **found.environment}), read_file
    )


def read_launch(start: Launch, read_file: ReadFile) -> Command:
    """Reads the arguments of one start.

    Raises:
        UsageError: a value that can't be read.
    """
    found = arguments.read(start.words, read_file)
    given = found.values
    read = command_options.read_environment(start.environment) | command_options.read_flags(given)
    if start.entry != "serve":
        read["usage_context"] = start.entry
    return Command(
        model=_model(found),
        version=start.version,
        entry=start.entry,
        tp=_count(given, "tensor-parallel-size"),
        pp=_count(given, "pipeline-parallel-size"),
        dp=_count(given, "data-parallel-size"),
        dcp=_count(given, "decode-context-parallel-size"),
        context=_context(given.get("max-model-len")),
        kv_dtype=_text(given, "kv-cache-dtype"),
        dtype=_text(given, "dtype"),
        quantization=_quantization(given),
        options=read,
        remarks=(*found.remarks, *_noted(found)),
    )


def _model(found: Flags) -> str | None:
    name = found.values.get("model") or next(iter(found.positional), None)
    revision = found.values.get("revision")
    if name is None or not revision or "@" in name or name.startswith((".", "/", "~")):
        return name
    return f"{name}@{revision}"


def _noted(found: Flags) -> list[str]:
    """Flags that change something which is not planned, and words that belong nowhere."""
    said = [
        f"--{name} is not planned: {why}."
        for name, why in flags.NOTED.items()
        if found.values.get(name, False) not in _AS_BY_DEFAULT.get(name, (False, "", None))
    ]
    said += command_options.attention_noted(found.values)
    # Not quoted: it may be the value of a flag that kvplan does not know, and a secret.
    extra = len(found.positional) - ("model" not in found.values)
    return said + [f"{extra} of its words belong to no flag and are left out."] * (extra > 0)


# -O2 and -O3 capture the graphs of the default (vllm/config/vllm.py, 0.33.0).
_AS_BY_DEFAULT: Mapping[str, tuple[Any, ...]] = {
    "optimization-level": (False, "", "2", "3"),
    "task": (False, "auto", "generate"),
    "runner": (False, "auto", "generate"),
    "convert": (False, "auto", "none"),
    "num-scheduler-steps": (False, "1"),
    "num-redundant-experts": (False, "0"),
}


def _quantization(given: Mapping[str, Any]) -> str | None:
    named = _text(given, "quantization")
    return None if named in (None, "None", "none", "null") else named


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    return None if value is None else str(value)


def _context(text: Any) -> int | Literal["auto"] | None:
    if text is None:
        return None
    return (
        "auto"
        if str(text).strip().lower() in _AUTO
        else command_options.read_number("max-model-len", text)
    )


def _count(given: Mapping[str, Any], name: str) -> int | None:
    return None if given.get(name) is None else command_options.read_number(name, given[name])
