"""`kvplan size --engine all`: options by engine, exit codes, one engine's flags."""

from __future__ import annotations

from typing import Any

import pytest
from sample_comparisons import asked, comparison
from sample_plans import does_not_fit

from kvplan import side_by_side
from kvplan.cli import compare
from kvplan.cli.main import run
from kvplan.engine_comparison import EngineComparison
from kvplan.errors import UsageError
from kvplan.planning.compare import Asked

ENGINES = ("vllm", "llama.cpp", "tensorrt-llm")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What `kvplan.compare` was called with; the model's name says what it answers."""
    made: list[dict[str, Any]] = []
    answers = {
        "fits": comparison(),
        "short": comparison((Asked("vllm", "1", does_not_fit()), *asked()[2:])),
        "refused": comparison(asked()[2:]),
    }

    def stub(model: str, gpu: str, **arguments: Any) -> EngineComparison:
        made.append({"model": model, "gpu": gpu, **arguments})
        return answers[model]

    monkeypatch.setattr(side_by_side, "compare", stub)
    return made


def test_several_engines() -> None:
    assert compare.is_several("all")
    assert compare.is_several("ALL")
    assert compare.is_several("vllm,sglang")
    assert not compare.is_several("vllm==0.33.0")
    assert compare.engines_of(" vllm==0.20.0 , transformers") == ("vllm==0.20.0", "transformers")


def test_options_name_their_engine() -> None:
    assert compare.parse_options(
        ["vllm.max_num_seqs=64", "llama.cpp.n-ctx=4096", "tensorrt-llm.max_batch_size=8",
         "vllm.block_size=16"], ENGINES,
    ) == {
        "vllm": {"max_num_seqs": 64, "block_size": 16},
        "llama.cpp": {"n_ctx": 4096},
        "tensorrt-llm": {"max_batch_size": 8},
    }  # fmt: skip


@pytest.mark.parametrize("text", ["max_num_seqs=64", "ollama.num_ctx=1", "vllm.=3", "vllm.x", ""])
def test_options_that_name_none(text: str) -> None:
    with pytest.raises(UsageError):
        compare.parse_options([text], ENGINES)


@pytest.mark.parametrize(("model", "code"), [("fits", 0), ("short", 1), ("refused", 4)])
def test_exit_codes(
    model: str, code: int, calls: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["size", model, "--gpu", "H100", "--engine", "all", "--context", "32k",
             "-o", "vllm.max_num_seqs=64"]  # fmt: skip
    assert run(words) == code
    assert calls[0]["engine_options"] == {"vllm": {"max_num_seqs": 64}}
    assert calls[0]["context"] == 32_768
    assert "Why they differ" in capsys.readouterr().out


def test_csv_says_the_headline_on_stderr(
    calls: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["size", "fits", "--gpu", "H100", "--engine", "all", "--format", "csv"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("engine,version,verdict")
    assert "vllm holds most" in said.err
    assert calls[0]["engines"][0] == "vllm"


@pytest.mark.parametrize("flag", [("--emit", "vllm"), ("--from-command", "vllm serve a/b")])
def test_flags_of_one_engine(flag: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["size", "fits", "--gpu", "H100", "--engine", "all", *flag]) == 2
    assert "for one engine" in capsys.readouterr().err
