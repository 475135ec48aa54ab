"""GPUs as text: the bundled ones in a table, one with its sources, this machine's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kvplan.hardware import DetectedGpu, Fact, GpuSpec, MigProfile, device_memory
from kvplan.reports.clean import clean
from kvplan.reports.text_console import INDENT, items, lay_out, spaced, table
from kvplan.units import GIB, format_bytes

_VENDORS = {
    "nvidia": "NVIDIA",
    "amd": "AMD",
    "intel": "Intel",
    "google": "Google",
    "aws": "AWS",
    "apple": "Apple",
    "custom": "Given by hand",
}
_NOT_KNOWN = "-"
_FOOT = (
    "GiB is what an engine sees (~ estimated from other cards, no source states it), MiB what the "
    "driver prints. Bandwidth in 10^9 bytes/s, BF16 and FP8 in dense TFLOP/s, SM is CUDA's compute "
    "capability. A dash: no source at hand."
)


def gpu_list_text(
    gpus: Sequence[GpuSpec], *, width: int, color: bool, ascii_only: bool = False
) -> str:
    """A line a device, by vendor."""
    numbers = ("GiB", "MiB", "GB/s", "BF16", "FP8", "SM")
    made = table(words=("GPU",), numbers=numbers, ascii_only=ascii_only)
    for vendor, title in _VENDORS.items():
        rows = [gpu for gpu in gpus if gpu.vendor == vendor]
        if rows:
            made.add_row(Text(title), style="bold")
        for gpu in rows:
            made.add_row(*_list_cells(gpu))
    foot = spaced(Text(_FOOT, style="dim"))
    return lay_out((made, foot), width=width, color=color, ascii_only=ascii_only)


def _list_cells(gpu: GpuSpec) -> Iterator[str]:
    memory = device_memory(gpu)
    yield " " * INDENT + gpu.id
    yield f"{'~' if memory.confidence == 'assumed' else ''}{memory.total / GIB:.2f}"
    for fact in (gpu.driver_total_mib, gpu.memory_bandwidth_gb_s, gpu.tflops_bf16, gpu.tflops_fp8):
        yield _number(fact.value) if fact else _NOT_KNOWN
    yield gpu.compute_capability or _NOT_KNOWN


def gpu_text(gpu: GpuSpec, *, width: int, color: bool, ascii_only: bool = False) -> str:
    """One device: every figure with its source, each source written once below."""
    memory = device_memory(gpu)
    interval = f" ({memory.low / GIB:.2f} to {memory.high / GIB:.2f})"
    seen = f"{memory.total / GIB:.2f} GiB{interval if memory.low < memory.high else ''}"
    sources: dict[str, int] = {}
    parts: list[RenderableType] = [
        Text(clean(gpu.id), style="bold"),
        Text(clean(f"{gpu.name} ({gpu.architecture})")),
        spaced(Text(f"An engine sees {seen}, {memory.confidence}.")),
        spaced(_facts_table(gpu, sources, ascii_only=ascii_only)),
    ]
    if gpu.mig:
        parts.append(spaced(_mig_table(gpu.mig, sources, ascii_only=ascii_only)))
    cited = tuple(f"[{number}] {source}" for source, number in sources.items())
    parts.extend(
        spaced(items(title, [Text(clean(text)) for text in texts]))
        for title, texts in (
            ("Also called", (", ".join(gpu.aliases),)),
            ("Notes", gpu.notes),
            ("Sources", cited),
        )
        if any(texts)
    )
    return lay_out(parts, width=width, color=color, ascii_only=ascii_only)


def _facts_table(gpu: GpuSpec, sources: dict[str, int], *, ascii_only: bool) -> Table:
    made = table(words=("Figure",), numbers=("Value", "Source"), ascii_only=ascii_only)
    made.columns[0].no_wrap = True
    made.add_column("Remark", overflow="fold")
    if gpu.compute_capability:
        source = _cite(sources, gpu.compute_capability_source or "not stated")
        made.add_row("Compute capability", gpu.compute_capability, source)
    for label, unit, fact in _facts(gpu):
        if fact:
            value = f"{_number(fact.value)} {unit}".strip()
            made.add_row(label, value, _cite(sources, fact.source), Text(_remark(fact)))
    return made


def _facts(gpu: GpuSpec) -> Iterable[tuple[str, str, Fact | None]]:
    return (
        ("Nominal memory", "GB", gpu.nominal_memory_gb),
        ("Driver's total", "MiB", gpu.driver_total_mib),
        ("torch's total", "GiB", gpu.torch_total_gib),
        ("Bandwidth", "GB/s", gpu.memory_bandwidth_gb_s),
        ("FP16, dense", "TFLOP/s", gpu.tflops_fp16),
        ("BF16, dense", "TFLOP/s", gpu.tflops_bf16),
        ("FP8, dense", "TFLOP/s", gpu.tflops_fp8),
        ("FP4, dense", "TFLOP/s", gpu.tflops_fp4),
        ("INT8, dense", "TOP/s", gpu.tops_int8),
        ("Links, both ways", "GB/s", gpu.link_gb_s),
        ("PCIe generation", "", gpu.pcie_generation),
        ("Power", "W", gpu.power_watts),
    )


def _cite(sources: dict[str, int], source: str) -> Text:
    return Text(f"[{sources.setdefault(source, len(sources) + 1)}]", style="dim")


def _remark(fact: Fact) -> str:
    low, high = fact.low or fact.value, fact.high or fact.value
    interval = f"from {_number(low)} to {_number(high)}" if low < high else None
    return clean("; ".join(part for part in (interval, fact.note) if part))


def _mig_table(
    profiles: Sequence[MigProfile], sources: dict[str, int], *, ascii_only: bool
) -> Table:
    made = table(words=("MIG slice",), numbers=("GiB", "At most", "Source"), ascii_only=ascii_only)
    made.columns[0].no_wrap = True
    made.add_column("Remark", overflow="fold")
    for profile in profiles:
        made.add_row(
            clean(profile.profile),
            f"{profile.memory_gib:.2f}",
            str(profile.instances or _NOT_KNOWN),
            _cite(sources, profile.source),
            Text(clean(profile.note or "")),
        )
    return made


def detected_text(
    gpus: Sequence[DetectedGpu], *, width: int, color: bool, ascii_only: bool = False
) -> str:
    """This machine's GPUs: what is free, what other programs use, the bundled spec of each."""
    numbers = ("Total", "Free", "By others")
    made = table(words=("GPU",), numbers=numbers, ascii_only=ascii_only)
    for gpu in gpus:
        made.add_row(
            Text(clean(f"{gpu.index}: {gpu.name}"), style="bold"),
            _bytes(gpu.total_bytes),
            _bytes(gpu.free_bytes),
            _bytes(gpu.used_by_others),
        )
        made.add_row(Text(" " * 3 + clean(_remarks(gpu)), style="dim"))
        for instance in gpu.mig:
            profile = clean(instance.profile or str(instance.index))
            made.add_row(Text(f"   MIG {profile}"), _bytes(instance.total_bytes))
            made.add_row(Text(f"   {clean(instance.uuid)}", style="dim"))
    driver = Text(clean(f"Driver {gpus[0].driver_version}")) if gpus else Text("No GPU")
    return lay_out((made, spaced(driver)), width=width, color=color, ascii_only=ascii_only)


def _remarks(gpu: DetectedGpu) -> str:
    remarks = [gpu.spec_id or "no bundled spec of this name and memory"]
    if gpu.compute_capability:
        remarks.append(f"SM {gpu.compute_capability}")
    if gpu.ecc is not None:
        remarks.append(f"ECC {'on' if gpu.ecc else 'off'}")
    if gpu.mig_enabled:
        remarks.append(f"MIG on, {len(gpu.mig)} instances")
    if gpu.processes:
        remarks.append(f"{gpu.processes} other programs")
    if gpu.total_bytes is None:
        remarks.append("the driver gives no memory")
    return ", ".join(remarks)


def _bytes(count: int | None) -> str:
    return _NOT_KNOWN if count is None else format_bytes(count)


def _number(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")
