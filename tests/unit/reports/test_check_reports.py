"""Every format of a check: as it looks, and as the tools that read it understand it."""

from __future__ import annotations

import json
import re
from typing import get_args
from xml.etree import ElementTree as ET

import jsonschema
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
    assert (sum(suite.failures for suite in suites), sum(suite.errors for suite in suites)) == (
        4,
        2,
    )
    endings = {f"{case.classname}: {case.name}": case.result for case in cases}
    failed = endings["deploy/chat.yaml.search[tp=2, gpu=L4]: requests >= 50"]
    assert isinstance(failed[0], Failure)
    assert failed[0].message == "requests is 47, and should be at least 50."
    ignored = endings["deploy/chat.yaml.search[tp=2, gpu=L4]: KV111 engine-unpinned"]
    assert isinstance(ignored[0], Skipped)
    assert isinstance(endings["deploy/chat.yaml.gone: plan"][0], Error)
    assert endings["deploy/chat.yaml.chat: verdict == fits"] == []


# What Ant's schema (windyroad/JUnit-Schema) wants; Jenkins' junit-10.xsd allows all of it.
WANTED = {
    "testsuites": set(),
    "testsuite": {
        *("name", "package", "id", "timestamp", "hostname", "time"),
        *("tests", "failures", "errors", "skipped"),
    },
    "properties": set(),
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": set(),
    "system-out": set(),
    "system-err": set(),
}


def test_junit_is_what_both_of_its_schemas_want() -> None:
    root = ET.fromstring(render_check(EVERYTHING, "junit"))  # noqa: S314 - our own
    for node in root.iter():
        assert set(node.attrib) == WANTED[node.tag]
    for number, suite in enumerate(root):
        tags = [node.tag for node in suite]
        cases = ["testcase"] * (len(tags) - 3)
        assert tags == ["properties", *cases, "system-out", "system-err"]
        assert suite.get("id") == str(number)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", ""))
        assert suite.get("tests") == str(len(cases))
        for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert suite.get(plural) == str(sum(1 for _ in suite.iter(tag)))
        assert all(len(case) <= 1 for case in suite.iter("testcase"))


def test_junit_states_the_time_that_it_is_given() -> None:
    text = render_check(EVERYTHING, "junit", when="2026-11-29T12:00:00")
    assert text.count('timestamp="2026-11-29T12:00:00"') == text.count("<testsuite ")


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


def _object(required: dict[str, object], **optional: object) -> dict[str, object]:
    """An object with these properties and no others."""
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


_WORDS = {"type": "string", "minLength": 1}
_MESSAGE = _object({"text": _WORDS})
_COUNT = {"type": "integer", "minimum": 1}
_REGION = _object({"startLine": _COUNT, "startColumn": _COUNT})
# The parts of SARIF 2.1.0 that are written, each as narrow as it is written.
SARIF = _object(
    {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": _object(
                {
                    "tool": _object(
                        {
                            "driver": _object(
                                {
                                    "name": _WORDS,
                                    "version": _WORDS,
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": _object(
                                            {
                                                "id": _WORDS,
                                                "name": _WORDS,
                                                "shortDescription": _MESSAGE,
                                                "help": _MESSAGE,
                                            }
                                        ),
                                    },
                                }
                            )
                        }
                    ),
                    "results": {
                        "type": "array",
                        "items": _object(
                            {
                                "ruleId": _WORDS,
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": _MESSAGE,
                                "locations": {
                                    "type": "array",
                                    "minItems": 1,
                                    "items": _object(
                                        {
                                            "physicalLocation": _object(
                                                {
                                                    "artifactLocation": _object(
                                                        {
                                                            "uri": {
                                                                "type": "string",
                                                                "format": "uri-reference",
                                                            }
                                                        }
                                                    ),
                                                    "region": _REGION,
                                                }
                                            )
                                        }
                                    ),
                                },
                            },
                            suppressions={
                                "type": "array",
                                "items": _object(
                                    {
                                        "kind": {"enum": ["inSource", "external"]},
                                        "justification": _WORDS,
                                    }
                                ),
                            },
                        ),
                    },
                }
            ),
        },
    }
)


@pytest.mark.parametrize("result", [EVERYTHING, ALL_PASSED, many(30)])
def test_sarif_is_what_its_specification_allows(result: CheckResult) -> None:
    data = json.loads(render_check(result, "sarif"))
    jsonschema.validate(data, SARIF)
    data["runs"][0]["results"].append({"ruleId": "x"})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, SARIF)


def test_all_passed_is_quiet() -> None:
    assert "::error" not in render_check(ALL_PASSED, "github")
    assert "fails" not in render_check(ALL_PASSED, "text")
