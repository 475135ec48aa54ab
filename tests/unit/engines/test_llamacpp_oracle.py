"""Every reference case of llama.cpp: bytes, cells, refusals and devices, without tolerance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from llamacpp_cases import device_difference, difference, expected_of, plan_of, spec_of

Oracle = Callable[[str], Iterator[dict[str, Any]]]


def test_every_context_is_as_large_as_llama_cpp_makes_it(
    oracle: Oracle, shared: Path, record_property: Callable[[str, object], None]
) -> None:
    count, wrong = 0, []
    for row in oracle("llamacpp_cases.jsonl.gz"):
        count += 1
        spec = spec_of(shared / "oracle" / "gguf" / f"{row['model']}.{row['size']}.gguf")
        found = difference(spec, row["params"], expected_of(row))
        if found:
            wrong.append(f"{row['model']}: {found}")
    record_property("table: llama.cpp contexts", f"{count - len(wrong)} of {count} equal")
    assert count == 2042
    assert not wrong, wrong[:5]


def test_every_device_holds_the_caches_that_llama_cpp_puts_there(
    oracle: Oracle, shared: Path, record_property: Callable[[str, object], None]
) -> None:
    count, wrong = 0, []
    for row in oracle("llamacpp_offload_cases.jsonl.gz"):
        count += 1
        found = device_difference(
            spec_of(shared / "oracle/gguf" / f"{row['model']}.full.gguf"), row
        )
        if found:
            wrong.append(f"{row['model']} {row['n_gpu_layers']}: {found}")
    record_property("table: llama.cpp devices", f"{count - len(wrong)} of {count} equal")
    assert count == 691
    assert not wrong, wrong[:5]


def test_compute_buffers_lie_in_their_ranges(
    oracle: Oracle, shared: Path, record_property: Callable[[str, object], None]
) -> None:
    """Of devices with all that they compute; the library reserves logits for the whole batch."""
    inside: Counter[bool] = Counter()
    for row in oracle("llamacpp_offload_cases.jsonl.gz"):
        spec = spec_of(shared / "oracle/gguf" / f"{row['model']}.full.gguf")
        plan = plan_of(
            spec, {"n_seq_max": 1, **row["params"]}, n_outputs_max=0,
            n_gpu_layers=row["n_gpu_layers"], tensor_split=tuple(row["tensor_split"]),
        )  # fmt: skip
        ours = {device.name: device.compute_bytes for device in plan.devices}
        for name, parts in row["measured"].items():
            if parts["compute"]:
                inside[0.4 <= parts["compute"] / max(1, ours[name]) <= 1.6] += 1
    record_property("table: llama.cpp compute buffers", f"{inside[True]} of {inside.total()}")
    assert inside.total() > 1500
    assert inside[False] == 0
