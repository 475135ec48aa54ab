"""A search as CSV: one row a plan, plain numbers."""

from __future__ import annotations

import csv
from io import StringIO

from kvplan.fit_result import FitResult
from kvplan.reports.clean import inert_cell

COLUMNS = (
    "rank",
    "frontier",
    "gpu",
    "gpus",
    "gpus_bought",
    "engine",
    "version",
    "weights",
    "kv_dtype",
    "layout",
    "tp",
    "pp",
    "dp",
    "ep",
    "requests",
    "headroom",
    "instance",
    "instances",
    "machines_a_replica",
    "per_hour",
    "per_month",
    "currency",
    "price_date",
    "tpot_bound_s",
    "ttft_bound_s",
    "tokens_per_s_bound",
    "crawls",
    "remarks",
)


def fit_csv(found: FitResult) -> str:
    """Rows of `COLUMNS`, the best first; empty cells where something is not known."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in found.rows():
        writer.writerow(_cell(row[name]) for name in COLUMNS)
    return out.getvalue()


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    return inert_cell(value) if isinstance(value, str) else value
