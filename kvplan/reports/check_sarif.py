"""A check as SARIF 2.1.0, for code scanning.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from kvplan.check_result import CheckResult, Finding, Place

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_EXPECTATION = ("KV001", "expectation", "An expectation does not hold.")
_PROBLEM = ("KV002", "no-plan", "A scenario can't be planned.")


_NO_PAGE = frozenset((_EXPECTATION[0], _PROBLEM[0]))


def check_sarif(result: CheckResult) -> str:
    """The result as one run."""
    rules = {
        each.code: _rule(each.code, each.rule, _title(each.rule))
        for scenario in result.scenarios
        for each in scenario.findings
    }
    rules |= {code: _rule(code, name, text) for code, name, text in (_EXPECTATION, _PROBLEM)}
    driver = {
        "name": "kvplan",
        "version": result.kvplan_version,
        "rules": [rules[code] for code in sorted(rules)],
    }
    run = {"tool": {"driver": driver}, "results": list(_results(result))}
    data = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def _rule(code: str, name: str, text: str) -> dict[str, Any]:
    page = "README" if code in _NO_PAGE else code
    return {
        "id": code,
        "name": name,
        "shortDescription": {"text": text},
        "help": {"text": f"docs/rules/{page}.md of kvplan says more."},
    }


def _title(name: str) -> str:
    """A rule's name as a sentence: what it found and how to mend it stands in each result."""
    return f"{name.replace('-', ' ').capitalize()}."


def _results(result: CheckResult) -> Iterator[dict[str, Any]]:
    for scenario in result.scenarios:
        if scenario.problem is not None:
            yield _row(_PROBLEM[0], "error", scenario.problem.message, scenario.place)
        for assertion in scenario.assertions:
            if assertion.status != "holds":
                message = f"{scenario.name}: {assertion.message}"
                yield _row(_EXPECTATION[0], "error", message, assertion.place)
        for finding in scenario.findings:
            yield _of_finding(scenario.name, finding)


def _of_finding(scenario: str, finding: Finding) -> dict[str, Any]:
    message = f"{scenario}: {finding.message} {finding.fix}"
    row = _row(finding.code, finding.level, message, finding.place)
    if finding.ignored is not None:
        row["suppressions"] = [{"kind": "inSource", "justification": finding.ignored}]
    return row


def _row(code: str, level: str, message: str, place: Place) -> dict[str, Any]:
    return {
        "ruleId": code,
        "level": level,
        "message": {"text": message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(PurePath(place.file).as_posix())},
                    "region": {"startLine": place.line, "startColumn": place.column},
                }
            }
        ],
    }
