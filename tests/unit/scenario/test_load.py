"""Files: all problems at once with their places, inheritance, and how far paths may reach."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kvplan.errors import InputError, UsageError
from tests.scenario_files import HEAD, LLAMA, loaded, questions, write


def problems(error: InputError) -> list[str]:
    return [re.sub(r"^\s*\S*/", "", line) for line in error.message.split("\n")[1:]]


ALL = """\
kvplan.yaml:3:3: `gpus` is not a known key. Did you mean gpus_per_node, gpu?
kvplan.yaml:4:3: `defaults.engine`: There is no engine 'vlm'. Did you mean vllm?
kvplan.yaml:8:5: The key 'tp' is already on line 7.
kvplan.yaml:9:5: `scenarios.a.context`: '32 parsecs' is not a number of tokens. \
Write it like 32k or 131072.
kvplan.yaml:10:5: The environment has no NOPE: set it, or write ${NOPE:-DEFAULT}.
kvplan.yaml:11:16: `scenarios.a.workload.input_tokens`: 'GiB' in '3GiB' is not a unit of tokens. \
Write 32k or 32768.
kvplan.yaml:11:47: `scenarios.a.workload.sessions.ttl`: '5 minutes' is not a time. \
Write 15min, 2h or 30s.
kvplan.yaml:12:14: `scenarios.a.expect[0]`: requests is a count, and '5GiB' is none. \
Write 50 or 1,000.
kvplan.yaml:12:32: `scenarios.a.expect[1]`: 'request' is nothing that a plan states. \
Did you mean requests, requests_with_prefixes, requests_with_sessions?
kvplan.yaml:13:32: An ignored rule has a code and a reason: \
# kvplan: ignore KV111 because REASON."""


def test_everything_wrong_in_a_file_is_said_at_once_with_its_place(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """\
        defaults:
          gpus: H100
          engine: vlm==0.33
        scenarios:
          a:
            tp: 2
            tp: 4
            context: 32 parsecs
            concurrency: ${NOPE}
            workload: {input_tokens: 3GiB, sessions: {ttl: 5 minutes}}
            expect: [requests >= 5GiB, request > 3]
            options: {max_num_seqs: 4} # kvplan: ignore
        """,
    )
    with pytest.raises(InputError) as caught:
        loaded(path)
    assert caught.value.message.startswith("10 problems:")
    assert "\n".join(problems(caught.value)) == ALL


def test_one_problem_is_one_error_at_its_place(tmp_path: Path) -> None:
    path = write(tmp_path, "scenarios:\n  a: {modle: x}\n")
    with pytest.raises(InputError, match="`modle` is not a known key") as caught:
        loaded(path)
    assert caught.value.location == f"{path}:3:7"


def test_another_schema_is_no_scenario_file(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("schema: kvplan.scenario/2\n", encoding="utf-8")
    with pytest.raises(InputError, match="not a scenario file of this version") as caught:
        loaded(path)
    assert caught.value.location == f"{path}:1:1"


def test_what_is_inherited_keeps_its_place(tmp_path: Path) -> None:
    write(
        tmp_path,
        f"""\
        defaults:
          model: {LLAMA}
          gpu: L4
          options: {{max_num_seqs: 8, enforce_eager: true}}
          expect: [requests >= 1]
        """,
        "base.yaml",
    )
    path = write(
        tmp_path,
        """\
        extends: base.yaml
        defaults:
          gpu: H100
          expect: [requests >= 2]
        scenarios:
          a:
            options: {max_num_seqs: 16}
            expect: [requests >= 3]
        """,
    )
    (asked,) = questions(path)
    assert (asked.model, asked.gpu) == (LLAMA, "H100")
    assert asked.options == {"max_num_seqs": 16, "enforce_eager": True}
    # Checks add up: one that a later layer dropped would be one that passes unseen.
    assert asked.scenario.expect == ("requests >= 1", "requests >= 2", "requests >= 3")
    places = [asked.place(("expect", at)) for at in range(3)]
    assert [(Path(each.file).name, each.line) for each in places] == [
        ("base.yaml", 6),
        ("kvplan.yaml", 5),
        ("kvplan.yaml", 9),
    ]
    assert asked.place(("options", "enforce_eager")).file.endswith("base.yaml")
    assert str(asked.place(("options", "max_num_seqs"))) == f"{path}:8:15"


def test_scenarios_of_an_extended_file_are_checked_and_can_be_changed(tmp_path: Path) -> None:
    scenario = f"scenarios:\n  a: {{model: {LLAMA}, gpu: L4, concurrency: 3}}\n"
    write(tmp_path, scenario, "base.yaml")
    path = write(tmp_path, "extends: [base.yaml]\nscenarios:\n  a: {gpu: H100}\n")
    (asked,) = questions(path)
    assert (asked.gpu, asked.concurrency) == ("H100", 3)


def test_null_takes_an_inherited_value_away(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        f"""\
        defaults: {{model: {LLAMA}, gpu: L4, concurrency: 3}}
        scenarios:
          a: {{concurrency: null}}
        """,
    )
    (asked,) = questions(path)
    assert asked.concurrency is None


def test_a_file_can_not_come_before_itself(tmp_path: Path) -> None:
    write(tmp_path, "extends: kvplan.yaml\n", "other.yaml")
    path = write(tmp_path, "extends: other.yaml\n")
    with pytest.raises(InputError, match="extends this file in turn") as caught:
        loaded(path)
    assert caught.value.location == f"{tmp_path / 'other.yaml'}:2:1"


def test_a_missing_file_is_named_where_it_is_extended(tmp_path: Path) -> None:
    path = write(tmp_path, "extends: nothing.yaml\n")
    with pytest.raises(InputError, match="no file or folder") as caught:
        loaded(path)
    assert caught.value.location == f"{path}:2:1"
    with pytest.raises(UsageError, match="no file or folder"):
        loaded(tmp_path / "none.yaml")


@pytest.mark.parametrize("outside", ["../secret.yaml", "/etc/hostname", "link.yaml"])
def test_extends_stays_in_the_repository(tmp_path: Path, outside: str) -> None:
    repository = tmp_path / "repository"
    write(tmp_path, "defaults: {gpu: L4}\n", "secret.yaml")
    path = write(repository, f"extends: {outside}\n")
    (repository / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    with pytest.raises(InputError, match="outside of the repository") as caught:
        loaded(path)
    assert caught.value.location == f"{path}:2:1"


def test_the_repository_begins_where_git_says(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write(tmp_path, f"defaults: {{model: {LLAMA}, gpu: L4}}\n", "base.yaml")
    path = write(tmp_path / "deep" / "er", "extends: ../../base.yaml\nscenarios:\n  a: {}\n")
    (asked,) = questions(path)
    assert asked.gpu == "L4"


@pytest.mark.parametrize("key", ["model: ../model/config.json", "workload: {trace: ../t.jsonl}"])
def test_models_and_traces_stay_in_the_repository(tmp_path: Path, key: str) -> None:
    base = "" if key.startswith("model") else f"\n    model: {LLAMA}"
    path = write(tmp_path / "r", f"scenarios:\n  a:\n    gpu: L4{base}\n    {key}\n")
    with pytest.raises(InputError, match="outside of the repository"):
        questions(path)


def test_a_byte_order_mark_is_no_problem(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    text = f"{HEAD}scenarios:\n  a: {{model: {LLAMA}, gpu: L4}}\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert len(questions(path)) == 1
