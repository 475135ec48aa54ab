"""How many GPUs a llama.cpp server has: those named, copied or counted by shares; and its limit."""

from __future__ import annotations

from typing import Any

import pytest

import kvplan
from kvplan.engines.llamacpp.devices import MOST_GPUS, Device, Machine
from kvplan.errors import UsageError
from kvplan.plan import Plan


def size(gpu: str = "H100", engine: str = "llama.cpp", **more: Any) -> Plan:
    return kvplan.size(
        "Qwen/Qwen2.5-3B", gpu, engine=engine, context=4096, offline=True, advice=False, **more
    )


@pytest.mark.parametrize("engine", ["llama.cpp", "ollama"])
@pytest.mark.parametrize(
    ("gpu", "pp", "budgets", "said"),
    [
        ("H100", 8, 2, "2 KV budgets were given for 8 GPUs"),
        ("H100", 2, 3, "3 KV budgets were given for 2 GPUs"),
        ("H100", 1, 3, "3 KV budgets were given for 1 GPU."),
        ("L4+T4", 1, 3, "3 KV budgets were given for 2 GPUs"),
        ("cpu:64GiB", 1, 2, "2 KV budgets were given for the host alone"),
    ],
)
def test_budgets_of_the_wrong_number(
    engine: str, gpu: str, pp: int, budgets: int, said: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        size(gpu, engine, pp=pp, kv_budget=(2**30,) * budgets)
    assert caught.value.hint


@pytest.mark.parametrize("engine", ["llama.cpp", "ollama"])
def test_one_budget_or_one_for_each_gpu(engine: str) -> None:
    for budget in ((2**30,), (2**30, 2**30)):
        plan = size("H100", engine, pp=2, kv_budget=budget)
        assert plan.verdict == "fits"


def test_each_gpu_has_its_own_budget() -> None:
    assert size("H100", pp=2, kv_budget=(2**30, 2**20)).verdict == "does_not_fit"


@pytest.mark.parametrize("engine", ["llama.cpp", "ollama"])
@pytest.mark.parametrize("pp", [MOST_GPUS + 1, 1000])
def test_more_gpus_than_the_scheduler_takes(engine: str, pp: int) -> None:
    plan = size("H100", engine, pp=pp)
    assert plan.verdict == "refused"
    assert plan.reasons[0].code == "engine_refuses"
    assert f"at most 15 GPUs beside the host, not {pp}" in plan.reasons[0].message
    assert plan.reasons[0].hint
    assert size("H100", engine, pp=MOST_GPUS).verdict == "fits"


def test_servers_do_not_share_a_scheduler() -> None:
    assert size("H100", dp=MOST_GPUS + 1).verdict == "fits"


def test_shares_for_gpus_that_nobody_named_are_said() -> None:
    plan = size("H100", engine_options={"tensor_split": "1,1,1"})
    said = [reason for reason in plan.reasons if reason.code == "gpus_by_tensor_split"]
    assert len(plan.devices) == 4
    assert "so 3 × H100-SXM-80GB are planned for" in said[0].message
    assert "--pp 3" in (said[0].hint or "")
    for named in (
        size("H100", pp=3, engine_options={"tensor_split": "1,1,1"}),
        size("L4+T4", engine_options={"tensor_split": "1,1"}),
        size("H100", engine_options={"tensor_split": "1"}),
        size("H100", pp=3),
    ):
        assert "gpus_by_tensor_split" not in [reason.code for reason in named.reasons]


def test_more_shares_than_stages_are_refused() -> None:
    with pytest.raises(UsageError, match="tensor_split lists 3 GPUs of 2") as caught:
        size("H100", pp=2, engine_options={"tensor_split": "1,1,1"})
    assert caught.value.hint
    assert size("H100", engine_options={"tensor_split": [1] * 20}).verdict == "refused"


def read(**in_use: int) -> Machine:
    """A machine of which other programs hold some bytes."""
    devices = {
        name: Device(name, name, "cpu" if name == "host" else "gpu", None, in_use=used)
        for name, used in in_use.items()
    }
    host = devices.pop("host")
    return Machine(tuple(devices.values()), host)


def test_the_busiest_device_is_a_gpu_where_one_is_in_use() -> None:
    assert read(first=1, second=2, host=100).busiest.name == "second"
    assert read(first=0, host=100).busiest.name == "host"
    assert read(host=100).busiest.name == "host"
    idle = read(first=1, second=2, host=100).idle
    assert [device.in_use for device in idle.devices] == [0, 0, 0]
