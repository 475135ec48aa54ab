"""`kvplan.size`: what it takes, what it sends back, and the plan it returns."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from real_models import GIB, device, full, real, toy

import kvplan
from kvplan import api
from kvplan.errors import (
    AmbiguousNameError,
    EngineRefusesError,
    KvplanError,
    NotModelledError,
    UnknownNameError,
    UsageError,
)
from kvplan.models.caches import RecurrentCache, StateTensor
from kvplan.plan import Parallelism, Plan, Workload
from kvplan.sources.gpus import find_gpu

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def planned(**changes: Any) -> Plan:
    """A plan of two small layers on 80 GiB, with some arguments changed."""
    arguments: dict[str, Any] = {
        "model": toy(full(), full()), "gpu": device(80), "context": 1000, "offline": True
    }  # fmt: skip
    return kvplan.size(**(arguments | changes))


NO_COUNTS = (0, -1, 1.0, 2.5, "4", "", True, None, [1], 10**4500, float("nan"))
NO_NAMES: tuple[Any, ...] = (None, 3, 2.5, True, b"vllm", ["vllm"], {"a": 1}, "x" * 10_000)


@pytest.mark.parametrize("value", NO_COUNTS, ids=lambda value: f"{type(value).__name__}")
@pytest.mark.parametrize("name", ["tp", "pp", "dp", "dcp"])
def test_a_parallel_size_is_a_whole_number(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"^{name} is a whole number from 1 to 4,096, not ") as it:
        planned(**{name: value})
    assert it.value.hint == f"Give a {name} in that range."
    assert len(it.value.message) < 200


def test_the_devices_of_a_deployment_are_counted() -> None:
    assert planned(dp=4096).gpu.count == 4096
    with pytest.raises(UsageError, match=r"^dp is a whole number"):
        planned(dp=4097)
    with pytest.raises(UsageError, match=r"^tp × pp × dp is a whole number from 1 to 4,096") as it:
        planned(tp=2, dp=4096)
    assert it.value.hint is not None


@pytest.mark.parametrize(
    "value", [0, -5, 2**40 + 1, 3.5, 10**4500, True, [1], {}, float("nan"), float("inf")],
    ids=lambda value: f"{type(value).__name__}",
)  # fmt: skip
def test_a_length_is_a_whole_number(value: Any) -> None:
    with pytest.raises(UsageError, match=r"^context is a whole number from 1 to ") as raised:
        planned(context=value)
    assert raised.value.hint is not None


@pytest.mark.parametrize("value", ["", "32k", "Auto", "longest", "8192", "x" * 10_000])
def test_the_only_word_for_a_length_is_auto(value: str) -> None:
    with pytest.raises(UsageError, match=r"^context is a number of tokens or 'auto'") as raised:
        planned(context=value)
    assert raised.value.hint == (
        "Give 32768, 'auto' for the longest that fits, or None for the model's maximum."
    )
    assert len(raised.value.message) < 200


@pytest.mark.parametrize("value", [0, -1, 2**31 + 1, 1.5, "50", True, [5]])
def test_a_number_of_requests_is_a_whole_number(value: Any) -> None:
    with pytest.raises(UsageError, match=r"^concurrency is a whole number from 1 to ") as raised:
        planned(concurrency=value)
    assert raised.value.hint == "Give a concurrency in that range."


@pytest.mark.parametrize("value", [0, -1, 4097, 1.5, "8", True])
def test_a_node_holds_a_whole_number_of_gpus(value: Any) -> None:
    with pytest.raises(UsageError, match=r"^gpus_per_node is a whole number") as raised:
        planned(gpus_per_node=value)
    assert raised.value.hint == "Give a gpus_per_node in that range."


@pytest.mark.parametrize(
    "value",
    [0, -1, 2**60 + 1, 1.5, "40GiB", b"1", True, [0], [1, "2"], [1, None], (1.5,), {}, {1: 2},
     object],
)  # fmt: skip
def test_a_budget_is_bytes_or_a_list_of_bytes(value: Any) -> None:
    with pytest.raises(UsageError, match=r"^kv_budget is a whole number from 1 to ") as raised:
        planned(kv_budget=value)
    assert raised.value.hint == "Give a kv_budget in that range."


@pytest.mark.parametrize("value", [[], ()])
def test_an_empty_list_of_budgets_is_an_error(value: Any) -> None:
    with pytest.raises(UsageError, match="list of KV budgets is empty") as raised:
        planned(kv_budget=value)
    assert raised.value.message == "The list of KV budgets is empty."
    assert raised.value.hint == "Give one figure a rank."


def test_the_ends_of_every_range_are_in_it() -> None:
    assert planned(context=2**40).verdict == "does_not_fit"
    assert planned(context=1, concurrency=2**31).verdict == "does_not_fit"
    assert planned(context=1, concurrency=1, gpus_per_node=1).verdict == "fits"
    assert planned(kv_budget=2**60).verdict == "fits"
    assert planned(kv_budget=1).verdict == "does_not_fit"


@pytest.mark.parametrize("value", NO_NAMES, ids=lambda value: f"{type(value).__name__}")
@pytest.mark.parametrize("name", ["model", "gpu", "engine", "weights", "kv_dtype", "dtype"])
def test_a_name_is_a_short_text(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"^{name} is a name, not ") as raised:
        planned(**{name: value})
    assert raised.value.hint == "Give a short text."
    assert len(raised.value.message) < 200


def test_a_name_has_4096_characters_at_most() -> None:
    with pytest.raises(UnknownNameError):
        planned(engine="x" * 4096)
    with pytest.raises(UsageError, match=r"^engine is a name, not "):
        planned(engine="x" * 4097)


@pytest.mark.parametrize("value", [5, "max_num_seqs=5", [("max_num_seqs", 5)], True])
def test_options_are_a_mapping(value: Any) -> None:
    with pytest.raises(UsageError, match="engine_options is a mapping") as raised:
        planned(engine_options=value)
    assert raised.value.hint == 'Give {"max_num_seqs": 64}.'


def test_names_of_options_are_text() -> None:
    with pytest.raises(UsageError, match="An option's name is a name, not 5") as raised:
        planned(engine_options={5: 1})
    assert raised.value.hint is not None


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"gpu": "H1000"}, UnknownNameError),
        ({"gpu": "A100"}, AmbiguousNameError),
        ({"engine": "vlm"}, UnknownNameError),
        ({"engine": "tgi"}, UnknownNameError),
        ({"engine": ""}, UnknownNameError),
        ({"engine": "VLLM"}, UnknownNameError),
        ({"engine": "vllm=0.33"}, UnknownNameError),
        ({"engine": "x" * 4000}, UnknownNameError),
        ({"engine": "vllm=="}, UsageError),
        ({"engine": "vllm==new"}, UsageError),
        ({"engine": "vllm==" + "9" * 4000}, UsageError),
        ({"kv_dtype": "fp9"}, UnknownNameError),
        ({"dtype": "int8"}, UsageError),
        ({"weights": "fp9"}, UsageError),
        ({"engine_options": {"max_num_seq": 1}}, UnknownNameError),
        ({"engine_options": {"max_num_seqs": 10**4500}}, UsageError),
        ({"engine_options": {"gpu_memory_utilization": float("nan")}}, UsageError),
        ({"kv_budget": [1, 2, 3]}, UsageError),
    ],
)
def test_every_other_bad_value_is_a_sentence_with_a_hint(
    changes: dict[str, Any], error: type[KvplanError]
) -> None:
    with pytest.raises(error) as raised:
        planned(**changes)
    assert isinstance(raised.value, UsageError)
    assert raised.value.exit_code == 2
    assert raised.value.message.endswith(".")
    assert raised.value.hint
    assert len(raised.value.message) < 300


def test_the_nearest_engine_is_offered() -> None:
    with pytest.raises(UnknownNameError, match="no engine 'vlm'") as raised:
        planned(engine="vlm")
    assert raised.value.hint == "Did you mean vllm?"
    with pytest.raises(UnknownNameError) as raised:
        planned(engine="zzz")
    assert raised.value.hint == f"Modelled: {', '.join(api.ENGINES)}."


@pytest.mark.parametrize(
    ("engine", "version"),
    [
        ("vllm", "0.33.0"),
        ("vllm==0.33.0", "0.33.0"),
        ("vllm==0.12.0", "0.12.0"),
        ("vllm==0.20", "0.20"),
        ("vllm==v0.20.1rc1", "v0.20.1rc1"),
        ("vllm==0.99.0", "0.99.0"),
    ],
)
def test_an_engine_may_be_pinned(engine: str, version: str) -> None:
    plan = planned(engine=engine)
    assert (plan.engine.name, plan.engine.version) == ("vllm", version)
    # How far starts were measured is another matter: the small model is beyond some bands.
    codes = {reason.code for reason in plan.reasons} - {"runtime_not_calibrated"}
    assert codes == ({"engine_newer_than_modelled"} if "0.99" in engine else set())


def test_a_pin_decides_the_rules() -> None:
    older, newer = (planned(engine=f"vllm=={version}") for version in ("0.19.1", "0.20.0"))
    assert older.engine.options["gpu_memory_utilization"] == 0.90
    assert newer.engine.options["gpu_memory_utilization"] == 0.92


def test_a_release_older_than_all_is_refused() -> None:
    plan = planned(engine="vllm==0.5.5")
    assert (plan.verdict, plan.reasons[0].code) == ("refused", "engine_refuses")
    assert plan.engine.version == "0.5.5"
    assert planned(engine="vllm==0.6.6").verdict == "fits"


def test_specs_are_taken_as_they_are() -> None:
    model, gpu = real("qwen2.5-7b"), find_gpu("H100-SXM-80GB")
    plan = kvplan.size(model, gpu, context=8192, offline=True)
    assert (plan.model.id, plan.gpu.id) == ("qwen2.5-7b", "H100-SXM-80GB")
    assert plan == kvplan.size(model, "H100", context=8192, offline=True)


def test_a_name_is_looked_up() -> None:
    plan = kvplan.size(LLAMA, "custom:40GiB", context=8192, offline=True)
    assert (plan.model.id, plan.gpu.id) == (LLAMA, "custom:40GiB")
    spec = api.read_spec(LLAMA, offline=True)
    assert plan == kvplan.size(spec, "custom:40GiB", context=8192, offline=True)


def write(folder: Path, config: dict[str, Any]) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return str(path)


UNKNOWN: dict[str, Any] = {"model_type": "wombat", "architectures": ["WombatForCausalLM"]}


@pytest.mark.parametrize(
    ("config", "architecture"),
    [
        (UNKNOWN, "WombatForCausalLM"),
        ({**UNKNOWN, "architectures": ["WombatForCausalLM", "Other"]}, "WombatForCausalLM"),
        ({"model_type": "wombat"}, "wombat"),
        ({"model_type": "wombat", "architectures": []}, "wombat"),
        ({"model_type": "w" * 500}, "w" * 120),
    ],
)
def test_a_family_that_is_not_modelled_is_refused_and_named(
    tmp_path: Path, config: dict[str, Any], architecture: str
) -> None:
    plan = planned(model=write(tmp_path, config), tp=2, context="auto", concurrency=9)
    assert plan.verdict == "refused"
    assert plan.reasons[0].code == "not_modelled"
    assert plan.reasons[0].hint
    assert plan.model.architecture == architecture
    assert plan.model.source
    assert (plan.model.parameters_total, plan.model.parameters_active) == (None, None)
    assert (plan.engine.name, plan.engine.version) == ("vllm", "0.33.0")
    assert plan.parallelism == Parallelism(tp=2)
    assert plan.workload == Workload(context=None, concurrency=9)
    assert (plan.kv, plan.capacity) == (None, None)


def test_a_length_that_was_given_is_kept_in_a_refusal(tmp_path: Path) -> None:
    path = write(tmp_path, UNKNOWN)
    assert planned(model=path, context=500, engine="vllm==0.20.0").workload.context == 500
    assert planned(model=path, engine="vllm==0.20.0").engine.version == "0.20.0"


def test_caches_that_the_engine_model_lacks_are_refused() -> None:
    rwkv = RecurrentCache(states=(StateTensor(name="shift", shape=(1, 64)),))
    plan = planned(model=toy(rwkv))
    assert (plan.verdict, plan.reasons[0].code) == ("refused", "not_modelled")
    assert plan.model.parameters_total == 2**20


def test_what_the_engine_refuses_is_a_plan() -> None:
    plan = planned(tp=3)
    assert (plan.verdict, plan.reasons[0].code) == ("refused", "engine_refuses")
    assert plan.engine.version == "0.33.0"


def test_weights_may_be_planned_in_another_format() -> None:
    model = real("llama-3.1-8b")
    plain, small = (
        planned(model=model, weights=weights, advice=False) for weights in ("auto", "fp8")
    )
    bytes_of = [
        sum(line.bytes for line in plan.ledger if line.name.startswith("weights."))
        for plan in (plain, small)
    ]
    assert bytes_of[0] * 0.5 < bytes_of[1] < bytes_of[0] * 0.7


def test_a_wide_group_is_pointed_out() -> None:
    def codes(**changes: Any) -> list[str]:
        found = planned(engine="vllm==0.30", tp=8, **changes).reasons
        return [reason.code for reason in found if reason.code != "runtime_not_calibrated"]

    assert codes(gpus_per_node=4) == ["tp_across_nodes"]
    assert codes(gpus_per_node=8) == []
    assert codes() == []


def test_advice_is_given_unless_it_is_not_wanted() -> None:
    model = real("llama-3.1-8b")
    assert planned(model=model, concurrency=5000).advice
    assert planned(model=model, concurrency=5000, advice=False).advice == ()
    assert planned(model=model, concurrency=5).advice == ()


def test_advice_knows_the_node() -> None:
    noted = planned(model=real("llama-3.1-8b"), tp=2, gpus_per_node=1, concurrency=5000)
    assert [reason.code for reason in noted.reasons][-1] == "tp_across_nodes"
    assert noted.advice


def test_a_spec_is_read_without_a_plan() -> None:
    assert api.read_spec(LLAMA, offline=True).model_type == "llama"
    with pytest.raises(UsageError, match=r"^model is a name"):
        api.read_spec(5, offline=True)  # type: ignore[arg-type]


def test_a_configuration_is_prepared_once_and_asked_often() -> None:
    prepared = api.prepare(real("llama-3.1-8b"), device(80), parallelism=Parallelism(tp=2))
    assert prepared.figures(8192).requests < prepared.figures(4096).requests
    plan = planned(model=real("llama-3.1-8b"), tp=2, context=8192)
    assert plan.capacity is not None
    assert plan.capacity.requests == prepared.figures(8192).requests
    older = api.prepare(real("llama-3.1-8b"), device(80), engine="vllm==0.12.0")
    assert older.answer(8192, None).engine.version == "0.12.0"


@pytest.mark.parametrize(
    ("engine", "error"),
    [("vllm==0.1", EngineRefusesError), ("x", UnknownNameError), ("sglang", NotModelledError)],
)
def test_preparing_raises_what_a_plan_would_say(engine: str, error: type[KvplanError]) -> None:
    asked = {"options": {"enable_lora": True}} if engine == "sglang" else {}
    with pytest.raises(error):
        api.prepare(toy(full()), device(80), engine=engine, **asked)


def test_the_arguments_are_those_of_the_contract() -> None:
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(api.size).parameters.items()
    }
    assert defaults == {
        "model": inspect.Parameter.empty,
        "gpu": inspect.Parameter.empty,
        "engine": "vllm",
        "tp": 1,
        "pp": 1,
        "dp": 1,
        "dcp": 1,
        "context": None,
        "concurrency": None,
        "weights": "auto",
        "kv_dtype": "auto",
        "dtype": "auto",
        "kv_budget": None,
        "engine_options": None,
        "gpus_per_node": None,
        "images": 0,
        "image_size": None,
        "image_tokens": None,
        "profile": None,
        "offline": False,
        "advice": True,
    }
    assert inspect.signature(api.read_spec).parameters["offline"].default is False


# The contract: these names, and no others in place of them.
FIELDS = {
    "": [
        "schema", "kvplan_version", "verdict", "reasons", "model", "gpu", "engine", "parallelism",
        "workload", "ledger", "kv", "capacity", "advice",
    ],
    "reasons": ["code", "message", "hint"],
    "model": [
        "id", "revision", "architecture", "source", "parameters_total", "parameters_active",
    ],
    "gpu": ["id", "count", "total_bytes", "source"],
    "engine": ["name", "version", "options", "assumed"],
    "parallelism": ["tp", "pp", "dp", "dcp", "ep"],
    "workload": ["context", "concurrency"],
    "ledger": [
        "name", "section", "bytes", "low", "high", "formula", "inputs", "source", "confidence",
    ],
    "kv": [
        "dtype", "bytes_per_token", "bytes_per_request", "budget_bytes", "budget_low",
        "budget_high", "allocated_bytes", "storage_bytes",
    ],
    "capacity": [
        "blocks", "block_size", "bytes_per_block", "groups", "tokens", "tokens_low", "tokens_high",
        "max_concurrency", "max_context", "requests",
    ],
    "groups": [
        "kind", "layers", "layer_indices", "page_bytes", "pages", "block_size",
        "blocks_per_request", "padding_bytes",
    ],
    "advice": ["action", "change", "gain", "cost", "note"],
    "gain": ["requests", "tokens"],
}  # fmt: skip


def test_the_plan_has_the_fields_of_the_contract() -> None:
    plan = planned(model=real("llama-3.1-8b"), concurrency=5000)
    read = json.loads(plan.model_dump_json())
    parts: dict[str, Any] = {
        "": read,
        **{name: read[name] for name in ("model", "gpu", "engine", "parallelism", "workload",
                                         "kv", "capacity")},
        **{name: read[name][0] for name in ("reasons", "ledger", "advice")},
        "groups": read["capacity"]["groups"][0],
        "gain": read["advice"][0]["gain"],
    }  # fmt: skip
    assert {name: list(part) for name, part in parts.items()} == FIELDS
    assert read["schema"] == "kvplan.plan/1"
    assert read["kvplan_version"] == kvplan.__version__


@pytest.mark.parametrize(
    "changes",
    [{}, {"tp": 3}, {"model": real("llama-3.1-8b"), "concurrency": 5000}, {"engine": "ollama"}],
)
def test_a_plan_survives_its_json(changes: dict[str, Any]) -> None:
    plan = planned(**changes)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    assert Plan.model_validate(json.loads(json.dumps(plan.model_dump(mode="json")))) == plan


def test_numbers_are_whole_where_the_contract_says_so() -> None:
    plan = planned(model=real("llama-3.1-8b"))
    read = json.loads(plan.model_dump_json())
    assert isinstance(read["capacity"]["max_concurrency"], float)
    assert isinstance(read["kv"]["bytes_per_token"], float)
    for name in ("bytes_per_request", "budget_bytes", "allocated_bytes"):
        assert isinstance(read["kv"][name], int)
    assert all(isinstance(line["bytes"], int) for line in read["ledger"])
    assert sum(line["bytes"] for line in read["ledger"]) == read["gpu"]["total_bytes"] == 80 * GIB


def test_a_plan_does_not_change() -> None:
    plan = planned()
    with pytest.raises(ValueError, match="frozen"):
        plan.verdict = "refused"  # type: ignore[misc]
