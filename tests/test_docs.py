"""The documentation has every field, slug and exit code that there is, and none that isn't."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from kvplan import plan
from kvplan.cli.main import run
from kvplan.errors import KvplanError, UnknownNameError
from kvplan.ledger import SECTIONS, LedgerLine

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

PARTS: list[type[BaseModel]] = [
    plan.Plan,
    plan.Reason,
    plan.ModelPart,
    plan.GpuPart,
    plan.EnginePart,
    plan.Parallelism,
    plan.Workload,
    LedgerLine,
    plan.KvPart,
    plan.Capacity,
    plan.CacheGroup,
    plan.GroupPage,
    plan.Advice,
    plan.Gain,
    plan.DevicePart,
]


def rows(text: str) -> list[list[str]]:
    """The cells of every table row, without back quotes; headers and their rulers left out."""
    lines = text.splitlines()
    rulers = {number for number, line in enumerate(lines) if re.fullmatch(r"[|-]+", line)}
    skipped = rulers | {number - 1 for number in rulers}
    found = [
        line.strip("|").split("|")
        for number, line in enumerate(lines)
        if line.startswith("|") and number not in skipped
    ]
    return [[cell.strip().strip("`") for cell in row] for row in found]


def section(name: str, heading: str) -> str:
    text = (DOCS / name).read_text(encoding="utf-8")
    match = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match is not None, f"docs/{name} has no section {heading}"
    return match[1]


def classes(error: type[KvplanError]) -> Iterator[type[KvplanError]]:
    yield error
    for child in error.__subclasses__():
        yield from classes(child)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_field_of_the_json_is_explained(part: type[BaseModel]) -> None:
    fields = [field.alias or name for name, field in part.model_fields.items()]
    documented = [row[0] for row in rows(section("json.md", part.__name__))]
    assert documented == fields


def test_every_part_of_the_plan_has_a_section() -> None:
    defined = {
        part
        for part in vars(plan).values()
        if isinstance(part, type) and issubclass(part, BaseModel) and part is not BaseModel
    }
    public = {part for part in defined if not part.__name__.startswith("_")}
    assert public == set(PARTS)


def test_every_section_of_the_ledger_is_explained() -> None:
    text = section("json.md", "LedgerLine")
    assert all(f"`{name}`:" in text for name in SECTIONS)


def test_every_error_is_explained() -> None:
    table = rows((DOCS / "errors.md").read_text(encoding="utf-8"))
    documented = [tuple(row[:3]) for row in table]
    real = [(error.slug, error.__name__, str(error.exit_code)) for error in classes(KvplanError)]
    assert documented == real
    assert all(meaning and action for _, _, _, meaning, action in table)


def test_the_example_of_an_error_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    match = re.search(r"```console\n\$ kvplan (.*)\n((?:.*\n)*?)```", text)
    assert match is not None
    assert run(match[1].split()) == UnknownNameError.exit_code
    assert capsys.readouterr() == ("", match[2])


def test_every_exit_code_is_explained() -> None:
    documented = [row[0] for row in rows((DOCS / "exit-codes.md").read_text(encoding="utf-8"))]
    assert documented == ["0", "1", "2", "3", "4", "70", "130"]
    assert {str(error.exit_code) for error in classes(KvplanError)} <= set(documented)


def pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("*/*.md"))]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), f"{page.name} links to {target}"
        if anchor and linked.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = [
                re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings
            ]
            assert anchor in anchors, f"{page.name} links to {target}"
