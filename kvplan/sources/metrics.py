"""A running engine's Prometheus page → a measurement record, and the room that is left."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kvplan.errors import InputError
from kvplan.measurement import LiveLoad, Measurement
from kvplan.sources.metrics_page import Sample, read_page

_MOST = 2**50


@dataclass
class _Engine:
    """The samples of one engine (one replica): values by name, labels of its information."""

    values: dict[str, float] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    info: dict[str, str] = field(default_factory=dict)


def read_metrics(target: str) -> tuple[Measurement, ...]:
    """One record a replica, with its number in the id and its `LiveLoad` under the key ``live``.

    Args:
        target: The address of a page, a file that holds one, or ``-``.

    Raises:
        UsageError: no such file, an address of another kind, or the parser is not installed.
        FactsError: nobody answers there.
        InputError: no page, or not one of vLLM or SGLang.
    """
    name, samples = read_page(target)
    for prefix, make in (("vllm:", _vllm), ("sglang:", _sglang)):
        engines = _by_engine(samples, prefix)
        if engines:
            return tuple(
                make(engine, f"{name}#{number}", name) for (number,), engine in engines.items()
            )
    raise InputError(
        "The page has no figures of vLLM or SGLang.",
        hint="vLLM publishes them at /metrics; SGLang if it is started with --enable-metrics.",
        location=name,
    )


def _by_engine(samples: Iterable[Sample], prefix: str) -> Mapping[tuple[str, ...], _Engine]:
    """The engines on a page, in the order of their numbers; of SGLang's ranks the first of each."""
    engines: dict[tuple[str, ...], _Engine] = defaultdict(_Engine)
    information = []
    for sample in samples:
        if not sample.name.startswith(prefix):
            continue
        short = sample.name.removeprefix(prefix)
        if short == "cache_config_info":
            information.append(sample)
        elif short in _NAMES and not sample.labels.get("priority"):
            engine = engines[_key(sample.labels)]
            engine.values[short] = sample.value
            engine.labels = sample.labels
    for sample in information:
        for key, engine in engines.items():
            if "engine" not in sample.labels or key[0] == sample.labels["engine"]:
                engine.info = sample.labels
    return _first_ranks(engines)


def _key(labels: Mapping[str, str]) -> tuple[str, ...]:
    replica = labels.get("engine") or labels.get("dp_rank") or "0"
    return replica, labels.get("pp_rank", "0"), labels.get("tp_rank", "0")


def _first_ranks(engines: Mapping[tuple[str, ...], _Engine]) -> dict[tuple[str, ...], _Engine]:
    """One for each replica: all ranks of one hold the same tokens."""
    first: dict[tuple[str, ...], _Engine] = {}
    for key in sorted(engines, key=lambda key: [(len(part), part) for part in key]):
        first.setdefault(key[:1], engines[key])
    return first


# vllm/engine/metrics.py@v0.6.6.post1, vllm/v1/metrics/loggers.py@v0.8.5 … v0.33.0;
# sglang/srt/metrics/collector.py@v0.4.4, sglang/srt/observability/metrics_collector.py@v0.5.10
_NAMES = frozenset(
    {
        *("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"),
        *("gpu_cache_usage_perc", "num_preemptions_total", "prefix_cache_queries_total"),
        *("prefix_cache_hits_total", "gpu_prefix_cache_queries_total"),
        *("gpu_prefix_cache_hits_total", "gpu_prefix_cache_hit_rate"),
        *("num_running_reqs", "num_queue_reqs", "token_usage", "num_used_tokens"),
        *("max_total_num_tokens", "cache_hit_rate", "num_retracted_requests_total"),
    }
)


def _vllm(engine: _Engine, identity: str, source: str) -> Measurement:
    info = engine.info
    blocks = _whole(info.get("num_gpu_blocks"))
    block_size = _whole(info.get("block_size")) or None  # 0 is no size
    tokens = _whole(info.get("kv_cache_size_tokens"))
    return _record(
        {
            "id": identity,
            "source": source,
            "engine": "vllm",
            "model": engine.labels.get("model_name"),
            "gpu_memory_utilization": _fraction(info.get("gpu_memory_utilization")),
            "kv_cache_dtype": _word(info.get("cache_dtype")),
            "block_size": block_size,
            "num_gpu_blocks": blocks,
            "kv_tokens": tokens,
            "max_concurrency": _fraction(info.get("kv_cache_max_concurrency")),
        },
        _vllm_load(engine, blocks, block_size, tokens),
    )


