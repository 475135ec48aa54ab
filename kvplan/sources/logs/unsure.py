"""Keys that a start has not said in full so far: its log is cut at one end, or it is not over.

A sum is not known before its last part, the fullest rank not before every rank spoke, and what a
trial says is not what the engine then takes. Each function looks at what was seen, and names the
keys of a record that have to stay null.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from kvplan.sources.logs.facts import Value
from kvplan.sources.logs.starts import Start

NOTHING: frozenset[str] = frozenset()


def nothing_unsure(_: Start) -> frozenset[str]:
    """For sentences that belong to no engine."""
    return NOTHING


def seen(start: Start, name: str) -> int:
    """How many ranks said a fact; 1 if it is of the whole start and was said."""
    if name in start.shared:
        return 1
    return sum(name in rank for rank in start.ranks.values())


def latest(start: Start, name: str) -> Value | None:
    """What was last said of the start as a whole, or None."""
    return start.shared[name][-1] if start.shared.get(name) else None


# TensorRT-LLM: what its second pool and second line of limits say anew.
_TENSORRT_POOL = frozenset(
    {
        *("available_kv_gib", "kv_tokens", "num_gpu_blocks", "block_size"),
        *("max_model_len", "max_num_seqs", "max_num_batched_tokens"),
    }
)


def unsure_tensorrt_llm(start: Start) -> frozenset[str]:
    """The pool, while it may be the one that the PyTorch backend only measures with.

    That it measured (``device_gib``) clears what was said of the small pool; the limits follow the
    pools of the model and of its draft. The C++ runtime allocates once, after it says what is free
    (``total_gib``).
    """
    measured = seen(start, "device_gib") and (seen(start, "max_seq_len") or start.outcome)
    if measured or seen(start, "total_gib") or (start.begun and start.outcome):
        return NOTHING
    return _TENSORRT_POOL


# llama.cpp: all that a further load of a model, or a further buffer of it, changes.
_LLAMACPP_LOAD = frozenset(
    {
        *("gpu", "gpu_count", "gpu_total_gib", "free_memory_before_start_gib"),
        *("max_model_len", "max_num_seqs", "kv_tokens", "kv_cache_dtype", "n_batch", "n_ubatch"),
        *("weights_gib", "activation_peak_gib", "available_kv_gib", "recurrent_state_gib"),
        *("offloaded_layers", "model_layers"),
    }
)
# Of a log without its head nobody can tell whether it speaks of the model or of its draft.
_LLAMACPP_ALL = _LLAMACPP_LOAD | {"model", "quantization"}
# Builds up to here load a model once. Later ones may try how much fits first, with the same
# sentences: https://github.com/ggml-org/llama.cpp/pull/16653, of December 2025.
_LAST_WITHOUT_TRIAL = 7000


def unsure_llamacpp(start: Start) -> frozenset[str]:
    """Buffers and contexts, until the model is there; all of it if the first line is missing.

    The compute buffers follow all others, so programs that load once need no more than them.
    """
    if not start.begun:
        return _LLAMACPP_ALL
    if start.outcome or start.closed:
        return _lost_cache(start)
    build = str(latest(start, "build") or "").removeprefix("b")
    loads_once = build.isdecimal() and int(build) <= _LAST_WITHOUT_TRIAL
    if loads_once and (seen(start, "compute_buffer_gib") or not start.ranks):
        return _lost_cache(start)
    return _LLAMACPP_LOAD


def _lost_cache(start: Start) -> frozenset[str]:
    """The cache, where a line of one of its two halves was damaged."""
    lost = start.spoiled & {"kv_buffer_gib", "rs_buffer_gib"}
    return frozenset({"available_kv_gib"}) if lost else NOTHING


def unsure_ollama(start: Start) -> frozenset[str]:
    """As in llama.cpp; the GPU too where the list of GPUs may have lost its head.

    The list follows the line with the server's version.
    """
    found = _LLAMACPP_ALL if not start.begun else _LLAMACPP_LOAD
    if start.begun and start.outcome:
        found = _lost_cache(start)
    listed = seen(start, "engine_version") or seen(start, "gpu_name")
    return found if listed else found | {"gpu", "gpu_total_gib"}


_SGLANG_MEMORY = frozenset(
    {
        *("weights_gib", "cudagraph_gib", "available_kv_gib", "kv_tokens", "recurrent_state_gib"),
        *("available_after_start_gib", "max_num_seqs"),
    }
)


def unsure_sglang(start: Start) -> frozenset[str]:
    """Sums and least figures, until the scheduler of the only replica has spoken.

    Its line (``running_requests``) follows the pools and graphs of the model and of its draft.
    With several replicas only the end of the start tells that all have spoken.
    """
    # A rank's name that is not of the others' form is a damaged one: its figures are another's.
    forms = {re.sub(r"\d", "", rank) for rank in start.ranks}
    if not start.begun or len(forms) > 1:
        return _SGLANG_MEMORY
    spoken = latest(start, "running_requests") is not None and latest(start, "dp") == 1
    return NOTHING if start.outcome or spoken else _SGLANG_MEMORY


# vLLM: keys of a rank's own, and the facts that give them.
_VLLM_RANK: Mapping[str, tuple[str, ...]] = {
    "weights_gib": ("weights_gib", "profile_weights_gib", "usage_weights_gib"),
    "activation_peak_gib": (
        *("usage_activation_gib", "torch_peak_gib", "peak_and_graphs_gib", "profile_peak_gib"),
    ),
    "non_torch_gib": ("non_torch_gib", "consumed_gib"),
    "cudagraph_gib": ("cudagraph_gib", "usage_cudagraph_gib"),
    "cudagraph_est_gib": ("cudagraph_est_gib",),
    "available_kv_gib": ("available_kv_gib", "used_kv_gib", "refused_kv_gib"),
    "free_memory_before_start_gib": ("free_gib",),
    "weights_plus_non_torch_gib": ("consumed_gib",),
    "peak_activation_printed_gib": ("peak_and_graphs_gib",),
    "outside_torch_gib": ("outside_gib",),
}
# Printed once a rank or once a start, according to the release: the least counts.
_VLLM_LEAST = frozenset({"kv_tokens", "max_concurrency", "num_gpu_blocks"})
_FIRST_TO_FIT = (0, 14)
_VLLM_LENGTHS = ("concurrency_model_len", "fit_max_model_len", "refused_model_len")


def unsure_vllm(start: Start) -> frozenset[str]:
    """Figures that another rank may have smaller or larger; settings that are not settled yet."""
    lost = {key for key, facts in _VLLM_RANK.items() if not start.spoiled.isdisjoint(facts)}
    several = lost if len(start.ranks) > 1 else NOTHING
    return _vllm_ranks(start) | _vllm_settings(start) | several


def _vllm_ranks(start: Start) -> frozenset[str]:
    size = _vllm_size(start)
    if size is None:
        # Without the line that states the ranks, the names of processes show that there are some;
        # and of a log that begins after loading nobody knows which ranks' lines are missing.
        several = any(_is_one_of_several(name) for name in start.ranks)
        told = seen(start, "weights_gib") > 0 or start.begun
        # The line that states the ranks is there, and they are not: it is damaged.
        several |= "config_tp" in start.spoiled
        return NOTHING if told and not several else _VLLM_LEAST | _VLLM_RANK.keys()
    if _speakers(start) > _processes(start, size):
        # One line more than there are ranks: the name of a rank before it is damaged.
        return _VLLM_LEAST | _VLLM_RANK.keys()
    if size == 1 or start.outcome:
        return NOTHING
    few = {
        key
        for key, facts in _VLLM_RANK.items()
        if sum(any(fact in rank for fact in facts) for rank in start.ranks.values()) < size
    }
    return _VLLM_LEAST | few


def _processes(start: Start, size: int) -> int:
    """Ranks of all replicas: 0.9 states these in its arguments alone."""
    replicas = latest(start, "arg_dp")
    stated = latest(start, "config_dp") is not None or not isinstance(replicas, int)
    return size if stated else size * int(replicas or 1)


def _speakers(start: Start) -> int:
    """Processes that say something of their own memory."""
    own = {fact for facts in _VLLM_RANK.values() for fact in facts}
    return sum(not own.isdisjoint(rank) for rank in start.ranks.values())


def _vllm_size(start: Start) -> int | None:
    """How many ranks there are, or None if the log does not say."""
    sizes = [latest(start, f"config_{name}") for name in ("tp", "pp", "dp")]
    known = [size for size in sizes if isinstance(size, int)]
    # Releases before data parallelism have no third one.
    return math.prod(known) if isinstance(sizes[0], int) else None


def _is_one_of_several(process: str) -> bool:
    """Whether a process's name tells that it is one of several: a worker, or a second engine."""
    name = process.partition(" pid=")[0]
    engine = name.startswith("EngineCore") and name[-1:].isdecimal() and not name.endswith("0")
    return engine or "Worker" in name


def _may_fit_itself(start: Start) -> bool:
    """Whether the engine may still shorten the length: -1 was asked for, or nobody knows.

    Releases from `_FIRST_TO_FIT` on do that: vllm/v1/core/kv_cache_utils.py@v0.14.0.
    """
    asked = latest(start, "arg_max_model_len")
    if isinstance(asked, int):
        return asked < 0
    if any(name.startswith("arg_") for name in start.shared):
        return False
    version = re.match(r"(\d+)\.(\d+)", str(latest(start, "engine_version")))
    return version is None or (int(version[1]), int(version[2])) >= _FIRST_TO_FIT


def _vllm_settings(start: Start) -> frozenset[str]:
    """Settings of which only the wish is known: the engine has not said what came of it."""
    found = set()
    if latest(start, "config_dtype") is None and latest(start, "arg_dtype") == "auto":
        found.add("dtype")
    if _may_fit_itself(start) and not any(seen(start, name) for name in _VLLM_LENGTHS):
        found.add("max_model_len")
    if not start.ranks and start.shared.keys() <= {"engine_version", "served_model"}:
        # The arguments that follow may name where the model really lies.
        found.add("model")
    return frozenset(found)
