"""GPU names, and every file of gpu_specs/."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import AmbiguousNameError, InputError, UnknownNameError, UsageError
from kvplan.hardware import Fact, GpuSpec, device_memory
from kvplan.sources import gpus
from kvplan.sources.bundled import specs_dir
from kvplan.sources.gpus import find_gpu, find_gpus, fold, list_gpus, search_gpus

ALL = list_gpus()
# Nothing in reach states their memory.
WITHOUT_MEMORY = {"b100", "max-1550-128gb"}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("H100-SXM-80GB", "H100-SXM-80GB"),
        ("h100_sxm_80gb", "H100-SXM-80GB"),
        ("H100", "H100-SXM-80GB"),
        ("h100-sxm", "H100-SXM-80GB"),
        ("H100 80GB HBM3", "H100-SXM-80GB"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM-80GB"),
        ("H100-PCIe-80GB", "H100-PCIe-80GB"),
        ("nvidia h100 pcie", "H100-PCIe-80GB"),
        ("A100-SXM4-80GB", "A100-SXM-80GB"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM-40GB"),
        ("NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"),
        ("RTX 4090", "RTX-4090-24GB"),
        ("4090", "RTX-4090-24GB"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090-24GB"),
        ("RTX-4090-24GB", "RTX-4090-24GB"),
        ("H200", "H200-SXM-141GB"),
        ("B200-SXM-180GB", "B200-SXM-180GB"),
        ("L4", "L4-24GB"),
        ("L40", "L40-48GB"),
        ("L40S-48GB", "L40S-48GB"),
        ("T4", "T4-16GB"),
        ("Tesla T4", "T4-16GB"),
        ("A10", "A10-24GB"),
        ("NVIDIA H20", "H20-96GB"),
        ("NVIDIA GH200 480GB", "GH200-96GB"),
        ("MI300X", "MI300X-192GB"),
        ("mi250x-128gb", "MI250X-GCD-64GB"),
        ("DGX Spark", "GB10-128GB"),
        ("Gaudi3", "Gaudi-3-128GB"),
        ("  h100  ", "H100-SXM-80GB"),
    ],
)
def test_a_name_finds_its_gpu(name: str, found: str) -> None:
    assert find_gpu(name).id == found


@pytest.mark.parametrize(
    ("name", "candidates"),
    [
        ("A100", ["A100-PCIe-40GB", "A100-PCIe-80GB", "A100-SXM-40GB", "A100-SXM-80GB"]),
        ("A100 80GB", ["A100-PCIe-80GB", "A100-SXM-80GB"]),
        ("A100-SXM", ["A100-SXM-40GB", "A100-SXM-80GB"]),
        ("apple m2 max", ["Apple-M2-Max-32GB", "Apple-M2-Max-64GB", "Apple-M2-Max-96GB"]),
        ("V100", ["V100-SXM-16GB", "V100-SXM-32GB"]),
    ],
)
def test_an_ambiguous_name_lists_its_candidates(name: str, candidates: list[str]) -> None:
    with pytest.raises(AmbiguousNameError) as caught:
        find_gpu(name)
    assert caught.value.message == f"{name!r} may be several GPUs: {', '.join(candidates)}."
    assert caught.value.exit_code == 2


def test_a_long_list_of_candidates_is_cut() -> None:
    with pytest.raises(AmbiguousNameError, match=r"RTX-2080-Ti-11GB, .* and \d+ more"):
        find_gpu("rtx")


@pytest.mark.parametrize("name", ["H100-SMX", "foo", "", " ", "NVIDIA", "-_-", "80GB", "x" * 10**6])
def test_an_unknown_name(name: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_gpu(name)
    assert len(caught.value.message) < 200
    assert caught.value.hint is not None
    assert "kvplan gpus list" in caught.value.hint


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_gpu("H100-SMX")
    assert caught.value.hint is not None
    assert "Did you mean H100-SXM-80GB" in caught.value.hint


@given(st.text(max_size=30))
def test_any_name_finds_a_gpu_or_ends_in_a_usage_error(name: str) -> None:
    if name.strip().casefold() == "auto":
        return
    with suppress(UsageError):
        assert find_gpu(name).id


@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("custom:48GiB", 48 * 2**30),
        ("CUSTOM:80GB", 80 * 10**9),
        ("custom: 40.5 GiB", 43_486_543_872),
        ("custom:1GiB", 2**30),
        ("custom:999999999GB", 999_999_999 * 10**9),
    ],
)
def test_a_custom_gpu_has_exactly_that_memory(name: str, total: int) -> None:
    gpu = find_gpu(name)
    memory = device_memory(gpu)
    # A float holds 53 bits; no GPU has 8 PiB.
    assert memory.total == pytest.approx(total, abs=0 if total < 2**53 else 64)
    assert memory.low == memory.high == memory.total
    assert (gpu.vendor, memory.confidence) == ("custom", "exact")


@pytest.mark.parametrize("name", ["custom:", "custom:x", "custom:0", "custom:-1GiB", "custom:1YiB"])
def test_a_custom_gpu_without_a_size(name: str) -> None:
    with pytest.raises(UsageError):
        find_gpu(name)


@pytest.mark.parametrize("name", ["custom:48", "custom:1023MiB", "custom:51539607552", "custom:1"])
def test_a_custom_gpu_needs_a_unit_and_a_gibibyte(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_gpu(name)
    assert "custom:48GiB" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["RTX 6000", "nvidia rtx-6000"])
def test_the_words_of_a_name_may_be_those_of_several_cards(name: str) -> None:
    with pytest.raises(AmbiguousNameError) as caught:
        find_gpu(name)
    assert "RTX-6000-Ada-48GB, RTX-PRO-6000-96GB" in caught.value.message


def test_its_memory_or_a_further_word_tells_a_card_from_the_others() -> None:
    assert find_gpu("RTX 6000 48GB").id == find_gpu("RTX 6000 Ada").id == "RTX-6000-Ada-48GB"
    assert find_gpu("RTX PRO 6000").id == "RTX-PRO-6000-96GB"


def test_every_name_of_every_spec_finds_it() -> None:
    for gpu in ALL:
        for name in (gpu.id, *gpu.aliases):
            assert find_gpu(name).id == gpu.id, name


def test_names_do_not_clash() -> None:
    owners: dict[str, str] = {}
    for gpu in ALL:
        for folded in {fold(name) for name in (gpu.id, *gpu.aliases)}:
            assert owners.setdefault(folded, gpu.id) == gpu.id
        # A driver's name may stand for several only where memory is an option of the machine.
        if gpu.vendor != "apple":
            assert owners.setdefault(fold(gpu.name), gpu.id) == gpu.id


def test_files_are_named_after_their_ids() -> None:
    names = sorted(path.stem for path in specs_dir("gpu_specs").glob("*.yaml"))
    assert names == sorted(gpu.id for gpu in ALL)


def test_names_stand_before_the_first_source() -> None:
    """The search reads no further; a name below it would never be found."""
    for path in specs_dir("gpu_specs").glob("*.yaml"):
        head = path.read_text(encoding="utf-8").partition("source:")[0]
        keys = [line.partition(":")[0] for line in head.splitlines() if not line.startswith(" ")]
        assert keys[:3] == ["schema", "id", "name"]
        assert "aliases:" not in path.read_text(encoding="utf-8")[len(head) :]


def test_every_figure_has_a_source() -> None:
    for gpu in ALL:
        facts = [value for _, value in gpu if isinstance(value, Fact)]
        assert facts
        assert bool(gpu.compute_capability) == bool(gpu.compute_capability_source)
        for source in (*(fact.source for fact in facts), *(slice_.source for slice_ in gpu.mig)):
            assert "recall" not in source.casefold()
            assert len(source) > 10


def test_figures_are_of_a_plausible_size() -> None:
    """A slip of a unit or a digit is what hand-kept files suffer from."""
    for gpu in ALL:
        nominal = gpu.nominal_memory_gb
        memory = device_memory(gpu)
        assert 2**32 < memory.low <= memory.total <= memory.high < 2**40
        if gpu.driver_total_mib and gpu.torch_total_gib:
            assert 0.96 < gpu.torch_total_gib.value * 1024 / gpu.driver_total_mib.value <= 1
        if gpu.driver_total_mib and nominal and gpu.vendor != "apple":
            assert 0.92 < gpu.driver_total_mib.value / 1024 / nominal.value <= 1
        for slice_ in gpu.mig:
            assert nominal
            assert slice_.memory_gib < nominal.value


def test_vendors_other_than_nvidia_have_no_compute_capability() -> None:
    for gpu in ALL:
        assert (gpu.sm is not None) == (gpu.vendor == "nvidia"), gpu.id


def test_devices_of_the_reference_list_are_bundled(shared: Path) -> None:
    rows = (shared / "gpus" / "gpus.jsonl").read_text(encoding="utf-8").splitlines()
    names = [json.loads(row)["id"] for row in rows]
    for name in names:
        if name in WITHOUT_MEMORY:
            continue
        try:
            assert find_gpu(name)
        except AmbiguousNameError:
            assert name.startswith("apple-")  # one file for each memory option


def test_figures_of_the_reference_list_are_kept(shared: Path) -> None:
    """Every driver and torch figure that is bundled lies within what the list's sources state."""
    for row in (shared / "gpus" / "gpus.jsonl").read_text(encoding="utf-8").splitlines():
        device = json.loads(row)
        stated = device["facts"].get("nvml_total_mib", [])
        values = [
            entry["value"]
            for entry in stated
            if entry["value"] and "EC2" not in entry.get("note", "")
        ]
        # Modified cards stand in the list under the product that they were made from.
        if values and device["id"] != "rtx-4090d-24gb":
            fact = find_gpu(device["id"]).driver_total_mib
            assert fact is not None
            assert fact.low is not None or fact.high is not None or fact.value in values
            assert any(
                (fact.low or fact.value) <= one <= (fact.high or fact.value) for one in values
            )


