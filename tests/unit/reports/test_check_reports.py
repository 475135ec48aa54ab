"""Every format of a check: as it looks, and as the tools that read it understand it."""

from __future__ import annotations

import json
import re
from typing import get_args
from xml.etree import ElementTree as ET

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped
from markdown_it import MarkdownIt
from syrupy.assertion import SnapshotAssertion

from kvplan.check_result import CheckResult, Place
from kvplan.reports.check_markdown import MARKER
from kvplan.reports.render_check import CheckFormat, render_check
from tests.sample_checks import ALL_PASSED, EVERYTHING, FAILED, many

FORMATS = get_args(CheckFormat)


@pytest.mark.parametrize("wanted", FORMATS)
def test_a_check_as_it_looks(wanted: CheckFormat, snapshot: SnapshotAssertion) -> None:
    assert render_check(EVERYTHING, wanted) == snapshot


@pytest.mark.parametrize("wanted", FORMATS)
def test_nothing_in_a_file_reaches_a_terminal_as_a_command(wanted: CheckFormat) -> None:
    name = "\x1b[2J\u202e"
    evil = FAILED.model_copy(update={"name": name, "place": Place(file=name)})
    text = render_check(CheckResult(scenarios=(evil,)), wanted)
    if wanted == "github":
        return  # a command of the workflow, which is no text
    assert "\x1b" not in text
    assert text.endswith("\n")


def test_text_in_colour_and_in_ascii() -> None:
    assert "\x1b[31mFAILED\x1b[0m search" in render_check(EVERYTHING, "text", color=True)
    assert "\x1b" not in render_check(EVERYTHING, "text")
    assert render_check(EVERYTHING, "text", ascii_only=True).isascii()


def test_json_has_the_exit_code_and_reads_back() -> None:
    data = json.loads(render_check(EVERYTHING, "json"))
    assert data.pop("exit_code") == 4
    assert data["schema"] == "kvplan.check/1"
    assert CheckResult.model_validate(data) == EVERYTHING


def test_junit_is_read_back_by_a_parser_of_junit() -> None:
    suites = JUnitXml.fromstring(render_check(EVERYTHING, "junit").encode())
    cases = [case for suite in suites for case in suite]
    assert (suites.tests, suites.failures, suites.errors) == (len(cases), 4, 2)
    endings = {f"{case.classname}: {case.name}": case.result for case in cases}
    failed = endings["deploy/chat.yaml.search[tp=2, gpu=L4]: requests >= 50"]
    assert isinstance(failed[0], Failure)
    assert failed[0].message == "requests is 47, and should be at least 50."
    ignored = endings["deploy/chat.yaml.search[tp=2, gpu=L4]: KV111 engine-unpinned"]
    assert isinstance(ignored[0], Skipped)
    assert isinstance(endings["deploy/chat.yaml.gone: plan"][0], Error)
    assert endings["deploy/chat.yaml.chat: verdict == fits"] == []


# What jenkinsci/xunit-plugin's junit-10.xsd and the older jenkins-junit.xsd both allow.
ALLOWED = {
    "testsuites": {"name", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped"},
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": set(),
    "system-out": set(),
}


def test_junit_uses_only_what_its_schemas_allow() -> None:
    for node in ET.fromstring(render_check(EVERYTHING, "junit")).iter():  # noqa: S314
        assert set(node.attrib) <= ALLOWED[node.tag]
        assert len(node) <= 1 or node.tag.startswith("testsuite")


def _unescaped(text: str) -> str:
    for code, character in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(code, character)
    return text


def test_github_escapes_what_would_end_a_message_or_a_property() -> None:
    lines = render_check(EVERYTHING, "github").splitlines()
    (line,) = [each for each in lines if "KV102" in each]
    command, properties, message = re.fullmatch(r"::(\w+) (.*?)::(.*)", line).groups()  # type: ignore[union-attr]
    assert command == "error"
    split = dict(each.split("=", 1) for each in properties.split(","))
    assert {name: _unescaped(value) for name, value in split.items()} == {
        "file": "deploy/chat.yaml",
        "line": "14",
        "col": "30",
        "title": "search[tp=2, gpu=L4]: KV102 personal-data-in-shared-prefix",
    }
    assert "(100%25 of it).%0AWrite scope: user." in message
    (other,) = [each for each in lines if "KV111" in each]
    assert "file=deploy/base%2C old.yaml," in other
    assert len(lines) == len([each for each in lines if each.startswith("::")])


def test_github_shows_each_problem_of_a_file_at_its_place() -> None:
    lines = render_check(EVERYTHING, "github").splitlines()
    found = [each for each in lines if "file=deploy/broken.yaml" in each]
    assert [each.partition(",title")[0] for each in found] == [
        "::error file=deploy/broken.yaml,line=2,col=1",
        "::error file=deploy/broken.yaml,line=3,col=1",
    ]
    assert found[0].endswith("::a | b")


def test_github_shows_ten_of_a_kind_and_says_how_many_more_there_are() -> None:
    lines = render_check(many(8), "github").splitlines()
    errors = [each for each in lines if each.startswith("::error")]
    assert len(errors) == 10
    # Eight scenarios with three each; nine are shown.
    assert errors[-1].endswith("::15 more; the summary has them all.")


def test_markdown_renders_as_a_table_and_lists() -> None:
    text = render_check(EVERYTHING, "markdown")
    assert text.startswith(f"{MARKER}\n")
    html = MarkdownIt("commonmark").enable("table").render(text)
    assert html.count("<tr>") == 6
    assert "a | b" in html
    assert "&lt;c&gt;" in html
    assert html.count("<h3>") == 5


def test_a_comment_has_an_end() -> None:
    text = render_check(many(2000), "markdown")
    assert len(text) < 65_536
    assert text.endswith("… and more; the job's log has it all.\n")


def test_sarif_has_a_rule_and_a_region_for_every_result() -> None:
    data = json.loads(render_check(EVERYTHING, "sarif"))
    (run,) = data["runs"]
    rules = {each["id"] for each in run["tool"]["driver"]["rules"]}
    assert {each["ruleId"] for each in run["results"]} <= rules
    (ignored,) = [each for each in run["results"] if "suppressions" in each]
    assert ignored["suppressions"] == [{"kind": "inSource", "justification": "the image pins it"}]
    where = ignored["locations"][0]["physicalLocation"]
    assert where["artifactLocation"]["uri"] == "deploy/base%2C%20old.yaml"
    assert where["region"] == {"startLine": 3, "startColumn": 3}


def test_all_passed_is_quiet() -> None:
    assert "::error" not in render_check(ALL_PASSED, "github")
    assert "fails" not in render_check(ALL_PASSED, "text")
