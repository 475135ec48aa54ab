"""Environment, matrix, ``--set``, pools and commands: what a variant finally asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvplan.check_result import Finding
from kvplan.errors import InputError, KvplanError, UnknownNameError, UsageError
from kvplan.scenario.layers import pools
from kvplan.scenario.overrides import check_names, parse_overrides
from kvplan.scenario.pool_use import PoolUse
from kvplan.scenario.question import Question
from tests.scenario_files import LLAMA, loaded, one, questions, write


def found_in_pools(*paths: Path) -> list[tuple[Question, Finding]]:
    use = PoolUse()
    for path in paths:
        for each in questions(path):
            use.add(each, pools(loaded(path)))
    return list(use.findings())


def test_references_are_typed_as_if_they_stood_in_the_file(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        one(
            """\
            tp: ${TP}
            concurrency: ${N:-12}
            description: $${TP} of ${TP}
            options: {enforce_eager: "${EAGER}", gpu_memory_utilization: "${U}"}
            """,
        ),
    )
    (asked,) = questions(path, variables={"TP": "2", "EAGER": "true", "U": "0.9"})
    assert (asked.sizes, asked.concurrency) == ({"tp": 2}, 12)
    assert asked.options == {"enforce_eager": True, "gpu_memory_utilization": 0.9}
    assert asked.scenario.description == "${TP} of 2"


def test_a_matrix_gives_every_combination_a_name_and_a_place(tmp_path: Path) -> None:
    body = """\
    matrix:
      gpu: [L4, H100]
      options.max_num_seqs: [8, 16, 32]
    """
    asked = questions(write(tmp_path, one(body)))
    assert [each.name for each in asked] == [
        f"a[gpu={gpu}, options.max_num_seqs={seqs}]"
        for gpu in ("L4", "H100")
        for seqs in (8, 16, 32)
    ]
    assert {each.gpu for each in asked} == {"L4", "H100"}
    assert asked[1].options == {"max_num_seqs": 16}
    assert asked[1].place(("gpu",)).line == asked[1].place().line + 5


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ("{gpus: [1]}", "no key 'gpus' that can be varied"),
        ("{expect: [[]]}", "no key 'expect'"),
        ("{tp.x: [1]}", "is no key of a scenario"),
        ("{tp: [x]}", "`tp` should be a valid integer"),
        (
            "{tp: &a [1]}",
            "Anchors",
        ),
    ],
)
def test_a_matrix_that_makes_no_sense_is_refused(tmp_path: Path, matrix: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        questions(write(tmp_path, one(f"matrix: {matrix}")))


def test_a_matrix_has_an_end(tmp_path: Path) -> None:
    row = str(list(range(1, 100)))
    with pytest.raises(InputError, match="9,801 combinations"):
        questions(write(tmp_path, one(f"matrix: {{tp: {row}, pp: {row}}}")))


def test_set_reaches_all_scenarios_or_one(tmp_path: Path) -> None:
    text = f"defaults: {{model: {LLAMA}, gpu: L4}}\nscenarios:\n  a: {{}}\n  b: {{}}\n"
    path = write(tmp_path, text)
    capture = "b:options.cudagraph_capture_sizes=[1, 2]"
    sets = ["tp=2", "b:options.max_num_seqs=64", "a:context=32k", capture]
    first, second = questions(path, sets=sets)
    assert (first.sizes, second.sizes) == ({"tp": 2}, {"tp": 2})
    assert (first.context, first.options) == (32768, {})
    assert second.options == {"max_num_seqs": 64, "cudagraph_capture_sizes": [1, 2]}
    # A place has to be one in a file.
    assert first.place(("tp",)) == first.place()


@pytest.mark.parametrize(
    "text",
    [*("tp", "=2", "a:=2", "gpus=H100", "expect=x", "tp=&a 2", "tp=", "tp= "), "tp=1\ngpu: L4"],
)
def test_a_set_that_sets_nothing_is_refused(text: str) -> None:
    with pytest.raises(KvplanError) as caught:
        parse_overrides([text])
    assert caught.value.exit_code == 2
    assert (caught.value.location or "").startswith("--set")


def test_a_wrong_value_of_set_is_named_with_the_flag(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`tp` should be a valid integer") as caught:
        questions(write(tmp_path, one("tp: 1")), sets=["tp=many"])
    assert caught.value.location == "--set tp=many"


def test_set_for_a_scenario_that_is_not_there() -> None:
    with pytest.raises(UnknownNameError) as caught:
        check_names(parse_overrides(["chta:tp=2"]), ["chat"])
    assert caught.value.hint == "Did you mean chat?"


def test_a_command_is_read_and_keys_beside_it_win(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """\
        scenarios:
          a:
            gpu: H100
            command: |
              docker run vllm/vllm-openai:v0.10.1 --model Qwen/Qwen3-8B -tp 2 \\
                --max-model-len 16K --kv-cache-dtype fp8 --max-num-seqs 64 --quantization fp8
            tp: 4
            options: {max_num_seqs: 32}
        """,
    )
    (asked,) = questions(path)
    assert (asked.model, asked.engine) == ("Qwen/Qwen3-8B", "vllm==0.10.1")
    assert (asked.sizes, asked.context, asked.kv_dtype) == ({"tp": 4}, 16384, "fp8")
    assert asked.options["max_num_seqs"] == 32
    assert (asked.online, asked.pinned_by_command) == ("fp8", True)
    # What only the command says is shown where the command stands.
    assert asked.place(("kv_dtype",)).line == 5


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("command: echo hello", "Nothing in that text starts vLLM"),
        ("command: vllm serve x --config /etc/passwd", "can't take flags from another file"),
        ("command: vllm serve x\nengine: sglang", "Commands are read of vLLM, not of sglang"),
        ("pool: large", "no pool 'large'"),
        ("model: '-'", "A scenario names its model"),
    ],
)
def test_what_a_scenario_may_not_say(tmp_path: Path, body: str, message: str) -> None:
    path = write(tmp_path, one(body))
    with pytest.raises(KvplanError, match=message) as caught:
        questions(path)
    assert (caught.value.location or "").startswith(str(path))


def test_model_and_gpu_have_to_be_somewhere(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="The scenario 'a' lacks model and gpu"):
        questions(write(tmp_path, "scenarios:\n  a: {tp: 1}\n"))


def test_the_workload_gives_context_and_concurrency(tmp_path: Path) -> None:
    body = "workload: {input_tokens: 6k, output_tokens: 2k, concurrency: 7}"
    (asked,) = questions(write(tmp_path, one(body)))
    assert (asked.context, asked.concurrency) == (8192, 7)
    stated = f"{body}\ncontext: 32k\nconcurrency: 3"
    (asked,) = questions(write(tmp_path, one(stated)))
    assert (asked.context, asked.concurrency) == (32768, 3)
    (asked,) = questions(write(tmp_path, one(f"{body}\ncontext: max")))
    assert asked.context is None


def test_a_pool_gives_gpu_and_prices_and_can_be_too_small(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        f"""\
        defaults: {{model: {LLAMA}, pool: h100}}
        pools:
          h100: {{gpu: H100, count: 6, prices: {{gpu_hour: 3, currency: EUR}}}}
        scenarios:
          a: {{tp: 2, dp: 2}}
          b: {{matrix: {{tp: [1, 4]}}}}
        """,
    )
    asked = questions(path)
    assert {each.gpu for each in asked} == {"H100"}
    assert all(each.prices is not None and each.prices.gpu_hour == 3 for each in asked)
    # The variants of a matrix are alternatives: the largest counts, 4 + 4 of 6.
    ((last, finding),) = found_in_pools(path)
    assert last.name == "b[tp=4]"
    assert "has 6 GPUs, and its scenarios take 8 (a 4 + b 4)" in finding.message
    assert finding.place.line == 4


def test_a_pool_that_is_large_enough_is_no_finding(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        f"""\
        pools:
          p: {{gpu: L4, count: 2}}
        scenarios:
          a: {{model: {LLAMA}, pool: p, tp: 2}}
        """,
    )
    assert found_in_pools(path) == []


def test_a_pool_of_a_base_is_one_pool_for_every_file_that_extends_it(tmp_path: Path) -> None:
    base = f"""\
    defaults: {{model: {LLAMA}, pool: p}}
    pools:
      p: {{gpu: L4, count: 4}}
    scenarios:
      of-base: {{tp: 1}}
    """
    write(tmp_path, base, "base.yaml")
    one_file = write(tmp_path, "extends: base.yaml\nscenarios: {a: {tp: 2}}\n", "a.yaml")
    other = write(tmp_path, "extends: base.yaml\nscenarios: {b: {tp: 2}}\n", "b.yaml")
    assert found_in_pools(one_file) == []
    # The scenario of the base comes with both and is there once.
    ((last, finding),) = found_in_pools(one_file, other)
    assert last.name in ("b", "of-base")
    assert "has 4 GPUs, and its scenarios take 5 (of-base 1 + a 2 + b 2)" in finding.message


def test_a_gpu_beside_a_pool_is_the_pools(tmp_path: Path) -> None:
    body = f"""\
    pools:
      p: {{gpu: L4, count: 4}}
    scenarios:
      a: {{model: {LLAMA}, pool: p, gpu: GPU}}
    """
    (asked,) = questions(write(tmp_path, body.replace("GPU", "NVIDIA L4")))
    assert asked.gpu == "NVIDIA L4"
    with pytest.raises(UsageError, match="The GPU H100 is not that of the pool, L4"):
        questions(write(tmp_path, body.replace("GPU", "H100")))


@pytest.mark.parametrize("value", ["\udcff", "a\x1b[31m", "a\x00b"])
def test_a_variable_that_is_no_text_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(InputError, match="has as WORD is no printable text") as caught:
        questions(write(tmp_path, one("description: ${WORD}")), variables={"WORD": value})
    assert (caught.value.location or "").count(":") >= 2


def test_a_variable_may_have_several_lines(tmp_path: Path) -> None:
    line = "vllm serve x \\\n\t--max-num-seqs 4"
    (asked,) = questions(write(tmp_path, one("command: ${LINE}")), variables={"LINE": line})
    assert asked.options == {"max_num_seqs": 4}


def test_everything_that_is_wrong_with_a_matrix_is_said_at_once(tmp_path: Path) -> None:
    text = (
        "matrix: {modle: [a], tp: [1, 2, 1], dp: [], expect: [x], gpu.x: [L4], context: [8k, 4k]}"
    )
    with pytest.raises(InputError) as caught:
        loaded(write(tmp_path, one(text)))
    assert "5 problems" in caught.value.message
    for part in ("'modle'", "Did you mean model?", "1 stands here twice", "'gpu.x' is no key"):
        assert part in caught.value.message
