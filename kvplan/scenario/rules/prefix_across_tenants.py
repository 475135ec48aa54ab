"""KV101: whoever shares a cached prefix can learn, from how fast it answers, that it is cached."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.scenario.rules.base import Hit, Rule, Shown


def _check(shown: Shown) -> Iterator[Hit]:
    for at, prefix in enumerate(shown.question.workload.prefixes):
        if prefix.scope == "global" and (prefix.tenants or 1) > 1:
            yield Hit(
                f"The prefix {prefix.name!r} is shared across {prefix.tenants:,} tenants: the time"
                " to the first token tells one of them that another has used it.",
                "Write scope: tenant (and give vLLM a cache_salt for each tenant).",
                ("workload", "prefixes", at, "scope"),
            )


RULE = Rule(
    "KV101", "prefix-across-tenants", "warning", "A prefix is shared across tenants.", _check
)
