"""`kvplan size --gpu auto` on machines that tests/fake_nvml/nvml.c plays."""

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

SOURCE = Path(__file__).parents[1] / "fake_nvml" / "nvml.c"
MIB = 2**20
Plan = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvml")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler to build the stand-in for libnvidia-ml.so.1")
    built = [compiler, "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", SOURCE]
    subprocess.run(built, check=True, timeout=120)
    return folder


@pytest.fixture
def plan(library: Path) -> Plan:
    """Plans for a machine; the exit code is in the answer."""

    def planning(machine: str, *words: str, visible: str | None = None) -> dict[str, Any]:
        environment = {**os.environ, "LD_LIBRARY_PATH": str(library), "FAKE_NVML": machine}
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        if visible is not None:
            environment["CUDA_VISIBLE_DEVICES"] = visible
        command = ["size", "Qwen/Qwen3-0.6B", "--gpu", "auto", "--offline", "--format", "json"]
        done = subprocess.run(
            [sys.executable, "-m", "kvplan", *command, *words],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        answer: dict[str, Any] = {"exit": done.returncode, "stderr": done.stderr}
        return {**answer, **(json.loads(done.stdout) if done.stdout else {})}

    return planning


def reasons(answer: dict[str, Any]) -> dict[str, str]:
    return {reason["code"]: reason["message"] for reason in answer["reasons"]}


def line(answer: dict[str, Any], name: str) -> dict[str, Any] | None:
    return next((each for each in answer["ledger"] if each["name"] == name), None)


def test_an_idle_card_has_no_line_for_others(plan: Plan) -> None:
    answer = plan("one")
    assert answer["exit"] == 0
    assert line(answer, "other_processes") is None
    assert "memory_in_use" not in reasons(answer)


def test_what_others_hold_is_a_line_and_vllm_would_not_start(plan: Plan) -> None:
    answer = plan("busy")
    assert (answer["exit"], answer["verdict"]) == (1, "does_not_fit")
    others = line(answer, "other_processes")
    assert others is not None
    assert (others["bytes"], others["section"]) == (20480 * MIB, "outside")
    assert others["source"].startswith("NVML")
    assert "Other programs hold 20.00 GiB" in reasons(answer)["memory_in_use"]
    assert sum(each["bytes"] for each in answer["ledger"]) == answer["gpu"]["total_bytes"]
    assert "20.00 GiB of its memory is used" in reasons(answer)["device_note"]


def test_the_utilization_that_is_hinted_at_starts(plan: Plan) -> None:
    hint = next(r["hint"] for r in plan("busy")["reasons"] if r["code"] == "memory_in_use")
    option = hint.rstrip(".").split("-o ")[1]
    lowered = plan("busy", "-o", option)
    assert lowered["exit"] == 0
    share = float(option.split("=")[1])
    assert plan("busy", "-o", f"gpu_memory_utilization={share + 0.011:.3f}")["exit"] == 1


def test_only_the_cards_that_are_taken_count(plan: Plan) -> None:
    """The second card is busy: one rank runs on the first, two need both."""
    assert plan("busy-twin")["exit"] == 0
    both = plan("busy-twin", "--tp", "2")
    assert both["exit"] == 1
    others = line(both, "other_processes")
    assert others is not None
    assert others["bytes"] == 30720 * MIB
    assert plan("busy-twin", visible="1")["exit"] == 1


@pytest.mark.parametrize(
    ("engine", "words", "share"),
    [
        # Shares of the memory in use that the cache loses: see the pages of the engines.
        ("sglang", ("-o", "mem_fraction_static=0.75"), 0.75),
        ("tensorrt-llm", (), 0.9),
        ("transformers", (), 1.0),
        ("llama.cpp", ("--weights", "gguf:Q8_0"), 1.0),
        ("ollama", ("--weights", "gguf:Q8_0", "-o", "num_batch=512"), 1.0),
    ],
)
def test_other_engines_plan_with_what_is_left(
    plan: Plan, engine: str, words: tuple[str, ...], share: float
) -> None:
    asked = ("--engine", engine, "--context", "8k", *words)
    idle, busy = (plan(machine, *asked) for machine in ("one", "busy"))
    assert idle["exit"] == busy["exit"] == 0
    assert line(idle, "other_processes") is None
    others = line(busy, "other_processes")
    assert others is not None
    assert others["bytes"] == 20480 * MIB
    lost = idle["kv"]["budget_bytes"] - busy["kv"]["budget_bytes"]
    assert abs(lost - share * 20480 * MIB) <= 1
    if engine != "ollama":  # which serves as many as it is told
        assert busy["capacity"]["requests"] < idle["capacity"]["requests"]
    assert sum(each["bytes"] for each in busy["ledger"]) == busy["gpu"]["total_bytes"]
    assert min(each["bytes"] for each in busy["ledger"]) >= 0


@pytest.mark.parametrize("engine", ["sglang", "tensorrt-llm", "transformers", "llama.cpp"])
def test_other_engines_name_what_others_hold_where_it_is_why(plan: Plan, engine: str) -> None:
    words = ["--engine", engine, "--context", "8k"]
    words += ["--weights", "gguf:Q8_0"] if engine == "llama.cpp" else []
    idle = plan("one", *words)
    busy = plan("busy", *words, "--concurrency", str(idle["capacity"]["requests"]))
    assert (busy["exit"], busy["verdict"]) == (1, "does_not_fit")
    assert "Other programs hold 20.00 GiB" in reasons(busy)["memory_in_use"]


def test_llamacpp_reads_each_card(plan: Plan) -> None:
    answer = plan(
        "busy-twin", "--engine", "llama.cpp", "--weights", "gguf:Q8_0", "--pp", "2",
        "--context", "8k",
    )  # fmt: skip
    first, second, _ = answer["devices"]
    assert "others_bytes" not in first
    assert second["others_bytes"] == 30720 * MIB
    assert first["layers"] > second["layers"]


def test_sglang_starts_no_ranks_with_unlike_free_memory(plan: Plan) -> None:
    assert plan("busy-twin", "--engine", "sglang")["exit"] == 0
    both = plan("busy-twin", "--engine", "sglang", "--tp", "2")
    assert both["exit"] == 1
    assert "does not start ranks" in reasons(both)["memory_in_use"]


def test_more_cards_than_there_are(plan: Plan) -> None:
    assert "fewer_devices" not in reasons(plan("twins", "--tp", "2"))
    assert reasons(plan("one", "--tp", "2"))["fewer_devices"] == (
        "The plan is for 2 GPUs; programs see 1 here."
    )


def test_an_instance_of_a_partitioned_card(plan: Plan) -> None:
    answer = plan("mig", visible="MIG-bbbb")
    assert answer["gpu"]["id"] == "A100-SXM-40GB-MIG-3g.20gb"
    others = line(answer, "other_processes")
    assert others is not None
    assert others["bytes"] == 4096 * MIB
    assert "partitioned GPU" in reasons(answer)["device_note"]


def test_error_correction_that_takes_memory_is_named(plan: Plan) -> None:
    noted = {name: reasons(plan(name)).get("device_note", "") for name in ("ecc-on", "ecc-off")}
    assert len([note for note in noted.values() if "ECC is o" in note]) == 1
    (name,) = [name for name, note in noted.items() if "ECC is o" in note]
    assert f"ECC is {name.removeprefix('ecc-')}" in noted[name]


def test_unlike_cards_are_not_chosen_from(plan: Plan) -> None:
    answer = plan("unlike")
    assert answer["exit"] == 2
    assert "unlike GPUs" in answer["stderr"]
    assert plan("unlike", visible="1")["gpu"]["id"] == "L4-24GB"


@pytest.mark.parametrize("engine", ["llama.cpp", "ollama"])
def test_engines_that_spread_layers_take_unlike_cards_and_the_host(plan: Plan, engine: str) -> None:
    words = ("--engine", engine, "--weights", "gguf:Q8_0", "--context", "8k")
    answer = plan("unlike", *words)
    assert answer["exit"] == 0, answer["stderr"]
    first, second, host = answer["devices"]
    assert (first["id"], second["id"]) == ("H100-SXM-80GB", "L4-24GB")
    assert first["layers"] > second["layers"] > 0
    assert host["id"].startswith("cpu:")
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert host["total_bytes"] == pages
    assert 0 < host["others_bytes"] < pages
    assert "fewer_devices" not in reasons(answer)


def test_a_host_that_is_named_is_not_read(plan: Plan) -> None:
    words = ("--engine", "llama.cpp", "--gpu", "auto + cpu:48GiB", "--context", "8k")
    *_, host = plan("unlike", *words)["devices"]
    assert (host["id"], host["total_bytes"]) == ("cpu:48GiB", 48 * 2**30)


def test_a_named_card_is_read_from_its_spec_alone(plan: Plan) -> None:
    answer = plan("busy", "--gpu", "H100-SXM-80GB")
    assert answer["exit"] == 0
    assert "device_note" not in reasons(answer)
