"""Measurement records for people and for programs: what logs and metrics pages said."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from kvplan._version import __version__
from kvplan.measurement import Measurement
from kvplan.reports.clean import clean
from kvplan.reports.text_console import lay_out, spaced, table
from kvplan.units import format_count

_MEMORY = (
    ("Card", "gpu_total_gib"),
    ("Weights", "weights_gib"),
    ("Activation peak", "activation_peak_gib"),
    ("Outside torch", "non_torch_gib"),
    ("CUDA graphs", "cudagraph_gib"),
    ("Cache", "available_kv_gib"),
)
_COUNTS = (
    ("Blocks", "num_gpu_blocks"),
    ("Block size", "block_size"),
    ("Cache holds", "kv_tokens"),
    ("Longest request", "max_model_len"),
)
_LIVE = (
    ("Running", "running", ""),
    ("Waiting", "waiting", ""),
    ("Free", "free_tokens", " tokens"),
    ("Free at most", "free_tokens_at_most", " tokens"),
    ("Free", "free_blocks", " blocks"),
    ("Preempted", "preemptions", ""),
)
_TOKENS = frozenset({"block_size", "kv_tokens", "max_model_len"})


def measurements_json(records: Iterable[Measurement]) -> str:
    """All records in one object (`kvplan.measurements/1`); null is what nobody wrote down."""
    data = {
        "schema": "kvplan.measurements/1",
        "kvplan_version": __version__,
        "records": [record.model_dump(mode="json") for record in records],
    }
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def measurements_text(
    records: Sequence[Measurement], *, width: int, color: bool, ascii_only: bool
) -> str:
    """A heading and a short table for each record: only what is known."""
    parts: list[RenderableType] = []
    for record in records:
        heading = _heading(record)
        parts.append(spaced(heading) if parts else heading)
        rows = (*_memory_rows(record), *_count_rows(record), *_live_rows(record))
        grid = table(words=("", "Per GPU"), numbers=(), ascii_only=ascii_only)
        for label, value in rows:
            grid.add_row(label, clean(value))
        if rows:
            parts.append(grid)
    return lay_out(parts, width=width, color=color, ascii_only=ascii_only)


def _heading(record: Measurement) -> Text:
    engine = " ".join(filter(None, (record.engine, record.engine_version)))
    ranks = f"{record.gpu_count} GPUs" if record.gpu_count and record.gpu_count > 1 else None
    said = (engine, record.model, record.gpu, ranks, (record.outcome or "").replace("_", " "))
    text = Text(clean(" · ".join(filter(None, said))), style="bold")
    where = record.id if _live(record) else record.source
    return text.append(f"\n{clean(where or '')}", style="not bold dim")


def _memory_rows(record: Measurement) -> Iterable[tuple[str, str]]:
    values = record.model_dump()
    for label, key in _MEMORY:
        if values[key] is not None:
            yield label, f"{values[key]:,.2f} GiB{_spread(values.get(f'{key}_per_rank'))}"


def _spread(values: Any) -> str:
    if not isinstance(values, list) or min(values) == max(values):
        return ""
    return f" ({min(values):,.2f} to {max(values):,.2f} over {len(values)} ranks)"


def _count_rows(record: Measurement) -> Iterable[tuple[str, str]]:
    values = record.model_dump()
    for label, key in _COUNTS:
        if values[key] is not None:
            yield label, format_count(values[key]) + (" tokens" if key in _TOKENS else "")
    if record.max_concurrency is not None:
        yield "Concurrency", f"{record.max_concurrency:,.2f}"


def _live(record: Measurement) -> dict[str, Any]:
    live = (record.model_extra or {}).get("live")
    return live if isinstance(live, dict) else {}


def _live_rows(record: Measurement) -> Iterable[tuple[str, str]]:
    live = _live(record)
    if live.get("usage") is not None:
        yield "In use", f"{live['usage']:.1%}"
    for label, key, unit in _LIVE:
        known_better = key == "free_tokens_at_most" and live.get("free_tokens") is not None
        if live.get(key) is not None and not known_better:
            yield label, format_count(live[key]) + unit
    if live.get("prefix_hit_rate") is not None:
        yield "Prefix hits", f"{live['prefix_hit_rate']:.1%}"
