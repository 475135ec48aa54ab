"""`kvplan fit`: exit codes, formats, and that its page shows what it does."""

from __future__ import annotations

import csv
import json
import re
import shlex
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import get_args

import pytest

from kvplan.cli.fit_words import parse_budget, parse_efficiency, parse_slo
from kvplan.cli.main import run
from kvplan.errors import UsageError
from kvplan.fit_prices import PriceList
from kvplan.fit_result import FitResult, Why, has_catch
from kvplan.reports.fit_csv import COLUMNS
from kvplan.sources.prices import read_prices

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "fit.md").read_text(encoding="utf-8")
ASKED = ("fit", "Qwen/Qwen3-8B", "--context", "16k", "--concurrency", "40", "--offline")
FEW = (*ASKED, "--gpus", "L4,L40S", "--tp", "1,2", "--pp", "1")


def printed(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> tuple[int, str, str]:
    code = run(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def test_something_holds_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = printed(capsys, (*FEW, "--instances", "aws"))
    assert (code, err) == (0, "")
    assert out.startswith("Recommended: ")
    assert "with weights and cache as they are. Cheapest: " in " ".join(out.split())
    assert "Prices of 2026-07-20, us-east-1" in out
    assert "kvplan size Qwen/Qwen3-8B --gpu " in out


def test_nothing_holds_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = printed(capsys, (*FEW, "--instances", "aws", "--budget", "1/month"))
    assert code == 1
    assert out.startswith("Nothing that was searched holds 40 requests of 16,384 tokens within the")
    assert "over the budget" in out


def test_all_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = printed(capsys, (*ASKED, "--gpus", "L4", "--tp", "3"))
    assert code == 4
    assert "32 attention heads do not divide by it" in out


def test_without_prices_gpus_decide(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = printed(capsys, FEW)
    assert code == 0
    assert " Fewest GPUs: " in " ".join(out.split())
    assert "Price/h" not in out


@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_is_wider_than_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    _, out, _ = printed(capsys, (*ASKED, "--gpus", "L4,L40S,H100*", "--instances", "aws"))
    assert max(map(len, out.splitlines())) <= columns
    assert "…" not in out


def test_the_command_it_prints_gives_the_plan_it_promises(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, out, _ = printed(capsys, (*FEW, "--format", "json"))
    found = json.loads(out)
    assert found["schema"] == "kvplan.fit/1"
    _, text, _ = printed(capsys, FEW)
    command = text.split("The whole plan of the first\n")[1].split("\n\n")[0]
    code, out, _ = printed(capsys, [*shlex.split(command)[1:], "--offline", "--format", "json"])
    assert code == 0
    assert json.loads(out)["capacity"]["requests"] == found["plans"][0]["held"]


def test_the_recommended_plan_has_no_catch(capsys: pytest.CaptureFixture[str]) -> None:
    words = (*ASKED, "--gpus", "L4", "--instances", "aws")
    _, out, _ = printed(capsys, (*words, "--format", "json"))
    found = FitResult.model_validate_json(out)
    best, recommended = found.best, found.recommended
    assert best is not None
    assert recommended is not None
    assert (best.changed, best.machines) == ((True, True), 4)
    assert (recommended.changed, recommended.machines) == ((False, False), 1)
    assert not recommended.crawls
    cheaper = found.plans[: recommended.rank - 1]
    assert all(has_catch(plan, found.searched) for plan in cheaper)
    _, text, _ = printed(capsys, words)
    plain, _, other = text.partition("which costs accuracy")
    assert "KV fp8" not in plain.partition("With weights and cache as they are\n")[2]
    assert "weights auto, KV auto" not in other.partition("Remarks")[0]
    # Formats that alone were asked for are no catch.
    _, text, _ = printed(capsys, (*words, "--weights", "awq", "--kv-dtype", "fp8", "--pp", "1"))
    assert text.startswith("Cheapest: ")


def test_csv_has_a_row_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = printed(capsys, (*FEW, "--instances", "aws", "--format", "csv"))
    rows = list(csv.DictReader(StringIO(out)))
    assert code == 0
    assert tuple(rows[0]) == COLUMNS
    assert [row["rank"] for row in rows] == [str(rank) for rank in range(1, len(rows) + 1)]
    assert err.startswith("Recommended: ")


def test_markdown_is_a_table_and_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = printed(capsys, (*FEW, "--format", "markdown", "--top", "3"))
    assert len(re.findall(r"^\| \d+ \|", out, re.MULTILINE)) == 3
    assert "Why the others lost:" in out


def test_traffic_is_a_load_too(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--lengths", "2k/300", "--rate", "5/s", "--decode-rate", "30")
    code, out, _ = printed(
        capsys, ("fit", "Qwen/Qwen3-8B", "--context", "16k", "--offline", *words,
                 "--gpus", "L4", "--tp", "1", "--pp", "1", "--kv-dtype", "auto",
                 "--format", "json"),
    )  # fmt: skip
    assert code == 0
    best = json.loads(out)["plans"][0]
    _, out, _ = printed(
        capsys, ("traffic", "Qwen/Qwen3-8B", "--context", "16k", "--offline", *words, "--gpu", "L4",
                 "--weights", best["weights"], "--format", "json"),
    )  # fmt: skip
    load = json.loads(out)["load"]
    assert load["replicas_needed"] == best["parallelism"]["dp"]


@pytest.mark.parametrize(
    "words",
    [
        ("--budget", "cheap"),
        ("--budget", "0/h"),
        ("--slo", "tpot=fast"),
        ("--slo", "tpot=50"),
        ("--slo", "latency=1s"),
        ("--slo", "tpot=1s,tpot=2s"),
        ("--efficiency", "bandwidth=2"),
        ("--gpus", ","),
        ("--tp", "two"),
        ("--rate", "5/s"),
        ("--prices", "nowhere.yaml"),
        ("--instances", "ibm"),
        ("-o", "max_seqs=3"),
        ("--top", "0"),
    ],
)
def test_wrong_words_are_usage_errors(
    capsys: pytest.CaptureFixture[str], words: tuple[str, str]
) -> None:
    code, out, err = printed(capsys, (*ASKED, *words))
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert "hint: " in err


def test_money_and_times_are_read() -> None:
    assert parse_budget("20/h", 730) == parse_budget("20", 730) == 20
    assert parse_budget("14.6k/month", 730) == 20
    assert parse_budget("480 USD/day", 730) == 20
    assert parse_budget(None, 730) is None
    assert parse_slo("ttft=2s,tpot=50ms") == {"ttft": 2.0, "tpot": 0.05}
    assert parse_efficiency("flops=.6,bandwidth=1") == {"flops": 0.6, "bandwidth": 1.0}
    with pytest.raises(UsageError):
        parse_budget("20/week", 730)


def test_the_page_explains_every_reason() -> None:
    table = PAGE.split("| `why` | meaning |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)`", table, re.MULTILINE) == [
        why for why in ORDER if why in get_args(Why)
    ]
    assert set(ORDER) == set(get_args(Why))


ORDER = (
    "dominated", "over_budget", "no_price", "misses_slo", "holds_too_few", "request", "weights",
    "not_sold", "refused",
)  # fmt: skip


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
def test_the_examples_in_python_run(code: str) -> None:
    exec(compile(code, "docs/fit.md", "exec"), {})  # noqa: S102 - the page's own example


@pytest.mark.parametrize("line", re.findall(r"^kvplan (fit .*)$", PAGE, re.MULTILINE))
def test_the_commands_on_the_page_run(capsys: pytest.CaptureFixture[str], line: str) -> None:
    code, out, _ = printed(capsys, [*shlex.split(line), "--format", "csv"])
    assert code == 0
    assert out.count("\n") > 2


def test_the_price_file_on_the_page_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "prices.yaml"
    path.write_text(text, encoding="utf-8")
    listed = read_prices(path)
    assert isinstance(listed, PriceList)
    assert listed.gpus["L40S"] == 0.62


def test_the_schema_of_price_files_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = printed(capsys, ("schema", "prices"))
    assert code == 0
    assert set(json.loads(out)["required"]) == {"schema", "date", "source"}
