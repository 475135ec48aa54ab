"""`kvplan.sweep` says at every point what `kvplan.size` says there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_models import SMALL
from transformers_cases import model_of

import kvplan
from kvplan import api
from kvplan.errors import KvplanError, NotModelledError, UnknownNameError, UsageError
from kvplan.sweep_result import FIGURES

MODELS = {name: model_of(name, config) for name, config in SMALL.items()}
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
ENGINES = ("vllm", "vllm==0.20.0", "sglang", "tensorrt-llm", "llama.cpp", "ollama", "transformers")
COMPARED = ("blocks", "tokens", "tokens_low", "tokens_high", "requests", "max_concurrency",
            "max_context")  # fmt: skip


def assert_same(sweep: kvplan.Sweep, point: int, **fixed: Any) -> None:
    """The row of a point is what a plan of the same inputs says."""
    row = sweep.row(point)
    asked = {
        name: row[name]
        for name in ("engine", "tp", "pp", "dp", "concurrency", "kv_dtype")
    }  # fmt: skip
    given_context = sweep.given(point)["context"]
    plan = kvplan.size(
        fixed.pop("model"), row["gpu"], context=given_context, advice=False, **asked, **fixed
    )
    assert row["verdict"] == plan.verdict
    if plan.verdict == "refused":
        assert row["reason"] == plan.reasons[0].message
        assert row["reason_code"] == plan.reasons[0].code
        return
    assert plan.capacity is not None
    assert plan.kv is not None
    assert {name: row[name] for name in COMPARED} == {
        name: getattr(plan.capacity, name) for name in COMPARED
    }
    assert row["planned_context"] == plan.workload.context
    assert row["bytes_per_request"] == plan.kv.bytes_per_request
    assert row["bytes_per_token"] == plan.kv.bytes_per_token
    assert row["budget_bytes"] == plan.kv.budget_bytes
    assert row["gpus"] == plan.parallelism.gpus
    parts = ("weights_bytes", "runtime_bytes", "kv_bytes", "outside_bytes", "free_bytes")
    assert sum(row[part] for part in parts) == sum(line.bytes for line in plan.ledger)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_every_point_is_what_size_says(data: st.DataObject) -> None:
    def some(values: tuple[Any, ...], most: int = 3) -> list[Any]:
        return data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=most, unique=True))

    name = data.draw(st.sampled_from(sorted(MODELS)))
    gpus = ("L4-24GB", "H100-SXM-80GB", "custom:2GiB")
    vary = {
        "engine": some(ENGINES, 2),
        "context": some((64, 500, 512, 700, "auto", None)),
        "concurrency": some((None, 1, 3, 64, 256, 5000), 4),
        "kv_dtype": some(("auto", "fp8"), 2),
        "tp": some((1, 2, 3), 2),
        "dp": some((1, 2), 2),
        "gpu": some(gpus, 2),
    }
    order = data.draw(st.permutations(sorted(vary)))
    try:
        sweep = kvplan.sweep(MODELS[name], vary={key: vary[key] for key in order}, offline=True)
    except UsageError:
        # A cache type that none of these engines knows.
        assert vary["kv_dtype"] != ["auto"]
        return
    assert sweep.grid.size == len(sweep.rows())
    for point in data.draw(
        st.lists(st.integers(0, sweep.grid.size - 1), min_size=1, max_size=6, unique=True)
    ):
        if sweep.row(point)["reason_code"] in ("usage", "unknown-name"):
            with pytest.raises(UsageError):
                assert_same(sweep, point, model=MODELS[name], offline=True)
        else:
            assert_same(sweep, point, model=MODELS[name], offline=True)


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llama.cpp", "transformers"])
def test_the_last_request_that_fits(engine: str) -> None:
    asked = {"context": 4096, "engine": engine, "offline": True}
    held = kvplan.sweep(MODEL, "L40S", vary={"dp": [2]}, **asked).row(0)["requests"]
    assert held > 1
    sweep = kvplan.sweep(
        MODEL, "L40S", vary={"concurrency": [held, held + 1, 1]}, dp=2, **asked
    )  # fmt: skip
    assert [row["verdict"] for row in sweep.rows()] == ["fits", "does_not_fit", "fits"]


def test_options_of_the_engine_are_varied_beside_given_ones() -> None:
    vary = {"max_num_seqs": [8, 256], "context": "1k..4k*2", "concurrency": [1, 100]}
    given_options = {"max_num_batched_tokens": 4096}
    sweep = kvplan.sweep(MODEL, "L40S", vary=vary, engine_options=given_options, offline=True)
    assert len(sweep.points) == 12
    for row in sweep.rows():
        assert row["max_num_batched_tokens"] == 4096
        plan = kvplan.size(
            MODEL, "L40S", context=row["context"], concurrency=row["concurrency"], offline=True,
            engine_options={**given_options, "max_num_seqs": row["max_num_seqs"]},
        )  # fmt: skip
        assert plan.capacity is not None
        assert (row["verdict"], row["requests"]) == (plan.verdict, plan.capacity.requests)


def test_images_come_on_top_of_a_length() -> None:
    vary = {"images": [0, 2], "context": [4096, "auto"]}
    sweep = kvplan.sweep(MODEL, "L4", vary=vary, image_tokens=100, offline=True)
    planned = [row["planned_context"] for row in sweep.rows()]
    assert (planned[0], planned[2]) == (4096, 4296)
    assert planned[1] == planned[3] > 4296


def test_points_that_are_refused_are_rows() -> None:
    sweep = kvplan.sweep(MODEL, "H100", vary={"tp": [1, 3, 8]}, context=4096, offline=True)
    verdicts = [row["verdict"] for row in sweep.rows()]
    assert verdicts == ["fits", "refused", "fits"]
    row = sweep.row(1)
    assert row["reason_code"] == "engine_refuses"
    assert "32 attention heads" in row["reason"]
    assert {row[name] for name in FIGURES} == {None}


def test_what_is_not_modelled_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    known = api.facts_of

    def facts(model: str, *, offline: bool) -> Any:
        if model == "no/family":
            raise NotModelledError("Nobody models that.")
        return known(model, offline=offline)

    monkeypatch.setattr(api, "facts_of", facts)
    sweep = kvplan.sweep(
        gpu="H100", vary={"model": ["no/family", MODEL]}, context=4096, offline=True
    )
    assert [row["verdict"] for row in sweep.rows()] == ["refused", "fits"]
    assert sweep.row(0)["reason"] == "Nobody models that."


def test_an_option_of_one_engine_is_a_verdict_on_the_other() -> None:
    sweep = kvplan.sweep(
        MODEL, "H100", context=4096, offline=True,
        vary={"engine": ["vllm", "sglang"], "max_num_seqs": [8, 64]},
    )  # fmt: skip
    assert [row["verdict"] for row in sweep.rows()] == ["fits", "fits", "refused", "refused"]
    assert sweep.row(2)["reason_code"] == "unknown-name"


def test_globs_are_of_the_bundled_ids() -> None:
    sweep = kvplan.sweep(MODEL, vary={"gpu": "h100*,H200,L4"}, context=4096, offline=True)
    names = [row["gpu"] for row in sweep.rows()]
    assert names[-2:] == ["H200-SXM-141GB", "L4-24GB"]
    assert len(names) > 4
    assert all(name.startswith("H100") for name in names[:-2])
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        ({"max_num_seq": [1]}, "max_num_seq"),
        ({"kv_dtype": ["auto", "fpp8"]}, "fpp8"),
        ({"gpu": "H199*"}, "H199"),
        ({"gpu": ["H100", "H1oo"]}, "H1oo"),
        ({"engine": ["vlm"]}, "vlm"),
        ({"tp": [0]}, "tp"),
        ({"tp": ["two"]}, "tp"),
        ({"concurrency": range(10)}, "concurrency"),
        ({"context": []}, "no values"),
        ({"context": 8192}, "a list"),
        ({"": [1]}, "no name"),
        ({}, "Nothing is varied"),
        ({"context": range(1, 10**4), "concurrency": range(1, 10**4)}, "points"),
    ],
)  # fmt: skip
def test_mistakes_are_said(vary: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        kvplan.sweep(MODEL, "H100", vary=vary, offline=True)


def test_all_mistakes_are_said_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        kvplan.sweep(vary={"gpu": "H1oo", "context": "lots", "engine": "vlm"}, offline=True)
    said = str(caught.value)
    assert said.splitlines()[0] == "4 inputs of the sweep make no sense:"
    for word in ("H1oo", "lots", "vlm", "MODEL is missing", "Did you mean"):
        assert word in said


def test_a_misspelt_input_has_its_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        kvplan.sweep(MODEL, "H100", vary={"contxt": [8192]}, context=1, offline=True)
    assert "context" in (caught.value.hint or "")


def test_an_interrupt_leaves_what_there_is() -> None:
    def stop(done: int, whole: int) -> None:
        assert whole == 6
        if done == 2:
            raise KeyboardInterrupt

    sweep = kvplan.sweep(
        MODEL, "H100", vary={"concurrency": [1, 2], "context": [1024, 2048, 4096]}, offline=True,
        progress=stop,
    )  # fmt: skip
    assert sweep.status == "interrupted"
    assert [(row["concurrency"], row["context"]) for row in sweep.rows()] == [(1, 1024), (2, 1024)]


def test_frames_have_all_rows() -> None:
    vary = {"concurrency": [1, 50, 9000], "gpu": "L4,H100", "tp": [1, 3], "max_num_seqs": [8, "x"]}
    with pytest.raises(KvplanError):
        kvplan.sweep(MODEL, vary=vary, context=4096, offline=True)
    sweep = kvplan.sweep(MODEL, vary=vary | {"max_num_seqs": [8, 64]}, context=4096, offline=True)
    rows = [dict(row) for row in sweep.rows()]
    assert len(rows) == 24
    columns = sweep.columns()
    assert [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ] == rows


def test_to_arrow() -> None:
    pytest.importorskip("pyarrow")
    sweep = kvplan.sweep(
        MODEL, vary={"gpu": "L4,H100", "concurrency": "1..9", "tp": [1, 3]}, context=4096,
        offline=True,
    )  # fmt: skip
    assert sweep.to_arrow().to_pylist() == [dict(row) for row in sweep.rows()]


def test_to_pandas_and_polars() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    sweep = kvplan.sweep(MODEL, vary={"gpu": "L4,H100", "tp": [1, 3]}, context=4096, offline=True)
    assert isinstance(sweep.to_pandas(), pandas.DataFrame)
    assert isinstance(sweep.to_polars(), polars.DataFrame)
    assert list(sweep.to_pandas()["requests"].dropna()) == [
        row["requests"] for row in sweep.rows() if row["requests"] is not None
    ]
    assert sweep.to_polars()["gpu"].to_list() == [row["gpu"] for row in sweep.rows()]
