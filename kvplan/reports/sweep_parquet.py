"""A sweep as Parquet, which pyarrow writes."""

from __future__ import annotations

from io import BytesIO

from kvplan.sweep_frames import write_parquet
from kvplan.sweep_result import Sweep
from kvplan.sweep_simulated import SimulatedSweep


def sweep_parquet(sweep: Sweep | SimulatedSweep) -> bytes:
    """A Parquet file, a row a point.

    Raises:
        UsageError: pyarrow is not installed.
    """
    out = BytesIO()
    write_parquet(sweep.packed(), out)
    return out.getvalue()