def test_search_looks_into_names_vendors_and_architectures() -> None:
    assert [gpu.id for gpu in search_gpus("h200")] == [
        "GH200-96GB",
        "GH200-144GB",
        "H200-NVL-141GB",
        "H200-SXM-141GB",
    ]
    assert {gpu.vendor for gpu in search_gpus("AMD")} == {"amd"}
    assert {gpu.architecture for gpu in search_gpus("hopper")} == {"hopper"}
    assert search_gpus("no such thing") == ()


def test_gpus_are_listed_in_the_order_people_expect() -> None:
    ids = [gpu.id for gpu in ALL]
    assert ids.index("L4-24GB") < ids.index("L20-48GB") < ids.index("L40-48GB")
    assert ids.index("Apple-M2-8GB") < ids.index("Apple-M2-16GB")


def write_spec(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "X-1GB.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(gpus, "specs_dir", lambda _kind: folder)


NAMED = "schema: kvplan.gpu/1\nid: X-1GB\nname: X\nvendor: nvidia\narchitecture: x\n"
NO_SOURCE = NAMED + "nominal_memory_gb: {value: 1}\n"
NO_ORDER = NAMED + "nominal_memory_gb: {value: 1, low: 2, source: a}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id: X-1GB\n", "not a GPU spec"),
        ("schema: kvplan.gpu/9\nid: X-1GB\n", "not a GPU spec"),
        (NAMED, "no memory is stated"),
        (NO_SOURCE, r"`nominal_memory_gb\.source` is missing"),
        (NO_ORDER, "not in this order"),
    ],
)
def test_a_broken_spec_is_named(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_spec(tmp_path, text, monkeypatch)
    with pytest.raises(InputError, match=message) as caught:
        find_gpu("X-1GB")
    assert str(caught.value.location).startswith(str(tmp_path / "X-1GB.yaml"))


def test_only_files_that_may_be_meant_are_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    read = gpus._read

    def counting(path: Path) -> GpuSpec:
        parsed.append(path.stem)
        return read(path)

    monkeypatch.setattr(gpus, "_read", counting)
    find_gpu("H100-SXM-80GB")
    assert parsed == ["H100-SXM-80GB"]


def test_a_name_is_found_quickly() -> None:
    find_gpu("L40S-48GB")
    start = time.process_time()
    for _ in range(10):
        find_gpu("L40S-48GB")
    assert (time.process_time() - start) / 10 < 0.015


def test_finding_a_gpu_loads_no_driver_binding() -> None:
    code = (
        "import sys; from kvplan.sources.gpus import find_gpu; find_gpu('h100');"
        "assert not {'pynvml', 'rich', 'huggingface_hub', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_host_is_its_memory() -> None:
    host = find_gpu("CPU:64GiB")
    assert (host.id, host.vendor) == ("cpu:64GiB", "cpu")
    assert device_memory(host).total == 64 * 2**30
    assert device_memory(host).confidence == "exact"
    with pytest.raises(UsageError) as caught:
        find_gpu("cpu:64")
    assert "cpu:48GiB" in (caught.value.hint or "")


def test_several_devices_of_one_machine() -> None:
    assert [gpu.id for gpu in find_gpus("L4 + T4+cpu:1GiB")] == ["L4-24GB", "T4-16GB", "cpu:1GiB"]
    assert [gpu.id for gpu in find_gpus("L4")] == ["L4-24GB"]
    with pytest.raises(UsageError):
        find_gpus("L4+")
    with pytest.raises(UsageError, match="200 devices"):
        find_gpus("+".join(["L4"] * 200))


def test_a_name_like_none_offers_common_devices() -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_gpu("foo")
    offered = (caught.value.hint or "").removeprefix("There are ").partition(" and others")[0]
    assert all(find_gpu(name).id == name for name in offered.split(", "))
