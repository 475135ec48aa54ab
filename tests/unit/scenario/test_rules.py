"""Every rule: where it applies, where it does not, and where its finding points."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from kvplan.check_result import ScenarioResult
from kvplan.scenario.rules.table import COMPARED, RULES
from tests.scenario_files import checked, codes

# (code, keys that make it apply, keys that do not, the line of the finding within the scenario)
APPLIES: list[tuple[str, str, str, str]] = [
    (
        "KV101",
        'workload: {prefixes: [{name: p, tokens: 1k, version: "1", scope: global, tenants: 2}]}',
        'workload: {prefixes: [{name: p, tokens: 1k, version: "1", scope: tenant, tenants: 2}]}',
        "workload",
    ),
    (
        "KV101",
        'workload: {prefixes: [{name: p, tokens: 1k, version: "1", scope: global, tenants: 3}]}',
        'workload: {prefixes: [{name: p, tokens: 1k, version: "1", scope: global, tenants: 1}]}',
        "workload",
    ),
    (
        "KV102",
        'workload: {prefixes: [{name: p, tokens: 1k, version: "1", personal_data: true}]}',
        "workload: {prefixes: [{name: p, tokens: 1k, scope: user, personal_data: true}]}",
        "workload",
    ),
    (
        "KV103",
        "workload: {prefixes: [{name: p, tokens: 1k}]}",
        'workload: {prefixes: [{name: p, tokens: 1k, version: "1"}]}',
        "workload",
    ),
    (
        "KV104",
        "context: max\nworkload: {tokens_p99: 12k}",
        "context: max\nworkload: {tokens_p99: 14k}",
        "context",
    ),
    ("KV104", "context: max\nworkload: {tokens_p99: 4k}", "workload: {tokens_p99: 4k}", "context"),
    ("KV105", "concurrency: null", "concurrency: 1", ""),
    ("KV105", "concurrency: null", "concurrency: null\nexpect: [requests >= 3]", ""),
    (
        "KV106",
        "context: 32k\noptions: {max_num_seqs: 64}",
        "context: 32k\noptions: {max_num_seqs: 8}",
        "options",
    ),
    (
        "KV106",
        "context: 32k\ncommand: vllm serve x --max-num-seqs 64",
        "context: 32k\ncommand: vllm serve x",
        "command",
    ),
    ("KV107", "tp: 16", "tp: 8", "tp"),
    ("KV107", "tp: 16", "tp: 16\ndcp: 2", "tp"),
    ("KV107", "model: deepseek-ai/DeepSeek-V3\ntp: 16", "tp: 1", "tp"),
    ("KV108", "gpu: A100-SXM-80GB\nkv_dtype: fp8", "gpu: H100\nkv_dtype: fp8", "kv_dtype"),
    ("KV108", "gpu: A100-SXM-80GB\nkv_dtype: fp8", "gpu: A100-SXM-80GB", "kv_dtype"),
    ("KV109", "concurrency: 53", "concurrency: 30", "concurrency"),
    ("KV110", "workload: {sessions: {count: 3}}", "workload: {sessions: {ttl: 15min}}", "workload"),
    ("KV111", "engine: vllm", "engine: vllm==0.33.0", "engine"),
    (
        "KV112",
        "engine: transformers==5.24.0\noptions: {cache: StaticCache}",
        "engine: transformers==5.24.0\noptions: {cache: DynamicCache}",
        "options",
    ),
    (
        "KV112",
        "engine: llama.cpp\noptions: {kv_unified: false}",
        "engine: llama.cpp\noptions: {kv_unified: true}",
        "options",
    ),
    (
        "KV113",
        "options: {gpu_memory_utilization: 0.995}",
        "options: {gpu_memory_utilization: 0.9}",
        "options",
    ),
]


def asked(folder: Path, body: str) -> ScenarioResult:
    keys = {line.partition(":")[0] for line in body.split("\n")}
    base = {"context": "8k", "concurrency": "4"}
    rest = [f"{key}: {value}" for key, value in base.items() if key not in keys]
    return checked(folder, "\n".join([body, *rest]))


@pytest.mark.parametrize(("code", "applies", "does_not", "key"), APPLIES)
def test_a_rule_applies_where_it_should_and_nowhere_else(
    code: str, applies: str, does_not: str, key: str, tmp_path: Path
) -> None:
    found = asked(tmp_path, applies)
    (finding,) = [each for each in found.findings if each.code == code]
    text = (tmp_path / "kvplan.yaml").read_text(encoding="utf-8").splitlines()
    assert text[finding.place.line - 1].strip().startswith(key)
    assert finding.message.endswith(".")
    assert "\n" not in finding.fix
    assert code not in codes(asked(tmp_path, does_not))


def test_every_rule_has_a_case_a_code_and_a_name_of_its_own() -> None:
    assert {code for code, *_ in APPLIES} == {rule.code for rule in RULES}
    known = [(rule.code, rule.name) for rule in RULES] + [row[:2] for row in COMPARED]
    assert len({code for code, _ in known}) == len({name for _, name in known}) == len(known)
    assert [rule.code for rule in RULES] == sorted(rule.code for rule in RULES)


def test_max_num_seqs_above_the_blocks_of_a_recurrent_model(tmp_path: Path) -> None:
    body = "model: tiiuae/Falcon-H1-7B-Instruct\nkv_budget: 256MiB\noptions: {max_num_seqs: 4096}"
    (finding,) = [each for each in asked(tmp_path, body).findings if each.code == "KV106"]
    assert "recurrent state" in finding.message


IGNORED = """\
engine: vllm # kvplan: ignore KV111 because the image pins it
context: 8k
concurrency: 4
"""
ABOVE = """\
# kvplan: ignore KV111, KV104: the image pins it
engine: vllm
context: 8k
concurrency: 4
"""


@pytest.mark.parametrize("body", [IGNORED, ABOVE])
def test_a_finding_is_ignored_by_its_line_with_a_reason(body: str, tmp_path: Path) -> None:
    result = checked(tmp_path, body)
    (finding,) = [each for each in result.findings if each.code == "KV111"]
    assert finding.ignored == "the image pins it"
    other = body.replace("KV111", "KV110")
    assert "KV111" in codes(checked(tmp_path, other))


def test_an_ignored_error_does_not_fail(tmp_path: Path) -> None:
    body = """\
    context: 8k
    concurrency: 4
    workload:
      prefixes:
        - name: p
          tokens: 1k
          version: "1"
          personal_data: true # kvplan: ignore KV102 because these are test accounts
    """
    assert checked(tmp_path, body).outcome == "passed"
    assert checked(tmp_path, body.replace("KV102", "KV101")).outcome == "failed"


@pytest.mark.parametrize(
    ("code", "body"),
    [
        # Attention data parallelism: each rank holds requests of its own.
        (
            "KV107",
            """\
            model: deepseek-ai/DeepSeek-V3
            gpu: H200
            engine: sglang==0.5.5
            tp: 8
            options: {enable_dp_attention: true, dp_size: 8}
            """,
        ),
        # What SGLang leaves beside its pool is room for graphs.
        ("KV113", "engine: sglang==0.5.5\noptions: {mem_fraction_static: 0.85}"),
        ("KV113", "options: {gpu_memory_utilization: 0.95}"),
        # A trace that can't be read says nothing of the load.
        ("KV105", "workload: {trace: missing.csv, decode_rate: 40}"),
        ("KV105", "workload: {rate: 1/s, lengths: 500/100, decode_rate: 40}"),
    ],
)
def test_a_rule_does_not_misfire(code: str, body: str, tmp_path: Path) -> None:
    assert code not in codes(checked(tmp_path, f"context: 8k\n{dedent(body)}"))


@pytest.mark.parametrize(
    ("code", "option"),
    [("KV106", "max-num-seqs: 900"), ("KV113", "--gpu-memory-utilization: 0.995")],
)
def test_an_option_may_be_spelled_with_dashes(code: str, option: str, tmp_path: Path) -> None:
    found = checked(tmp_path, f"context: 32k\nconcurrency: 2\noptions:\n  {option}")
    (hit,) = [each for each in found.findings if each.code == code]
    assert hit.place.line == found.place.line + 7
