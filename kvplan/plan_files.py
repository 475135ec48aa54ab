"""`kvplan.export`: a plan as a workbook, a page, or a table, by the ending of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvplan.asked import asked_of
from kvplan.errors import UsageError, shown
from kvplan.export_forms import ending_of, rendered, write_whole
from kvplan.exporting import Price, book_of, book_of_plan
from kvplan.hardware import GpuSpec
from kvplan.host_profile import HostProfile
from kvplan.models.spec import ModelSpec
from kvplan.plan import Plan
from kvplan.sources.profile import as_profile


def export(  # noqa: PLR0913 - the arguments of `kvplan.size`, and the file
    plan: Plan | str | ModelSpec,
    path: str | Path,
    gpu: str | GpuSpec | None = None,
    *,
    price_per_gpu_hour: float | None = None,
    currency: str = "USD",
    engine: str = "vllm",
    tp: int = 1,
    pp: int = 1,
    dp: int = 1,
    dcp: int = 1,
    context: int | str | None = None,
    concurrency: int | None = None,
    weights: str = "auto",
    kv_dtype: str = "auto",
    dtype: str = "auto",
    kv_budget: int | Sequence[int] | None = None,
    engine_options: Mapping[str, Any] | None = None,
    profile: HostProfile | str | Path | None = None,
    offline: bool = False,
) -> Plan:
    """Writes a plan to a file whose ending says how: .xlsx, .html, .csv, .json, .md or .txt.

    Args:
        plan: A model, which is planned with the other arguments, as by `kvplan.size`; or a plan,
            of which what only its engine can work out (other lengths) is left out.
        path: The file; it is written whole or not at all.
        gpu: The device, for a model.
        price_per_gpu_hour: What one GPU costs an hour; None: no money is counted.
        currency: Three letters.
        engine: The engine, optionally pinned.
        tp: Tensor parallel size.
        pp: Pipeline parallel size.
        dp: Data parallel size, i.e. replicas.
        dcp: Decode-context parallel size.
        context: Tokens a request.
        concurrency: Requests held at once over the deployment.
        weights: ``auto`` or a format to plan for.
        kv_dtype: The engine's own cache type.
        dtype: The compute type.
        kv_budget: Bytes of KV cache on each GPU, or one figure a rank.
        engine_options: The engine's own option names and values.
        profile: What was learned of the machine that is planned for.
        offline: Use bundled specs and the local cache only.

    Returns:
        The plan that was written.

    Raises:
        UsageError: an ending that means nothing, an extra that is not installed, or a file that
            can't be written.
        KvplanError: see `kvplan.size`.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = Path(folder, "plan.csv")
        ...     _ = export("Qwen/Qwen3-8B", file, "H100", context=8192, offline=True)
        ...     file.read_text().partition(",")[0]
        'name'
    """
    price = None
    ending = ending_of(Path(path))
    if price_per_gpu_hour is not None:
        price = Price(price_per_gpu_hour, currency, source="given to kvplan.export")
    if isinstance(plan, Plan):
        if gpu is not None:
            raise UsageError("A plan already says which GPU.", hint="Leave it out.")
        book = book_of_plan(plan, price)
    else:
        if gpu is None:
            raise UsageError(
                f"The GPU for {shown(str(plan))} is missing.", hint="Name one, such as H100."
            )
        asked = asked_of(
            gpu,
            engine=engine,
            sizes={"tp": tp, "pp": pp, "dp": dp, "dcp": dcp},
            load=(context, concurrency),
            words={"weights": weights, "kv_dtype": kv_dtype, "dtype": dtype},
            kv_budget=kv_budget,
            options=engine_options,
            images=(0, None, None),
        )
        book = book_of(plan, asked, as_profile(profile), price=price, offline=offline)
    write_whole(rendered(book, ending), Path(path))
    return book.plan