def _vllm_load(
    engine: _Engine, blocks: int | None, block_size: int | None, tokens: int | None
) -> LiveLoad:
    values = engine.values
    usage, usable = values.get("kv_cache_usage_perc"), None
    if usage is not None and blocks:
        usable = blocks - 1  # vllm/v1/core/block_pool.py@v0.10.2 … v0.33.0: not the null block
    elif blocks:
        # The older gauge is a share of all blocks (vllm/v1/core/block_pool.py@v0.9.2).
        usage, usable = values.get("gpu_cache_usage_perc"), blocks
    usage = usage if usage is not None else values.get("gpu_cache_usage_perc")
    used = _used(usage, usable)
    free = usable - used if usable is not None and used is not None else None
    return LiveLoad(
        usage=usage,
        used_blocks=used,
        free_blocks=free,
        free_tokens=_share(tokens, usage),
        free_tokens_at_most=free * block_size if free is not None and block_size else None,
        running=_count(values.get("num_requests_running")),
        waiting=_count(values.get("num_requests_waiting")),
        preemptions=_count(values.get("num_preemptions_total")),
        prefix_hit_rate=_hit_rate(values),
    )


def _hit_rate(values: Mapping[str, float]) -> float | None:
    for prefix in ("", "gpu_"):
        queries = values.get(f"{prefix}prefix_cache_queries_total")
        hits = values.get(f"{prefix}prefix_cache_hits_total")
        if queries and hits is not None:
            return hits / queries
    rate = values.get("gpu_prefix_cache_hit_rate")
    # V0 states -1 as long as nothing was looked up.
    return rate if rate is not None and rate >= 0 else None


def _sglang(engine: _Engine, identity: str, source: str) -> Measurement:
    values, info = engine.values, engine.info
    page = _whole(info.get("page_size")) or None  # 0 is no size
    tokens = _count(values.get("max_total_num_tokens"))
    pages = _whole(info.get("num_pages"))
    if tokens is None and page is not None and pages is not None:
        tokens = page * pages
    return _record(
        {
            "id": identity,
            "source": source,
            "engine": "sglang",
            "model": engine.labels.get("model_name"),
            "block_size": page,
            "kv_tokens": tokens,
        },
        _sglang_load(values, tokens),
    )


def _sglang_load(values: Mapping[str, float], tokens: int | None) -> LiveLoad:
    used, usage = _count(values.get("num_used_tokens")), values.get("token_usage")
    known = tokens is not None and used is not None and used <= tokens
    return LiveLoad(
        usage=usage,
        free_tokens=(tokens or 0) - (used or 0) if known else _share(tokens, usage),
        running=_count(values.get("num_running_reqs")),
        waiting=_count(values.get("num_queue_reqs")),
        preemptions=_count(values.get("num_retracted_requests_total")),
        prefix_hit_rate=values.get("cache_hit_rate"),
    )


def _record(values: Mapping[str, Any], live: LiveLoad) -> Measurement:
    known = {key: value for key, value in values.items() if value is not None}
    return Measurement.model_validate(
        {**known, "outcome": "started", "live": live.model_dump(mode="json")}
    )


def _used(usage: float | None, usable: int | None) -> int | None:
    if usage is None or usable is None or not 0 <= usage <= 1:
        return None
    return round(usage * usable)


def _share(tokens: int | None, usage: float | None) -> int | None:
    if tokens is None or usage is None or not 0 <= usage <= 1:
        return None
    return math.floor(tokens * (1 - usage))


def _count(value: float | None) -> int | None:
    return int(value) if value is not None and 0 <= value <= _MOST else None


def _parsed(text: str | None, kind: Callable[[str], float]) -> float | None:
    try:
        value = kind(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value <= _MOST else None


def _whole(text: str | None) -> int | None:
    value = _parsed(text, int)
    return int(value) if value is not None else None


def _fraction(text: str | None) -> float | None:
    value = _parsed(text, float)
    return float(value) if value is not None else None


def _word(text: str | None) -> str | None:
    return text if text not in (None, "", "None") else None
