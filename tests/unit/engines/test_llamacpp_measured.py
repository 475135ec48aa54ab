"""Cache sizes that public start-up logs of llama.cpp and its fork print, from geometry alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from kvplan.api import read_spec
from kvplan.engines.llamacpp.caches import Types, layer_stores
from kvplan.engines.llamacpp.context import context_of
from kvplan.models.caches import FullCache
from kvplan.models.spec import Layer

sys.path.insert(0, str(Path(__file__).parents[3] / "validation"))

from engine_starts import llamacpp
from engine_starts.notes import is_independent, read_notes, read_rows

FILE = Path("measurements", "llamacpp.jsonl")
SERIES = {
    "DeepSeek-Coder-V2": "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct",
    "gpt-oss-20b": "openai/gpt-oss-20b",
}


def test_caches_whose_geometry_is_known_are_equal_within_print_rounding(
    shared: Path, record_property: Callable[[str, object], None]
) -> None:
    """Of all 89 starts; windows and states are printed apart."""
    rows = read_rows(shared / FILE)
    found = llamacpp.report(rows, read_notes("llamacpp"))
    assert [each.id for each in found.pools if not each.exact] == []
    known = {row["id"] for row in rows if is_independent(row)}
    assert {each.id for each in found.pools} == known
    assert (len(known), len(found.pools)) == (89, 93)
    record_property("table: llama.cpp measured caches", f"{len(found.pools)} sizes equal")


def test_memory_grows_by_the_caches_alone(shared: Path) -> None:
    """Starts that differ in their context: what the driver says was used, in whole MiB."""
    by_series: dict[str, list[tuple[float, int]]] = {}
    for row in read_rows(shared / FILE):
        used = (row["other"] or {}).get("vram_used_mib")
        alike = row["flags"].get("n_cpu_moe") in (20, 24)
        if used and alike and row["flags"].get("n_parallel") == 8:
            series = f"{row['model'][:12]} {row['gpu']}"
            by_series.setdefault(series, []).append((cache_mib(row), used))
    differences = [
        (after[1] - before[1]) - (after[0] - before[0])
        for series in by_series.values()
        for before, after in pairwise(series)
    ]
    assert len(differences) == 7
    assert max(map(abs, differences)) <= 2


def cache_mib(row: dict[str, Any]) -> float:
    """Of eight slots; the file of DeepSeek's holds its attention unpacked."""
    start = next(start for start in SERIES if row["model"].startswith(start))
    spec = read_spec(SERIES[start], offline=True)
    if start.startswith("DeepSeek"):
        whole = FullCache(kv_heads=spec.attention_heads, head_dim=192, head_dim_v=128)
        layers = (Layer(caches=(whole,)),) * len(spec.layers)
        spec = spec.model_copy(update={"layers": layers})
    flags = row["flags"]
    context = context_of(
        flags["n_ctx"], 8, unified=False, n_batch=flags["n_batch"], n_ubatch=flags["n_ubatch"]
    )
    stores = layer_stores(spec, Types("f16", "f16", flash_attn=True))
    return sum(store.bytes(context, swa_full=False) for store in stores) / 2**20
