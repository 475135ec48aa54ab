"""Flags of vLLM that are options of kvplan too: their words → typed and checked values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from kvplan.engines.vllm import flags, options
from kvplan.errors import NotModelledError, UsageError, shown
from kvplan.units import MAX_TOKENS

WHERE = "--from-command"
# Source: vLLM 0.33.0, vllm/utils/argparse_utils.py, human_readable_int.
_COUNT = re.compile(r"(\d{1,18}(?:\.\d{1,12})?)([kKmMgGtT]?)", re.ASCII)
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def read_number(name: str, text: Any) -> int:
    """A whole number as vLLM reads it: ``32k`` is 32,000, ``32K`` 32,768.

    Raises:
        UsageError: it is none, or out of range.
    """
    match = _COUNT.fullmatch(str(text).strip())
    if match is None:
        raise _unreadable(name, text, "a whole number", "4096, 32k (32,000) or 32K (32,768)")
    number, unit = match.groups()
    fraction = "." in number
    if fraction and unit not in _DECIMAL:
        raise _unreadable(name, text, "a whole number", "25.6k: only k, m, g and t take fractions")
    found = int(float(number) * _DECIMAL[unit]) if unit in _DECIMAL else int(number) * _BINARY[unit]
    if not 1 <= found <= MAX_TOKENS:
        raise _unreadable(name, text, f"a number from 1 to {MAX_TOKENS:,}", "4096")
    return found


def _unreadable(name: str, text: Any, what: str, example: str) -> UsageError:
    return UsageError(
        f"--{name} is {what}, not {shown(text)}.",
        hint=f"vLLM reads {example}.",
        location=WHERE,
    )


def _share(name: str, text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError, OverflowError):
        raise _unreadable(name, text, "a share of the card", "0.92") from None


def _mapping(name: str, text: Any) -> Any:
    if isinstance(text, Mapping):
        return dict(text)
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        if name == "limit-mm-per-prompt":  # before 0.9: image=2,video=1
            return text
        raise UsageError(
            f"The value of --{name} is not JSON: {shown(text)}.",
            hint="Put it in single quotes, so that the shell leaves its double quotes alone.",
            location=WHERE,
        ) from None


def _list(_name: str, value: Any) -> list[str]:
    return [part for each in value for part in str(each).split(",")]


def _numbers(name: str, value: Any) -> list[int]:
    return [read_number(name, part) for part in _list(name, value)]


def _as_is(_name: str, value: Any) -> Any:
    return value


# How the text of each option is typed; `options.read_options` then checks it.
_TYPED: Mapping[str, Callable[[str, Any], Any]] = {
    "gpu-memory-utilization": _share,
    "max-num-seqs": read_number,
    "max-num-batched-tokens": read_number,
    "block-size": read_number,
    "num-gpu-blocks-override": read_number,
    "kv-cache-memory-bytes": read_number,
    "mamba-block-size": read_number,
    "max-cudagraph-capture-size": read_number,
    "max-loras": read_number,
    "max-lora-rank": read_number,
    "prefill-context-parallel-size": read_number,
    "cpu-offload-gb": _share,
    "cudagraph-capture-sizes": _numbers,
    "kv-cache-dtype-skip-layers": _list,
    "speculative-config": _mapping,
    "limit-mm-per-prompt": _mapping,
    **dict.fromkeys(
        (
            *("enforce-eager", "enable-prefix-caching", "enable-chunked-prefill", "enable-dbo"),
            *("disable-hybrid-kv-cache-manager", "async-scheduling", "enable-expert-parallel"),
            *("mamba-cache-dtype", "mamba-ssm-cache-dtype", "mamba-cache-mode", "use-replayssm"),
            *("performance-mode", "all2all-backend", "attention-backend"),
            *("enable-lora", "enable-eplb", "disable-sliding-window"),
        ),
        _as_is,
    ),
}


def _check(read: Mapping[str, Any]) -> None:
    try:
        options.read_options(read)
    except UsageError as error:
        raise type(error)(error.message, hint=error.hint, location=WHERE) from None
    except NotModelledError:
        return  # the plan then says so


def _speculative(given: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of speculative_config that stand as flags of their own."""
    found: dict[str, Any] = {}
    for name, key in flags.SPECULATIVE.items():
        if name in given:
            text = str(given[name])
            found[key] = int(text) if text.isascii() and text.isdigit() else text
    if found.get("model") == "[ngram]":
        found["method"] = found.pop("model").strip("[]")
    return found


def _compiled(given: Mapping[str, Any]) -> dict[str, Any]:
    """What compilation_config says of CUDA graphs; a bare number is its level."""
    config = given.get("compilation-config")
    if config is None or (isinstance(config, str) and config.strip().isdigit()):
        return {}
    config = _mapping("compilation-config", config)
    if not isinstance(config, Mapping):
        raise _unreadable("compilation-config", config, "a mapping", """'{"mode": 3}'""")
    names = ("cudagraph_mode", "cudagraph_capture_sizes", "max_cudagraph_capture_size")
    return {name: config[name] for name in names if config.get(name) is not None}


def _sizes_of_graphs(given: Mapping[str, Any]) -> dict[str, Any]:
    """``--cuda-graph-sizes`` of 0.9 to 0.11: one number is the largest, several are the sizes."""
    sizes = _numbers("cuda-graph-sizes", given.get("cuda-graph-sizes", ()))
    if len(sizes) == 1:
        return {"max_cudagraph_capture_size": sizes[0]}
    return {"cudagraph_capture_sizes": sizes} if sizes else {}


def _attention(given: Mapping[str, Any]) -> Mapping[str, Any]:
    config = given.get("attention-config")
    found = _mapping("attention-config", config) if config is not None else None
    return found if isinstance(found, Mapping) else {}


def _backend(given: Mapping[str, Any]) -> dict[str, Any]:
    backend = _attention(given).get("backend")
    return {"attention_backend": backend} if backend is not None else {}


# What the keys of a sparse indexer are stored in, by its older name and by that of 0.33.
_INDEXER = ("use_fp4_indexer_cache", "indexer_kv_dtype")


def attention_noted(given: Mapping[str, Any]) -> list[str]:
    """Keys of attention_config that change the cache in a way that is not planned."""
    found = _attention(given)
    by_default = (None, False, "auto", "false", "False")
    return [
        f"--attention-config.{name} is not planned: the indexer's keys are planned as by default."
        for name in _INDEXER
        if found.get(name) not in by_default
    ]


def read_flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options among flags, checked.

    Raises:
        UsageError: a value of the wrong type or out of range.
    """
    read = {
        name.replace("-", "_"): typed(name, given[name])
        for name, typed in _TYPED.items()
        if name in given
    }
    drafts = _speculative(given)
    if drafts:
        read["speculative_config"] = {**read.get("speculative_config", {}), **drafts}
    read |= _compiled(given) | _sizes_of_graphs(given) | _backend(given)
    _check(read)
    return read


def read_environment(variables: Mapping[str, str]) -> dict[str, Any]:
    """The options that variables set."""
    read: dict[str, Any] = {}
    if variables.get("VLLM_USE_V1") in ("0", "1"):
        read["use_v1"] = variables["VLLM_USE_V1"] == "1"
    if "VLLM_ATTENTION_BACKEND" in variables:
        read["attention_backend"] = variables["VLLM_ATTENTION_BACKEND"]
    return read
