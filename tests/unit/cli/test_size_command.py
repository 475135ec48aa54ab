"""`kvplan size`: flags become arguments, verdicts become exit codes. The planning is stubbed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sample_plans import SAMPLES, does_not_fit, fits, refused

import kvplan
from kvplan.cli.main import run
from kvplan.plan import Plan

Run = Callable[..., int]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `kvplan.api.size` was called with; it answers with the plan named by the model."""
    made: list[dict[str, Any]] = []

    def size(model: str, gpu: str, **arguments: Any) -> Plan:
        made.append({"model": model, "gpu": gpu, **arguments})
        return SAMPLES[model]()

    stub = ModuleType("kvplan.api")
    stub.__dict__["size"] = size
    monkeypatch.setitem(sys.modules, "kvplan.api", stub)
    monkeypatch.setattr(kvplan, "api", stub, raising=False)
    return made


DEFAULTS: dict[str, Any] = {
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
    "gpus_per_node": None,
    "kv_budget": None,
    "engine_options": {},
    "images": 0,
    "image_size": None,
    "image_tokens": None,
    "profile": None,
    "offline": False,
    "advice": True,
}


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("", {}),
        ("--engine vllm==0.20.0", {"engine": "vllm==0.20.0"}),
        ("--tp 4 --pp 2 --dp 3 --dcp 2", {"tp": 4, "pp": 2, "dp": 3, "dcp": 2}),
        ("--context 32k --concurrency 50", {"context": 32768, "concurrency": 50}),
        ("--context auto", {"context": "auto"}),
        ("--weights fp8 --kv-dtype fp8", {"weights": "fp8", "kv_dtype": "fp8"}),
        ("--dtype float16 --gpus-per-node 8", {"dtype": "float16", "gpus_per_node": 8}),
        ("--kv-budget 1GiB --kv-budget 2GiB", {"kv_budget": (2**30, 2**31)}),
        ("--kv-budget 1GiB,2GiB", {"kv_budget": (2**30, 2**31)}),
        ("-o block_size=32 --option enforce_eager=true",
         {"engine_options": {"block_size": 32, "enforce_eager": True}}),
        ("--images 4 --image-size 1024x768", {"images": 4, "image_size": (1024, 768)}),
        ("--images 1 --image-tokens 576", {"images": 1, "image_tokens": 576}),
        ("--offline", {"offline": True}),
        ("--format csv", {"advice": False}),
    ],
)  # fmt: skip
def test_flags_become_arguments(
    calls: list[dict[str, Any]], words: str, changed: dict[str, Any]
) -> None:
    assert run(["size", "fits", "--gpu", "H100", *words.split()]) == 0
    assert calls == [{"model": "fits", "gpu": "H100", **DEFAULTS, **changed}]


@pytest.mark.parametrize(
    ("model", "code"), [("fits", 0), ("fits_unasked", 0), ("does_not_fit", 1), ("refused", 4)]
)
@pytest.mark.parametrize("wanted", ["text", "json", "csv", "markdown"])
def test_the_verdict_decides_the_exit_code(
    calls: list[dict[str, Any]], model: str, code: int, wanted: str
) -> None:
    assert run(["size", model, "--gpu", "H100", "--format", wanted]) == code
    assert len(calls) == 1


@pytest.mark.usefixtures("calls")
def test_data_goes_to_stdout_alone(capsys: pytest.CaptureFixture[str]) -> None:
    run(["size", "does_not_fit", "--gpu", "H100", "--format", "json"])
    captured = capsys.readouterr()
    assert json.loads(captured.out) == does_not_fit().model_dump(mode="json", by_alias=True)
    assert captured.err == ""


