"""GPUs as text and JSON."""

from __future__ import annotations

import json

import pytest
from syrupy.assertion import SnapshotAssertion

from kvplan.hardware import DetectedGpu, Fact, GpuSpec, MigInstance
from kvplan.reports.gpus import detected_text, gpu_list_text, gpu_text
from kvplan.reports.gpus_json import detected_json, gpu_json, gpu_list_json
from kvplan.sources.gpus import find_gpu, list_gpus, search_gpus

BUSY = DetectedGpu(
    index=0,
    name="NVIDIA H100 80GB HBM3",
    uuid="GPU-1",
    driver_version="550.54.15",
    compute_capability="9.0",
    total_bytes=81559 * 2**20,
    free_bytes=60610 * 2**20,
    used_bytes=20480 * 2**20,
    reserved_bytes=469 * 2**20,
    used_by_others=20480 * 2**20,
    processes=2,
    ecc=True,
    mig_enabled=False,
    spec_id="H100-SXM-80GB",
)
SILENT = DetectedGpu(index=1, name="NVIDIA Z9000", uuid="GPU-2", driver_version="550.54.15")
SLICED = DetectedGpu(
    index=2,
    name="NVIDIA A100-SXM4-40GB",
    uuid="GPU-3",
    driver_version="550.54.15",
    total_bytes=40960 * 2**20,
    mig_enabled=True,
    mig=(
        MigInstance(
            index=0,
            name="NVIDIA A100-SXM4-40GB MIG 1g.5gb",
            uuid="MIG-4d2a5c0e-8b1f-5b7e-9d3a-2f6c1e0b7a91",
            profile="1g.5gb",
            total_bytes=4864 * 2**20,
        ),
    ),
    spec_id="A100-SXM-40GB",
)
ODD = GpuSpec(
    id="odd\x1b[31m",
    name="a\nb",
    vendor="custom",
    architecture="x",
    torch_total_gib=Fact(value=1, source="\u202esource", note="\x07"),
)


def test_the_list(snapshot: SnapshotAssertion) -> None:
    some = (*search_gpus("h100"), *search_gpus("mi3"), *search_gpus("m2 max"))
    assert gpu_list_text(some, width=80, color=False) == snapshot


def test_one_gpu_with_its_sources(snapshot: SnapshotAssertion) -> None:
    assert gpu_text(find_gpu("H100-SXM-80GB"), width=80, color=False) == snapshot


def test_what_was_detected(snapshot: SnapshotAssertion) -> None:
    assert detected_text((BUSY, SILENT, SLICED), width=80, color=False) == snapshot


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_figure_is_cut(width: int) -> None:
    whole = gpu_list_text(list_gpus(), width=width, color=False)
    texts = [whole, detected_text((BUSY, SILENT, SLICED), width=width, color=False)]
    texts.extend(gpu_text(gpu, width=width, color=False) for gpu in list_gpus())
    for text in texts:
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text
    for gpu in list_gpus():
        assert f"  {gpu.id} " in whole


def test_text_from_outside_does_not_reach_the_terminal_raw() -> None:
    text = gpu_text(ODD, width=80, color=False)
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "a b" in text


def test_ascii_where_the_terminal_has_no_more() -> None:
    assert gpu_list_text(list_gpus(), width=80, color=False, ascii_only=True).isascii()
    assert gpu_text(find_gpu("b200"), width=80, color=False, ascii_only=True).isascii()


def test_colour_adds_only_colour() -> None:
    assert "\x1b[" in gpu_text(find_gpu("b200"), width=80, color=True)


def test_json_of_one_gpu() -> None:
    data = json.loads(gpu_json(find_gpu("h100")))
    assert (data["schema"], data["id"]) == ("kvplan.gpu/1", "H100-SXM-80GB")
    assert data["driver_total_mib"]["value"] == 81559
    assert data["memory_bytes"]["total"] == 85_029_615_043
    assert data["memory_bytes"]["confidence"] == "derived"


def test_json_of_all() -> None:
    data = json.loads(gpu_list_json(list_gpus()))
    assert data["schema"] == "kvplan.gpus/1"
    assert [gpu["id"] for gpu in data["gpus"]] == [gpu.id for gpu in list_gpus()]


def test_json_of_what_was_detected_says_null_for_what_is_not_known() -> None:
    data = json.loads(detected_json((BUSY, SILENT)))
    assert data["schema"] == "kvplan.detected/1"
    assert data["gpus"][0]["free_bytes"] == 60610 * 2**20
    assert data["gpus"][1]["free_bytes"] is None
