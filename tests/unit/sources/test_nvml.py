"""NVML through the real nvidia-ml-py, on machines that tests/fake_nvml/nvml.c plays.

The binding loads a library once in a process, so each machine is read in one of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kvplan.hardware import device_memory
from kvplan.sources import machine

SOURCE = Path(__file__).parents[2] / "fake_nvml" / "nvml.c"
MIB = 2**20

SCRIPT = """
import json, sys
from kvplan.errors import KvplanError
from kvplan.hardware import device_memory
from kvplan.sources.nvml import auto_gpu, detect
answer = {}
for name, read in (("detected", detect), ("auto", auto_gpu)):
    try:
        found = read()
    except KvplanError as error:
        answer[name] = {"error": type(error).__name__, "message": error.message,
                        "hint": error.hint, "exit": error.exit_code}
        continue
    if name == "detected":
        answer[name] = [gpu.model_dump(mode="json") for gpu in found]
    else:
        memory = device_memory(found).model_dump(mode="json")
        answer[name] = {**found.model_dump(mode="json"), "memory": memory}
print(json.dumps(answer))
"""

Read = Callable[..., dict[str, Any]]


def compiled(folder: Path, *flags: str) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler to build the stand-in for libnvidia-ml.so.1")
    library = folder / "libnvidia-ml.so.1"
    arguments = [compiler, "-shared", "-fPIC", "-Wall", "-Werror", *flags, "-o", library, SOURCE]
    subprocess.run(arguments, check=True, timeout=120)
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A driver of today."""
    return compiled(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="module")