@pytest.mark.usefixtures("calls")
def test_explain_adds_formulas(capsys: pytest.CaptureFixture[str]) -> None:
    run(["size", "fits", "--gpu", "H100"])
    plain = capsys.readouterr().out
    run(["size", "fits", "--gpu", "H100", "--explain"])
    assert fits().ledger[0].formula not in plain
    assert fits().ledger[0].formula in capsys.readouterr().out


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize(
    ("name", "start"), [("p.json", "{"), ("p.csv", "name,"), ("p.MD", "**"), ("p.txt", "Does not")]
)
def test_a_file_is_written_in_the_format_of_its_ending(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, start: str
) -> None:
    target = tmp_path / name
    assert run(["size", "does_not_fit", "--gpu", "H100", "--output", str(target)]) == 1
    assert target.read_text().startswith(start)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("Does not fit: ")


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize("name", ["p.html", "p.yaml", "plan.v2"])
def test_an_unknown_ending_is_refused_unless_a_format_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    words = ["size", "fits", "--gpu", "H100", "--output", str(tmp_path / name)]
    assert run(words) == 2
    assert "--format" in capsys.readouterr().err
    assert not (tmp_path / name).exists()
    assert run([*words, "--format", "json"]) == 0


@pytest.mark.usefixtures("calls")
def test_a_format_is_named_in_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["size", "fits", "--gpu", "H100", "--format", "JSON"]) == 0
    json.loads(capsys.readouterr().out)
    assert run(["size", "fits", "--gpu", "H100", "--format", "xlsx"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: Invalid value for '--format': 'xlsx' is not one of")


@pytest.mark.usefixtures("calls")
def test_a_named_format_wins_over_the_ending(tmp_path: Path) -> None:
    target = tmp_path / "plan.txt"
    run(["size", "fits", "--gpu", "H100", "--output", str(target), "--format", "json"])
    json.loads(target.read_text())


@pytest.mark.usefixtures("calls")
@pytest.mark.parametrize("flag", ["-q", "--quiet"])
@pytest.mark.parametrize("place", ["before", "after"])
def test_quiet_stills_remarks_wherever_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str, place: str
) -> None:
    words = ["size", "fits", "--gpu", "H100", "--output", str(tmp_path / "p.csv")]
    assert run([flag, *words] if place == "before" else [*words, flag]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("size", "MODEL"),
        ("size fits", "--gpu is missing"),
        ("size fits --gpu H100 --tp 0", "--tp: 0 is too few"),
        ("size fits --gpu H100 --tp two", "--tp: 'two' is not a whole number"),
        ("size fits --gpu H100 --concurrency -1", "--concurrency: -1 is too few"),
        ("size fits --gpu H100 --context abc", "--context: 'abc' is not a number of tokens"),
        ("size fits --gpu H100 --context 99999999999999", "--context:"),
        ("size fits --gpu H100 --kv-budget lots", "--kv-budget: 'lots' is not a memory size"),
        ("size fits --gpu H100 -o nothing", "-o: 'nothing' is not an option"),
        ("size fits --gpu H100 --format xml", "--format"),
        ("size fits --gpu H100 --gpux L4", "--gpux"),
        ("sise fits", "sise"),
    ],
)
def test_wrong_words_are_exit_2_with_a_sentence_and_a_hint(
    calls: list[dict[str, Any]], capsys: pytest.CaptureFixture[str], words: str, said: str
) -> None:
    assert run(words.split()) == 2
    captured = capsys.readouterr()
    error, hint = captured.err.splitlines()
    assert captured.out == ""
    assert error.startswith("error: ")
    assert said in error
    assert hint.startswith("hint: ")
    assert not calls


def test_a_missing_gpu_is_told_which_there_are(
    calls: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    run(["size", "fits"])
    assert "H100-SXM-80GB" in capsys.readouterr().err
    assert not calls


def test_a_refusal_is_a_report_too(
    calls: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["size", "refused", "--gpu", "H100"]) == 4
    captured = capsys.readouterr()
    assert captured.out.startswith(f"Refused: {refused().reasons[0].message[:40]}")
    assert captured.err == ""
    assert calls


def test_without_a_command_the_help_is_shown_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Usage: kvplan" in captured.err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"kvplan {kvplan.__version__}\n"
