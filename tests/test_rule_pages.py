"""Every rule has its page, and the examples on it are found and not found as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kvplan.scenario.rules.table import COMPARED, RULES
from tests.scenario_files import checked, codes

PAGES = Path(__file__).parents[1] / "docs" / "rules"
_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BASE = {"context": "8k", "concurrency": "4"}


def page(code: str) -> str:
    return (PAGES / f"{code}.md").read_text(encoding="utf-8")


def found(folder: Path, block: str) -> list[str]:
    stated = {line.partition(":")[0] for line in block.splitlines()}
    rest = "".join(f"{key}: {value}\n" for key, value in BASE.items() if key not in stated)
    return codes(checked(folder, block + rest))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_page_says_what_its_rule_does(rule: object, tmp_path: Path) -> None:
    (known,) = [each for each in RULES if each is rule]
    text = page(known.code)
    assert text.startswith(f"# {known.code}: {known.summary.rstrip('.')}\n")
    assert f"`{known.name}`, {known.level}\n" in text
    worse, better = _BLOCK.findall(text)
    assert known.code in found(tmp_path, worse)
    assert known.code not in found(tmp_path, better)


@pytest.mark.parametrize("row", COMPARED, ids=lambda row: row[0])
def test_comparisons_have_a_page_too(row: tuple[str, str, str]) -> None:
    code, name, summary = row
    assert page(code).startswith(f"# {code}: {summary.rstrip('.')}\n")
    assert f"`{name}`, error\n" in page(code)


def test_the_list_has_every_code_once_and_no_other() -> None:
    listed = re.findall(r"^\| \[(KV\d{3})\]\((KV\d{3})\.md\)", page("README"), re.MULTILINE)
    codes_there = [rule.code for rule in RULES] + [row[0] for row in COMPARED]
    assert listed == [(code, code) for code in codes_there]
    assert {path.stem for path in PAGES.glob("KV*.md")} == set(codes_there)
