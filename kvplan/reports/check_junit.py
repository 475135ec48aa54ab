"""A check as JUnit XML: a suite for each file, a case for each assertion and finding.

Elements and attributes are those that Ant's schema asks for (windyroad/JUnit-Schema, JUnit.xsd) and
Jenkins' allows (jenkinsci/xunit-plugin, junit-10.xsd), so that a reader of either takes it.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator

from kvplan.check_result import CheckResult, Finding, ScenarioResult
from kvplan.reports.clean import clean

# The schemas want a time; a report without one is the same whenever it is made.
NO_TIME = "1970-01-01T00:00:00"


def check_junit(result: CheckResult, *, when: str = NO_TIME) -> str:
    """The result as one XML document.

    Args:
        result: What is reported.
        when: When it was checked, as ``2026-11-29T12:00:00``.
    """
    root = ET.Element("testsuites")
    files: dict[str, list[ScenarioResult]] = {}
    for each in result.scenarios:
        files.setdefault(each.place.file, []).append(each)
    for number, (file, scenarios) in enumerate(files.items()):
        root.append(_suite(number, file, scenarios, when))
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _suite(number: int, file: str, scenarios: list[ScenarioResult], when: str) -> ET.Element:
    cases = [case for each in scenarios for case in _cases(file, each)]
    attributes = {
        "name": clean(file),
        "package": "kvplan",
        "id": str(number),
        "timestamp": when,
        "hostname": "localhost",
        "time": "0",
        "tests": str(len(cases)),
    }
    for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        attributes[plural] = str(sum(case.find(tag) is not None for case in cases))
    suite = ET.Element("testsuite", attributes)
    ET.SubElement(suite, "properties")
    suite.extend(cases)
    _put(ET.SubElement(suite, "system-out"), "\n".join(_said(scenarios)))
    ET.SubElement(suite, "system-err")
    return suite


def _cases(file: str, result: ScenarioResult) -> Iterator[ET.Element]:
    if result.problem is not None:
        case = _case(file, result, "plan")
        hint = f"\n{result.problem.hint}" if result.problem.hint else ""
        text = f"{result.place}: {result.problem.message}{hint}"
        _ending(case, "error", result.problem.message, result.problem.slug, text)
        yield case
    for assertion in result.assertions:
        case = _case(file, result, assertion.text)
        if assertion.status != "holds":
            text = f"{assertion.place}: {assertion.message}"
            _ending(case, "failure", assertion.message, assertion.status, text)
        yield case
    for finding in result.findings:
        yield _finding(file, result, finding)


def _finding(file: str, result: ScenarioResult, finding: Finding) -> ET.Element:
    case = _case(file, result, f"{finding.code} {finding.rule}")
    if finding.ignored is not None:
        # As text: older schemas allow no attribute here.
        ET.SubElement(case, "skipped").text = clean(finding.ignored)
    elif finding.level == "error":
        text = f"{finding.place}: {finding.message}\n{finding.fix}"
        _ending(case, "failure", finding.message, finding.code, text)
    return case


def _said(scenarios: list[ScenarioResult]) -> Iterator[str]:
    """What has no case that fails: values that hold, warnings, notes."""
    for each in scenarios:
        for assertion in each.assertions:
            if assertion.status == "holds":
                yield f"{each.name}: {assertion.message}"
        for finding in each.findings:
            if finding.ignored is None and finding.level == "warning":
                what = f"{finding.code} {finding.message} {finding.fix}"
                yield f"{finding.place}: {each.name}: {what}"
        for note in each.notes:
            yield f"{each.name}: {note}"


def _case(file: str, result: ScenarioResult, name: str) -> ET.Element:
    classname = f"{clean(file)}.{clean(result.name)}"
    return ET.Element("testcase", {"classname": classname, "name": clean(name), "time": "0"})


def _ending(case: ET.Element, tag: str, message: str, kind: str, text: str) -> None:
    ending = ET.SubElement(case, tag, {"message": clean(message), "type": kind})
    _put(ending, text)


def _put(node: ET.Element, text: str) -> None:
    node.text = "\n".join(clean(line) for line in text.split("\n"))
