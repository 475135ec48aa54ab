"""A start → its measurement record: the fullest rank's figures, and how far the others are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from kvplan.errors import without_login
from kvplan.measurement import Measurement
from kvplan.sources.logs.engine_log import EngineLog
from kvplan.sources.logs.facts import Value
from kvplan.sources.logs.starts import OUT_OF_MEMORY, Start, settle

_COUNTS = frozenset(
    {
        *("gpu_count", "tp", "pp", "dp", "max_model_len", "max_num_seqs", "block_size"),
        *("max_num_batched_tokens", "num_gpu_blocks", "kv_tokens"),
    }
)
_AT_LEAST_ONE = frozenset({"gpu_count", "tp", "pp", "dp"})
_WORDS = frozenset(
    {
        *("engine_version", "model", "gpu", "kv_cache_dtype", "dtype", "quantization"),
        "weight_format",
    }
)
_OF_RECORD = frozenset({"derived", "of_other_ranks"})
# Where ranks differ, these are listed rank by rank.
_SPREAD = ("weights_gib", "available_kv_gib", "activation_peak_gib", "non_torch_gib")
_SECRET = re.compile(r"\?.*|\bhf_\w{8,}|\bsk-[\w-]{8,}")


def to_measurement(start: Start, engine: EngineLog, name: str) -> Measurement:
    """The record of one start.

    Where ranks differ, the figures are those of the rank with the least memory for the cache: the
    engine sizes every rank's pool by it.

    Args:
        start: What was seen.
        engine: Whose start it is.
        name: What the log is called.
    """
    settled = settle(start, engine.facts, engine.fronts)
    facts = {rank: {**settled.shared, **own} for rank, own in settled.ranks.items()}
    by_rank = {rank: _keys(engine, own) for rank, own in facts.items()}
    if not by_rank:
        by_rank[""] = _keys(engine, settled.shared)
    fullest = _fullest(by_rank)
    record = by_rank[fullest] | _from_others(engine, by_rank[fullest], facts, fullest)
    unsure = engine.unsure(start)
    mixed = _is_mixed(record, by_rank)
    if start.spoiled or mixed or not _is_told(by_rank, unsure):
        record = _common(record, by_rank.values())
    if engine.rank_of is not None and settled.ranks:
        record["gpu_count"] = len(settled.ranks)
    if not mixed:
        record |= _spread(by_rank, fullest, _keys(engine, settled.shared))
    return Measurement.model_validate(
        {
            **_sure(record, unsure),
            **({"contradictory": list(settled.contradictory)} if settled.contradictory else {}),
            "id": f"{PurePath(name).name}:{start.line}",
            "source": f"{name}:{start.line}",
            "engine": start.engine,
            # That memory ran out, without a word of when, is no outcome.
            "outcome": None if start.outcome == OUT_OF_MEMORY else start.outcome or None,
        }
    )


def _is_mixed(record: Mapping[str, Any], by_rank: Mapping[str, object]) -> bool:
    """Whether ranks of another start are among them: too many, or one number twice."""
    gpus = record.get("gpu_count")
    numbered = [
        name for name in (rank.partition(" pid=")[0] for rank in by_rank) if name[-1:].isdigit()
    ]
    return len(set(numbered)) < len(numbered) or (isinstance(gpus, int) and 1 < len(by_rank) > gpus)


def _is_told(by_rank: Mapping[str, Mapping[str, Any]], unsure: frozenset[str]) -> bool:
    """Whether it is known which rank is the fullest; else only what all say holds of it."""
    known = any("available_kv_gib" in own for own in by_rank.values())
    return len(by_rank) == 1 or (known and "available_kv_gib" not in unsure)


def _common(record: Mapping[str, Any], by_rank: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The keys that all ranks have, and alike."""
    ranks = tuple(by_rank)
    return {
        key: value
        for key, value in record.items()
        if key in _OF_RECORD or all(own.get(key) == value for own in ranks)
    }