def old_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A driver that lacks the second memory query and the third process query."""
    return compiled(tmp_path_factory.mktemp("old_nvml"), "-DOLD_DRIVER")


def read_with(folder: Path, machine: str, visible: str | None = None) -> dict[str, Any]:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder), "FAKE_NVML": machine}
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture
def read(library: Path) -> Read:
    """Reads a machine that the stand-in plays."""

    def reading(machine: str, visible: str | None = None) -> dict[str, Any]:
        return read_with(library, machine, visible)

    return reading


def test_one_h100(read: Read) -> None:
    answer = read("one")
    assert answer["detected"] == [
        {
            "index": 0,
            "name": "NVIDIA H100 80GB HBM3",
            "uuid": "GPU-11111111-aaaa",
            "driver_version": "550.54.15",
            "compute_capability": "9.0",
            "total_bytes": 81559 * MIB,
            "free_bytes": (81559 - 469) * MIB,
            "used_bytes": 0,
            "reserved_bytes": 469 * MIB,
            "used_by_others": 0,
            "processes": 0,
            "ecc": True,
            "mig_enabled": False,
            "mig": [],
            "spec_id": "H100-SXM-80GB",
        }
    ]
    auto = answer["auto"]
    assert auto["id"] == "H100-SXM-80GB"
    assert auto["driver_total_mib"]["value"] == 81559
    assert auto["driver_total_mib"]["source"] == "NVML, driver 550.54.15"
    assert auto["memory_bandwidth_gb_s"]["value"] == 3350
    assert auto["torch_total_gib"]["value"] == 79.19
    assert (auto["torch_total_gib"]["low"], auto["torch_total_gib"]["high"]) == (79.1, 79.44)
    assert auto["notes"] == []


def test_memory_that_other_programs_use(read: Read) -> None:
    answer = read("busy")
    (gpu,) = answer["detected"]
    assert gpu["used_by_others"] == gpu["used_bytes"] == 20480 * MIB
    assert gpu["processes"] == 2
    assert gpu["free_bytes"] == (81559 - 469 - 20480) * MIB
    assert answer["auto"]["notes"] == ["20.00 GiB of its memory is used by other programs now."]
    assert answer["auto"]["driver_total_mib"]["value"] == 81559


def test_unlike_gpus_are_listed_and_not_chosen_from(read: Read) -> None:
    answer = read("unlike")
    assert [gpu["spec_id"] for gpu in answer["detected"]] == ["H100-SXM-80GB", "L4-24GB"]
    assert answer["auto"]["error"] == "AmbiguousNameError"
    assert answer["auto"]["exit"] == 2
    assert answer["auto"]["message"] == (
        "This machine has unlike GPUs: 0: NVIDIA H100 80GB HBM3 (H100-SXM-80GB), "
        "1: NVIDIA L4 (L4-24GB)."
    )
    assert "--gpu H100-SXM-80GB" in answer["auto"]["hint"]
    assert "CUDA_VISIBLE_DEVICES" in answer["auto"]["hint"]


@pytest.mark.parametrize(
    ("visible", "found"),
    [
        ("0", "H100-SXM-80GB"),
        ("1", "L4-24GB"),
        (" 1 ", "L4-24GB"),
        ("GPU-33333333-cccc", "L4-24GB"),
        ("GPU-3", "L4-24GB"),
        ("1,7,0", "L4-24GB"),  # CUDA stops at the first that is not there
        ("0,0", "H100-SXM-80GB"),
    ],
)
def test_cuda_visible_devices_chooses(read: Read, visible: str, found: str) -> None:
    assert read("unlike", visible)["auto"]["id"] == found


@pytest.mark.parametrize("visible", ["", "-1", "2", "NoDevFiles", "GPU-9"])
def test_cuda_visible_devices_may_hide_all(read: Read, visible: str) -> None:
    answer = read("unlike", visible)
    assert len(answer["detected"]) == 2
    assert answer["auto"]["error"] == "NoDeviceError"
    assert answer["auto"]["exit"] == 3
    assert "hides every GPU" in answer["auto"]["message"]


def test_like_gpus_are_planned_for_as_one(read: Read) -> None:
    answer = read("twins")
    assert len(answer["detected"]) == 2
    assert answer["auto"]["id"] == "H100-SXM-80GB"


def test_a_device_without_memory_figures_takes_the_bundled_ones(read: Read) -> None:
    answer = read("gb10")
    (gpu,) = answer["detected"]
    assert gpu["spec_id"] == "GB10-128GB"
    assert gpu["total_bytes"] is gpu["free_bytes"] is gpu["used_by_others"] is gpu["ecc"] is None
    assert answer["auto"]["torch_total_gib"]["value"] == 121.69
    assert answer["auto"]["driver_total_mib"] is None
    assert any("gives no memory" in note for note in answer["auto"]["notes"])


def test_mig_instances_are_listed(read: Read) -> None:
    answer = read("mig")
    (gpu,) = answer["detected"]
    assert gpu["mig_enabled"] is True
    assert [(one["profile"], one["total_bytes"]) for one in gpu["mig"]] == [
        ("1g.5gb", 4864 * MIB),
        ("3g.20gb", 19968 * MIB),
    ]
    assert answer["auto"]["error"] == "AmbiguousNameError"
    assert "MIG 1g.5gb (MIG-aaaa)" in answer["auto"]["message"]
    assert "MIG 3g.20gb (MIG-bbbb)" in answer["auto"]["message"]


def test_a_chosen_mig_instance_is_a_device_of_its_own(read: Read) -> None:
    auto = read("mig", "MIG-bbbb")["auto"]
    assert auto["id"] == "A100-SXM-40GB-MIG-3g.20gb"
    assert auto["driver_total_mib"]["value"] == 19968
    assert auto["compute_capability"] == "8.0"
    assert auto["memory_bandwidth_gb_s"] is None
    assert auto["memory"]["confidence"] == "assumed"


def test_mig_without_instances_offers_no_device(read: Read) -> None:
    answer = read("mig-empty")
    assert answer["detected"][0]["mig"] == []
    assert answer["auto"]["error"] == "NoDeviceError"
    assert "no instances" in answer["auto"]["message"]


def test_ecc_changes_what_is_read(read: Read) -> None:
    on, off = read("ecc-on"), read("ecc-off")
    assert on["detected"][0]["ecc"] is True
    assert off["detected"][0]["ecc"] is False
    assert on["detected"][0]["spec_id"] == off["detected"][0]["spec_id"] == "RTX-A6000-48GB"
    assert off["auto"]["torch_total_gib"]["value"] == 47.4
    assert "scaled" not in off["auto"]["torch_total_gib"]["note"]
    # The file's low is of cards with ECC on, and this one has it off.
    assert off["auto"]["torch_total_gib"]["low"] > 46
    scaled = on["auto"]["torch_total_gib"]
    assert scaled["value"] == pytest.approx(47.4 * 46068 / 49140)
    assert scaled["note"] == "scaled to the 46,068 MiB that NVML reads here"
    assert scaled["low"] == pytest.approx(0.970 * 46068 / 1024)
    # What torch was seen to have with ECC on (vllm-project/vllm#16141).
    assert scaled["low"] < 44.55 < scaled["high"]


def test_a_modified_card_is_known_by_its_memory(read: Read) -> None:
    answer = read("modded")
    assert answer["detected"][0]["spec_id"] == "RTX-4090-48GB"
    assert answer["auto"]["driver_total_mib"]["value"] == 49140


def test_a_gpu_that_is_not_bundled_is_planned_for_by_what_the_driver_says(read: Read) -> None:
    answer = read("unknown")
    assert answer["detected"][0]["spec_id"] is None
    auto = answer["auto"]
    assert (auto["id"], auto["compute_capability"]) == ("Z9000", "11.0")
    assert auto["driver_total_mib"]["value"] == 50000
    assert auto["memory"]["confidence"] == "assumed"


def test_no_memory_and_not_bundled(read: Read) -> None:
    answer = read("no-memory")
    assert answer["auto"]["error"] == "NoDeviceError"
    assert "custom:48GiB" in answer["auto"]["hint"]


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        ("none", "finds no GPU"),
        ("not-loaded", "not loaded"),
        ("mismatch", "different versions"),
        ("lost", "GPU is lost"),
    ],
)
def test_drivers_that_fail(read: Read, machine: str, message: str) -> None:
    answer = read(machine)
    for part in ("detected", "auto"):
        assert answer[part]["error"] == "NoDeviceError"
        assert answer[part]["exit"] == 3
        assert message in answer[part]["message"]
        assert "--gpu H100-SXM-80GB" in answer[part]["hint"]


def test_a_machine_without_a_driver(tmp_path: Path) -> None:
    # A file that is no library stands before any real one on the path.
    (tmp_path / "libnvidia-ml.so.1").write_text("", encoding="utf-8")
    answer = read_with(tmp_path, "one")
    assert answer["detected"]["error"] == "NoDeviceError"
    assert "no NVIDIA driver" in answer["detected"]["message"]


def test_an_old_driver_counts_what_it_reserves_as_used(old_library: Path) -> None:
    (gpu,) = read_with(old_library, "busy")["detected"]
    assert gpu["reserved_bytes"] is None
    assert gpu["processes"] is None
    assert gpu["used_bytes"] == gpu["used_by_others"] == (20480 + 469) * MIB
    assert gpu["total_bytes"] == 81559 * MIB


def test_a_system_that_tells_nothing_has_no_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def silent(_: str) -> int:
        raise ValueError

    (host,) = machine.host_specs()
    assert host.vendor == "cpu"
    monkeypatch.setattr("kvplan.sources.machine._MEMORY_FILE", tmp_path / "none")
    (idle,) = machine.host_specs()
    assert idle.in_use == ()
    (tmp_path / "meminfo").write_text("MemTotal: 4 kB\nMemAvailable:    1048576 kB\n")
    monkeypatch.setattr("kvplan.sources.machine._MEMORY_FILE", tmp_path / "meminfo")
    total = device_memory(idle).total
    assert machine.host_specs()[0].in_use == (max(0, total - 2**30),)
    monkeypatch.setattr("os.sysconf", silent)
    assert machine.host_specs() == ()
