"""From files to results: outcomes, order, the lock, the baseline, what fails and what warns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kvplan.check_result import CheckResult
from kvplan.checking.check import check
from kvplan.checking.locking import make_lock
from kvplan.checking.settings import Settings
from kvplan.errors import InputError, UnknownNameError
from kvplan.reports.check_json import check_json
from kvplan.scenario.lock import Lock, dumped, read_lock
from kvplan.scenario.overrides import parse_overrides
from kvplan.sources import hub
from kvplan.sources.results import read_result
from tests.scenario_files import LLAMA, OFFLINE, checked, codes, one, results, write

GOOD = "context: 8k\nconcurrency: 4"
# 8,192 tokens of this model take 1 GiB, and one block of the pool holds nobody.
EXACT = f"{GOOD}\nkv_budget: 56GiB"


def locked(path: Path, settings: Settings = OFFLINE) -> Settings:
    made, failed = make_lock([path], replace(settings, lock_folder=path.parent))
    assert not failed
    file = path.parent / "kvplan.lock"
    file.write_text(dumped(made), encoding="utf-8")
    return replace(settings, lock=read_lock(file), lock_folder=path.parent, locked=True)


@pytest.mark.parametrize(
    ("body", "outcome", "code"),
    [
        (GOOD, "passed", 0),
        (f"{GOOD}\nexpect: [requests >= 50, verdict == fits]", "passed", 0),
        (f"{GOOD}\nexpect: [requests >= 5000]", "failed", 1),
        (f"{GOOD}\nexpect: [overload_risk <= 100%]", "failed", 1),
        ("context: 8k\nconcurrency: 4000", "failed", 1),
        ("context: 8k\nconcurrency: 4000\nexpect: [verdict == does_not_fit]", "passed", 0),
        (f"{GOOD}\ngpu: H100-SMX", "unreadable", 2),
        (f"{GOOD}\noptions: {{max_num_sec: 4}}", "unreadable", 2),
        (f"{GOOD}\nmodel: nobody/nothing", "unobtainable", 3),
        (f"{GOOD}\ntp: 3", "refused", 4),
        (f"{GOOD}\ntp: 3\nexpect: [verdict == refused]", "passed", 0),
        (f"{GOOD}\nworkload: {{trace: monday.jsonl}}", "unreadable", 2),
    ],
)
def test_an_outcome_is_that_of_the_contract(
    body: str, outcome: str, code: int, tmp_path: Path
) -> None:
    result = checked(tmp_path, body)
    assert (result.outcome, result.exit_code) == (outcome, code)


def test_the_worst_comes_first_and_gives_the_exit_code(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        f"""\
        defaults: {{model: {LLAMA}, gpu: H100, engine: vllm==0.33.0, context: 8k, concurrency: 4}}
        scenarios:
          fine: {{}}
          too-small: {{concurrency: 4000}}
          unknown: {{model: nobody/nothing}}
          odd: {{tp: 3}}
          typo: {{gpu: H100-SMX}}
        """,
    )
    found = results(path)
    assert [each.name for each in found.scenarios] == [
        "odd",
        "unknown",
        "typo",
        "too-small",
        "fine",
    ]
    assert found.exit_code == 4


def test_a_file_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    good = write(tmp_path, one(GOOD), "good.yaml")
    bad = write(tmp_path, "scenarios: 3\n", "bad.yaml")
    found = check([bad, good, tmp_path / "none.yaml"], OFFLINE)
    assert [each.outcome for each in found.scenarios] == ["unreadable", "unreadable", "passed"]
    assert found.scenarios[0].place.line == 2


def test_a_check_of_nothing_is_not_green(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There are no scenarios"):
        results(write(tmp_path, "defaults: {tp: 1}\n"))


def test_warnings_fail_only_where_they_are_asked_to(tmp_path: Path) -> None:
    body = f"{GOOD}\nengine: vllm"
    assert checked(tmp_path, body).outcome == "passed"
    assert checked(tmp_path, body, replace(OFFLINE, strict=True)).outcome == "failed"
    assert checked(tmp_path, GOOD, replace(OFFLINE, strict=True)).outcome == "passed"


def test_a_pool_that_is_too_small_fails(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        f"""\
        defaults: {{model: {LLAMA}, engine: vllm==0.33.0, context: 8k, concurrency: 4, pool: p}}
        pools: {{p: {{gpu: H100, count: 3}}}}
        scenarios:
          a: {{tp: 2}}
          b: {{tp: 2}}
        """,
    )
    found = results(path)
    assert [(each.name, each.outcome) for each in found.scenarios] == [
        ("b", "failed"),
        ("a", "passed"),
    ]
    assert codes(found.scenarios[0]) == ["KV204"]


def test_several_jobs_find_the_same(tmp_path: Path) -> None:
    body = f"{GOOD}\nmatrix: {{tp: [1, 2, 3, 4], gpu: [H100, L4, nonsense]}}"
    path = write(tmp_path, one(body))
    assert results(path) == results(path, replace(OFFLINE, jobs=4))


def test_set_for_no_scenario_is_an_error_of_the_command(tmp_path: Path) -> None:
    settings = replace(OFFLINE, overrides=parse_overrides(["b:tp=2"]))
    with pytest.raises(UnknownNameError, match="no scenario 'b'"):
        checked(tmp_path, GOOD, settings)


def test_a_lock_gives_every_fact_and_nothing_else_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
        "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
        "intermediate_size": 128, "vocab_size": 256, "max_position_embeddings": 4096,
        "torch_dtype": "bfloat16",
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    path = write(tmp_path, one("model: ./model\nconcurrency: 2"))
    settings = locked(path)
    before = results(path)
    (folder / "config.json").unlink()
    assert results(path).exit_code == 2
    assert results(path, settings).exit_code == 0
    assert results(path, settings).scenarios[0].plan == before.scenarios[0].plan


def test_a_lock_reads_back_as_it_was_written(tmp_path: Path) -> None:
    path = write(tmp_path, one(f"{GOOD}\nmatrix: {{tp: [1, 2]}}"))
    settings = locked(path)
    assert settings.lock is not None
    assert dumped(settings.lock) == (tmp_path / "kvplan.lock").read_text(encoding="utf-8")
    assert list(settings.lock.scenarios) == ["kvplan.yaml#a[tp=1]", "kvplan.yaml#a[tp=2]"]
    assert len(settings.lock.models) == len(settings.lock.gpus) == 1


def test_drift_says_what_changed_and_what_it_costs(tmp_path: Path) -> None:
    path = write(tmp_path, one(EXACT))
    settings = locked(path)
    assert codes(results(path, settings).scenarios[0]) == []
    changed = replace(
        settings, overrides=parse_overrides(["context=32k", "options.max_num_seqs=8"])
    )
    (result,) = results(path, changed).scenarios
    (finding,) = [each for each in result.findings if each.code == "KV201"]
    assert result.outcome == "failed"
    assert "context 8,192 → 32,768" in finding.message
    assert "max_num_seqs 1,024 → 8" in finding.message
    assert "It costs: requests 55 → 8 (-47)" in finding.message


def test_drift_of_the_facts_is_told_without_locked_too(tmp_path: Path) -> None:
    path = write(tmp_path, one(GOOD))
    settings = locked(path)
    lock: Lock = settings.lock or Lock()
    key = "kvplan.yaml#a"
    old = lock.scenarios[key].model_copy(
        update={"config_sha256": "0" * 64, "revision": "f" * 40, "weights_bytes": 1, "requests": 60}
    )
    stale = replace(settings, locked=False, lock=lock.model_copy(update={"scenarios": {key: old}}))
    (result,) = results(path, stale).scenarios
    (finding,) = [each for each in result.findings if each.code == "KV201"]
    assert "revision ffffffffffff → none; config.json 000000000000 → " in finding.message
    now = result.requests or 0
    assert f"requests 60 → {now} ({now - 60:+})" in finding.message
    assert "weights 1 B → 14.9" in finding.message


def test_an_unpinned_engine_is_pinned_by_the_lock(tmp_path: Path) -> None:
    path = write(tmp_path, one(f"{GOOD}\nengine: vllm"))
    settings = locked(path)
    lock: Lock = settings.lock or Lock()
    key = "kvplan.yaml#a"
    older = lock.scenarios[key].model_copy(update={"engine": "vllm==0.19.0"})
    settings = replace(settings, lock=lock.model_copy(update={"scenarios": {key: older}}))
    (result,) = results(path, settings).scenarios
    assert result.plan is not None
    assert result.plan.engine.version == "0.19.0"


def test_what_is_not_in_the_lock_fails(tmp_path: Path) -> None:
    path = write(tmp_path, one(GOOD))
    settings = locked(path)
    write(tmp_path, one(f"{GOOD}\nmatrix: {{tp: [1, 2]}}"))
    assert {tuple(codes(each)) for each in results(path, settings).scenarios} == {("KV202",)}
    write(tmp_path, one(f"{GOOD}\nmodel: Qwen/Qwen3-8B"))
    (result,) = results(path, settings).scenarios
    assert result.outcome == "unobtainable"
    assert result.problem is not None
    assert "The lock does not hold the model Qwen/Qwen3-8B" in result.problem.message


def test_locked_never_asks_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, one(f"{GOOD}\nmodel: Qwen/Qwen3-8B"))
    settings = replace(locked(path), offline=False)

    def unasked(*_words: object, **_named: object) -> None:
        raise AssertionError("the Hub was asked")

    monkeypatch.setattr(hub, "offline_by_environment", unasked)
    assert results(path, settings).exit_code == 0


TINY = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
    "intermediate_size": 128, "vocab_size": 256, "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}  # fmt: skip


def small_model(folder: Path, **changes: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    path.write_text(json.dumps({**TINY, **changes}), encoding="utf-8")
    return path


def test_the_lock_has_the_draft_too(tmp_path: Path) -> None:
    target, draft = small_model(tmp_path / "target"), small_model(tmp_path / "draft")
    drafts = "{method: draft_model, model: ./draft, num_speculative_tokens: 3}"
    body = f"concurrency: 2\nmodel: ./target\noptions: {{speculative_config: {drafts}}}"
    path = write(tmp_path, one(body))
    settings = locked(path)
    assert settings.lock is not None
    assert set(settings.lock.models) == {"target", "draft"}
    before = results(path)
    target.unlink()
    draft.unlink()
    assert results(path).exit_code == 2
    assert results(path, settings).scenarios[0].plan == before.scenarios[0].plan
    # Another draft is drift, and it costs cache.
    small_model(tmp_path / "target")
    small_model(tmp_path / "draft", num_hidden_layers=4)
    (result,) = results(path, replace(settings, locked=False)).scenarios
    (finding,) = [each for each in result.findings if each.code == "KV201"]
    assert "Changed since the lock: draft model " in finding.message


def test_a_clone_elsewhere_gives_the_same_result(tmp_path: Path) -> None:
    for name in ("first", "second"):
        small_model(tmp_path / name / "models" / "own")
        write(tmp_path, one("model: ../models/own\nconcurrency: 2"), f"{name}/deploy/kvplan.yaml")
        (tmp_path / name / ".git").mkdir()
    first, second = (
        results(tmp_path / name / "deploy" / "kvplan.yaml").scenarios[0].plan
        for name in ("first", "second")
    )
    assert first == second
    assert first is not None
    assert first.model.id == "models/own"


def test_nothing_may_fall_behind_the_baseline(tmp_path: Path) -> None:
    priced = f"{EXACT}\nprices: {{gpu_hour: 2}}\nworkload: {{seconds_per_request: 10}}"
    path = write(tmp_path, one(priced))
    file = tmp_path / "plans.json"
    file.write_text(check_json(results(path)), encoding="utf-8")
    baseline: CheckResult = read_result(file)
    settings = replace(OFFLINE, baseline=baseline)
    assert results(path, settings).exit_code == 0
    better = replace(settings, overrides=parse_overrides(["context=4k"]))
    assert results(path, better).exit_code == 0
    worse = replace(settings, overrides=parse_overrides(["context=16k", "prices.gpu_hour=3"]))
    (result,) = results(path, worse).scenarios
    (finding,) = [each for each in result.findings if each.code == "KV203"]
    assert "requests 55 → 27 (-28)" in finding.message
    assert "2 → 3 USD an hour" in finding.message
    assert "USD a request" in finding.message


def test_a_command_that_quantizes_while_loading_is_planned_so(tmp_path: Path) -> None:
    plain = f"{GOOD}\ncommand: vllm serve {LLAMA}"
    first = checked(tmp_path, plain).plan
    second = checked(tmp_path, f"{plain} --quantization fp8").plan
    assert first is not None
    assert second is not None
    weights = [
        sum(line.bytes for line in plan.ledger if line.name.startswith("weights"))
        for plan in (first, second)
    ]
    assert weights[1] < 0.65 * weights[0]


def test_a_baseline_tells_files_apart(tmp_path: Path) -> None:
    small, large = write(tmp_path, one(EXACT), "a.yaml"), write(tmp_path, one(EXACT), "b.yaml")
    large.write_text(large.read_text("utf-8").replace("8k", "4k"), encoding="utf-8")
    baseline = check([small, large], OFFLINE)
    assert codes_of(check([small, large], replace(OFFLINE, baseline=baseline))) == []
    large.write_text(large.read_text("utf-8").replace("4k", "6k"), encoding="utf-8")
    assert codes_of(check([large, small], replace(OFFLINE, baseline=baseline))) == ["KV203"]


def codes_of(found: CheckResult) -> list[str]:
    return [each.code for result in found.scenarios for each in result.findings]
