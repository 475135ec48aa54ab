"""`kvplan.simulate`, `traffic`, `check`, `export` and `Workload`: what they pass on and refuse."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import kvplan
from kvplan.errors import InputError, NotModelledError, UsageError
from kvplan.plan_files import export
from kvplan.workload import Workload

MODEL = "Qwen/Qwen3-8B"
TRACE = "arrival_s,prompt_tokens,output_tokens\n0,100,10\n1,200,20\n2,300,30\n"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE, encoding="utf-8")
    return path


def test_a_workload_plays_the_same_again() -> None:
    chat = Workload("p50=1k,p95=6k/300", rate_per_s=4.0, requests=50, seed=3)
    first, again = list(chat), list(chat)
    assert first == again
    assert len(first) == 50
    assert list(Workload("p50=1k,p95=6k/300", rate_per_s=4.0, requests=50, seed=4)) != first


def test_a_workload_of_a_trace(trace: Path) -> None:
    whole = Workload(trace=trace)
    assert [(one.arrival_s, one.prompt_tokens) for one in whole] == [(0, 100), (1, 200), (2, 300)]
    assert len(list(Workload(trace=trace, requests=2))) == 2
    assert whole.pairs() == ((100, 10, 1.0), (200, 20, 1.0), (300, 30, 1.0))


def test_a_workload_is_one_thing(trace: Path) -> None:
    with pytest.raises(UsageError, match="one of the two"):
        Workload()
    with pytest.raises(UsageError, match="one of the two"):
        Workload("1k/10", trace=trace)
    with pytest.raises(UsageError, match="How often"):
        list(Workload("1k/10"))
    with pytest.raises(UsageError, match="how much they generate"):
        list(Workload("1k", rate_per_s=1.0))


def test_a_simulation_is_that_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    from kvplan.cli.main import run  # noqa: PLC0415

    chat = Workload("1k/100", rate_per_s=2.0, requests=40, seed=5)
    found = kvplan.simulate(MODEL, "L4", chat, context=4096, first_token_s=2.0, offline=True)
    assert run(["simulate", MODEL, "--gpu", "L4", "--lengths", "1k/100", "--rate", "2/s",
                "--requests", "40", "--seed", "5", "--context", "4096", "--first-token", "2s",
                "--offline", "--format", "json"]) == 0  # fmt: skip
    assert json.loads(capsys.readouterr().out) == found.model_dump(mode="json")


def test_a_curve_needs_requests_that_come_twice() -> None:
    once = iter(Workload("1k/10", rate_per_s=1.0, requests=3))
    with pytest.raises(UsageError, match="a second time"):
        kvplan.simulate(MODEL, "L4", once, context=4096, curve=True, offline=True)


def test_only_engines_that_are_simulated() -> None:
    with pytest.raises(NotModelledError):
        kvplan.simulate(MODEL, "L4", [], engine="sglang", context=4096, offline=True)


def test_traffic_is_that_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    from kvplan.cli.main import run  # noqa: PLC0415

    chat = Workload("p50=1k,p95=4k/300", rate_per_s=3.0)
    found = kvplan.traffic(
        MODEL, "L40S", chat, decode_tokens_per_s=40, risk=0.01, context=8192, offline=True
    )
    assert run(["traffic", MODEL, "--gpu", "L40S", "--lengths", "p50=1k,p95=4k/300", "--rate",
                "3/s", "--decode-rate", "40", "--risk", "1%", "--context", "8192", "--offline",
                "--format", "json"]) in (0, 1)  # fmt: skip
    assert json.loads(capsys.readouterr().out) == found.model_dump(mode="json")


def test_users_in_place_of_a_rate(trace: Path) -> None:
    found = kvplan.traffic(
        MODEL, "H100", Workload(trace=trace), users=20, think_s=10.0, decode_tokens_per_s=50,
        context=4096, offline=True,
    )  # fmt: skip
    assert found.load is not None
    assert found.requests_read == 3
    assert found.traffic == str(trace)


SCENARIO = """\
schema: kvplan.scenario/1
scenarios:
  chat: {model: Qwen/Qwen3-8B, gpu: H100, context: 8k, concurrency: 8, expect: [requests >= 8]}
"""


def test_a_check_of_files(tmp_path: Path) -> None:
    file = tmp_path / "chat.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    result = kvplan.check(file, offline=True)
    assert (result.exit_code, [one.name for one in result.scenarios]) == (0, ["chat"])
    worse = kvplan.check([str(file)], overrides=["chat:concurrency=4000"], offline=True)
    assert worse.exit_code == 1
    earlier = tmp_path / "before.json"
    earlier.write_text(json.dumps(result.model_dump(mode="json")), encoding="utf-8")
    assert kvplan.check(file, overrides=["kv_dtype=fp8"], baseline=earlier, offline=True)
    behind = kvplan.check(file, overrides=["context=16k"], baseline=earlier, offline=True)
    assert behind.exit_code == 1


def test_a_lock_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no lock"):
        kvplan.check([], locked=True)
    with pytest.raises((UsageError, InputError)):
        kvplan.check([], lock=tmp_path / "kvplan.lock")


def test_a_plan_is_written_as_it_is(tmp_path: Path) -> None:
    plan = kvplan.size(MODEL, "H100", context=8192, offline=True)
    assert export(plan, tmp_path / "plan.csv") == plan
    text = (tmp_path / "plan.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["name"] for row in rows] == [row["name"] for row in plan.rows()]
    assert [int(row["bytes"]) for row in rows] == [row["bytes"] for row in plan.rows()]
    export(plan, str(tmp_path / "plan.json"))
    assert json.loads((tmp_path / "plan.json").read_text()) == plan.model_dump(mode="json")


def test_a_model_is_planned_and_written(tmp_path: Path) -> None:
    written = export(MODEL, tmp_path / "plan.md", "H100", context=8192, concurrency=4, offline=True)
    assert written.workload.concurrency == 4
    assert "Qwen/Qwen3-8B" in (tmp_path / "plan.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "gpu", "why"),
    [
        ("plan.doc", "H100", "has the ending '.doc'"),
        ("plan.csv", None, "The GPU for .* is missing"),
        ("no/such/folder/plan.csv", "H100", "can't be written"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, name: str, gpu: str | None, why: str) -> None:
    with pytest.raises(UsageError, match=why) as raised:
        export(MODEL, tmp_path / name, gpu, context=8192, offline=True)
    assert raised.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_plan_has_its_gpu(tmp_path: Path) -> None:
    plan = kvplan.size(MODEL, "H100", context=8192, offline=True)
    with pytest.raises(UsageError, match="already says which GPU"):
        export(plan, tmp_path / "plan.csv", "L4")
