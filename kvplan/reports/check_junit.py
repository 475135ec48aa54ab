"""A check as JUnit XML: a suite for each file, a case for each assertion and failing finding.

The attributes are those that Jenkins' schema allows (jenkinsci/xunit-plugin, junit-10.xsd).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

from kvplan.check_result import CheckResult, Finding, ScenarioResult
from kvplan.reports.clean import clean


def check_junit(result: CheckResult) -> str:
    """The result as one XML document."""
    root = ET.Element("testsuites", {"name": "kvplan check"})
    files: dict[str, list[ScenarioResult]] = {}
    for each in result.scenarios:
        files.setdefault(each.place.file, []).append(each)
    for file, scenarios in files.items():
        _suite(root, file, scenarios)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(root: ET.Element, file: str, scenarios: list[ScenarioResult]) -> None:
    suite = ET.SubElement(root, "testsuite", {"name": clean(file)})
    cases = [case for each in scenarios for case in _cases(file, each)]
    suite.extend(cases)
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
    suite.set("errors", str(sum(case.find("error") is not None for case in cases)))
    suite.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))


def _cases(file: str, result: ScenarioResult) -> Iterator[ET.Element]:
    if result.problem is not None:
        case = _case(file, result, "plan")
        hint = f"\n{result.problem.hint}" if result.problem.hint else ""
        text = f"{result.place}: {result.problem.message}{hint}"
        _ending(case, "error", result.problem.message, result.problem.slug, text)
        yield case
    for assertion in result.assertions:
        case = _case(file, result, assertion.text)
        if assertion.status == "holds":
            _output(case, assertion.message)
        else:
            text = f"{assertion.place}: {assertion.message}"
            _ending(case, "failure", assertion.message, assertion.status, text)
        yield case
    for finding in result.findings:
        yield _finding(file, result, finding)


def _finding(file: str, result: ScenarioResult, finding: Finding) -> ET.Element:
    case = _case(file, result, f"{finding.code} {finding.rule}")
    text = f"{finding.place}: {finding.message}\n{finding.fix}"
    if finding.ignored is not None:
        # As text: older schemas allow no attribute here.
        ET.SubElement(case, "skipped").text = clean(finding.ignored)
    elif finding.level == "error":
        _ending(case, "failure", finding.message, finding.code, text)
    else:
        _output(case, f"warning: {text}")
    return case


def _case(file: str, result: ScenarioResult, name: str) -> ET.Element:
    classname = f"{clean(file)}.{clean(result.name)}"
    return ET.Element("testcase", {"classname": classname, "name": clean(name), "time": "0"})


def _ending(case: ET.Element, tag: str, message: str, kind: str, text: str) -> None:
    ending = ET.SubElement(case, tag, {"message": clean(message), "type": kind})
    ending.text = "\n".join(clean(line) for line in text.split("\n"))


def _output(case: ET.Element, text: str) -> None:
    ET.SubElement(case, "system-out").text = "\n".join(clean(line) for line in text.split("\n"))
