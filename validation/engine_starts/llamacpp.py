"""llama.cpp and what is built on it: caches in MiB from the flags of a start.

A model is a bundled one, or the metadata of its GGUF file as a log prints them. Where only a fork
knows the architecture, an architecture whose layers are cached alike stands for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine_starts.notes import (
    Ask,
    Compared,
    Notes,
    Report,
    Row,
    flags_of,
    is_independent,
    name_of,
    why_not,
)
from kvplan.api import read_spec
from kvplan.architectures import read_model
from kvplan.engines.llamacpp.caches import LayerStore, Types, layer_stores
from kvplan.engines.llamacpp.context import Context, context_of
from kvplan.errors import KvplanError
from kvplan.models.caches import FullCache, LatentCache
from kvplan.models.facts import ModelFacts
from kvplan.models.spec import Layer, ModelSpec

_MIB = 2**20
_GIB_IN_MIB = 1024
# Two decimals of each of two halves.
_ROUNDING = 0.011
_UNPACKED = {"kv_heads": 0, "head_dim": 192, "head_dim_v": 128}


def report(rows: tuple[Row, ...], notes: Notes) -> Report:
    """All rows of llama.cpp; `pools` of the notes names a model by how a name begins."""
    compared: list[Compared] = []
    left_out: dict[str, str] = {}
    for row in rows:
        spec = _spec(row, notes.pools) if is_independent(row) else None
        if spec is None:
            left_out[row["id"]] = notes.left_out.get(row["id"]) or why_not(row)
            continue
        compared += _caches(row, spec)
    return Report(len(rows), tuple(compared), (), notes.causes, {}, left_out)


def _spec(row: Row, pools: Mapping[str, Ask]) -> ModelSpec | None:
    name = row["model"] or row["model_inferred"] or ""
    ask = next((ask for start, ask in pools.items() if name.startswith(start)), None)
    if ask is None:
        return None
    try:
        spec = _described(ask["metadata"]) if "metadata" in ask else _bundled(str(ask["model"]))
    except KvplanError:
        return None
    return _unpacked(spec) if row["v_size"] else spec


def _bundled(model: str) -> ModelSpec:
    return read_spec(model, offline=True)


def _described(metadata: Mapping[str, Any]) -> ModelSpec:
    """The model that a GGUF file with such metadata holds."""
    facts = ModelFacts(id="a start's log", source="its log", config=dict(metadata), gguf=True)
    return read_model(facts)


def _unpacked(spec: ModelSpec) -> ModelSpec:
    """Latent attention in files that hold it unpacked: keys and values for each query head."""
    if not any(isinstance(cache, LatentCache) for cache in spec.caches):
        return spec
    whole = FullCache(**{**_UNPACKED, "kv_heads": spec.attention_heads})
    return spec.model_copy(update={"layers": (Layer(caches=(whole,)),) * len(spec.layers)})


def _caches(row: Row, spec: ModelSpec) -> Iterator[Compared]:
    """What a log prints apart: caches of all tokens, of windows, and states."""
    stores, context = _stored(row, spec)
    fork = row["engine"].startswith("ik")  # keeps no windows
    other = row["other"] or {}
    kept = [s for s in stores if s.kind != "recurrent" and (fork or s.window is None)]
    label = f"{name_of(row)}, {context.n_ctx:,} cells"
    yield _compared(row, label, row["kv_size"], _mib(kept, context, swa_full=fork))
    windows = (other.get("swa") or {}).get("mib")
    if windows:
        found = _mib([s for s in stores if s.window], context)
        yield _compared(row, f"{label}: windows", windows, found)
    if "recurrent_mib" in other:
        states = _mib([s for s in stores if s.kind == "recurrent"], context)
        yield _compared(row, f"{label}: states", other["recurrent_mib"], states)


def _compared(row: Row, what: str, printed_mib: float, found_mib: float) -> Compared:
    return Compared(
        id=row["id"],
        what=what,
        measured=printed_mib / _GIB_IN_MIB,
        predicted=found_mib / _GIB_IN_MIB,
        exact=abs(found_mib - printed_mib) < _ROUNDING,
    )


def _stored(row: Row, spec: ModelSpec) -> tuple[tuple[LayerStore, ...], Context]:
    flags = flags_of(row)
    key = flags.get("cache_type_k") or "f16"
    latent = any(isinstance(cache, LatentCache) for cache in spec.caches)
    value = key if latent else flags.get("cache_type_v") or key
    context = context_of(
        flags.get("n_ctx") or row["kv_tokens"],
        flags.get("n_parallel") or 1,
        unified=flags.get("kv_unified") is not False,
        n_batch=flags.get("n_batch") or 2048,
        n_ubatch=flags.get("n_ubatch") or 512,
    )
    types = Types(key, value, flash_attn=True)
    return layer_stores(spec, types, rollback=flags.get("n_rs_seq") or 0), context


def _mib(stores: list[LayerStore], context: Context, *, swa_full: bool = False) -> float:
    return sum(store.bytes(context, swa_full=swa_full) for store in stores) / _MIB