def _sure(record: Mapping[str, Any], unsure: frozenset[str]) -> dict[str, Any]:
    """The record without keys that the log does not hold in full, nor what is said of them."""
    dropped = {*unsure, *(f"{key}_per_rank" for key in unsure)}
    if "available_kv_gib" in unsure:
        dropped.add("rank")
    found = {k: value for k, value in record.items() if k not in dropped and value is not None}
    for key in ("derived", "of_other_ranks"):
        if key in found:
            found[key] = [name for name in found[key] if name in found]
            if not found[key]:
                del found[key]
    return found


def _keys(engine: EngineLog, facts: Mapping[str, Value]) -> dict[str, Any]:
    """A record's keys from the facts of a start and of one rank."""
    derived = engine.derive(facts)
    keys: dict[str, Any] = {}
    for key, sources in engine.order.items():
        values = (_fitting(key, facts[name]) for name in sources if name in facts)
        value = next((value for value in values if value is not None), None)
        if value is not None:
            keys[key] = value
    for key, written in derived.items():
        value = _fitting(key, written)
        if key not in keys and value is not None:
            keys[key] = value
            if key != "gpu_count":
                keys.setdefault("derived", []).append(key)
    return keys


def _fitting(key: str, value: Value) -> Value | None:
    """The value as its key takes it, or None if it is of another kind."""
    if key == "enforce_eager":
        return _flag(value)
    if key in _WORDS:
        return _word(value)
    if isinstance(value, bool):
        return None
    if key in _COUNTS:
        least = 1 if key in _AT_LEAST_ONE else 0
        return value if isinstance(value, int) and value >= least else None
    if key.endswith(_FRACTIONS):
        known = isinstance(value, int | float) and (value >= 0 or key not in _NOT_NEGATIVE)
        return float(value) if known else None
    return value


# Engines print what is left for the cache, and what graphs took between two measurements, below 0
# too; these are amounts.
_NOT_NEGATIVE = frozenset(
    {
        *("gpu_total_gib", "weights_gib", "activation_peak_gib", "non_torch_gib"),
        "cudagraph_est_gib",
    }
)
_FRACTIONS = ("_gib", "_utilization", "_concurrency", "_fraction", "_static")


def _flag(value: Value) -> bool | None:
    if isinstance(value, str):
        return {"True": True, "False": False}.get(value)
    return value if isinstance(value, bool) else None


def _word(value: Value) -> str | None:
    """A name, without what a log should not have held: credentials in an address."""
    if not isinstance(value, str):
        return None
    return _SECRET.sub("", without_login(value.removeprefix("torch."))) or None


def _fullest(by_rank: Mapping[str, Mapping[str, Any]]) -> str:
    """The rank with the least memory for the cache; where none says, with the most weights."""

    def fullness(rank: str) -> tuple[float, float, int]:
        keys = by_rank[rank]
        cache = keys.get("available_kv_gib")
        weights = keys.get("weights_gib")
        return (
            cache if cache is not None else float("inf"),
            -weights if weights is not None else float("inf"),
            -len(keys),
        )

    return min(by_rank, key=fullness)


def _from_others(
    engine: EngineLog,
    record: Mapping[str, Any],
    facts: Mapping[str, Mapping[str, Value]],
    fullest: str,
) -> dict[str, Any]:
    """What the fullest rank did not print and others agree on, where all hold alike shards."""
    if len(facts) < 2 or record.get("pp") != 1:
        return {}
    alike: dict[str, Value | None] = {}
    for rank, own in facts.items():
        if rank != fullest:
            for name, value in own.items():
                alike[name] = value if alike.get(name, value) == value else None
    known = {name: value for name, value in alike.items() if value is not None}
    filled = _keys(engine, {**known, **facts[fullest]})
    found = {key: filled[key] for key in filled if key not in record}
    return {**found, "of_other_ranks": sorted(found.keys() - {"derived"})} if found else {}


def _spread(
    by_rank: Mapping[str, Mapping[str, Any]], fullest: str, shared: Mapping[str, Any]
) -> dict[str, Any]:
    """Which rank the record is of, and the figures of all where they have their own."""
    if len(by_rank) == 1:
        return {}
    found: dict[str, Any] = {"rank": fullest} if fullest else {}
    for key in _SPREAD:
        values: Sequence[float] = [keys[key] for keys in by_rank.values() if key in keys]
        if len(values) > 1 and key not in shared:
            found[f"{key}_per_rank"] = values
    return found
