"""A check made by hand, with one of everything that a report shows. The figures are made up."""

from __future__ import annotations

from kvplan.check_result import (
    Assertion,
    CheckResult,
    Cost,
    Finding,
    Place,
    Problem,
    ScenarioResult,
    worst_first,
)

FILE = "deploy/chat.yaml"


def place(line: int, column: int = 3, file: str = FILE) -> Place:
    return Place(file=file, line=line, column=column)


_HOLDS = Assertion(
    text="verdict == fits",
    status="holds",
    value="fits",
    limit="fits",
    message="verdict is fits.",
    place=place(5),
)
_FAILS = Assertion(
    text="requests >= 50",
    status="fails",
    value="47",
    limit="50",
    message="requests is 47, and should be at least 50.",
    place=place(9, 7),
)
_UNKNOWN = Assertion(
    text="overload_risk <= 0.1%",
    status="unknown",
    value=None,
    limit="0.1%",
    message="overload_risk <= 0.1%: this can't be computed: the workload is fixed.",
    place=place(10, 7),
)
_ERROR = Finding(
    code="KV102",
    rule="personal-data-in-shared-prefix",
    level="error",
    message="The prefix 'who, you: are' holds personal data (100% of it).",
    fix="Write scope: user.",
    place=place(14, 30),
)
_WARNING = Finding(
    code="KV111",
    rule="engine-unpinned",
    level="warning",
    message="The engine is not pinned (vllm).",
    fix="Write engine: vllm==0.33.0.",
    place=place(3, 3, "deploy/base, old.yaml"),
)
_IGNORED = _WARNING.model_copy(update={"ignored": "the image pins it"})

PASSED = ScenarioResult(
    name="chat",
    place=place(5),
    outcome="passed",
    headline="Fits: 1 × H100-SXM-80GB holds 55 requests of 8,192 tokens at once.",
    verdict="fits",
    requests=55,
    cost=Cost(currency="USD", per_hour=2.5, per_request=0.00021),
    assertions=(_HOLDS,),
    findings=(_WARNING,),
    notes=("sessions.ttl is not planned: it takes | turns.",),
)
FAILED = ScenarioResult(
    name="search[tp=2, gpu=L4]",
    place=place(7),
    outcome="failed",
    headline="Fits: 2 × L4-24GB hold 47 requests of 8,192 tokens at once.",
    verdict="fits",
    requests=47,
    cost=Cost(currency="USD", per_hour=1.5),
    assertions=(_HOLDS, _FAILS, _UNKNOWN),
    findings=(_ERROR, _IGNORED),
)
UNREADABLE = ScenarioResult(
    name="deploy/broken.yaml",
    place=place(1, 1, "deploy/broken.yaml"),
    outcome="unreadable",
    problem=Problem(
        slug="unreadable-input",
        message="2 problems:\n  deploy/broken.yaml:2:1: a | b\n  deploy/broken.yaml:3:1: <c> & d",
        hint="Correct the file at the place named.",
    ),
)
UNOBTAINABLE = ScenarioResult(
    name="gone",
    place=place(20),
    outcome="unobtainable",
    problem=Problem(slug="model-not-found", message="nobody/nothing is not to be had."),
)
REFUSED = ScenarioResult(
    name="odd",
    place=place(30),
    outcome="refused",
    headline="Refused: 32 heads are not divisible by 3.",
    verdict="refused",
    assertions=(
        _HOLDS.model_copy(
            update={
                "status": "fails",
                "value": "refused",
                "message": "verdict is refused, and should be fits.",
            }
        ),
    ),
)
EVERYTHING = CheckResult(
    kvplan_version="1.2.3",
    scenarios=worst_first((PASSED, FAILED, UNREADABLE, UNOBTAINABLE, REFUSED)),
)
ALL_PASSED = CheckResult(kvplan_version="1.2.3", scenarios=(PASSED,))


def many(count: int) -> CheckResult:
    """A result with that many failing scenarios."""
    failing = tuple(FAILED.model_copy(update={"name": f"s{each}"}) for each in range(count))
    return CheckResult(kvplan_version="1.2.3", scenarios=failing)
