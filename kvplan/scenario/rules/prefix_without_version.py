"""KV103: a prefix that may change without anybody counting the blocks of the old one."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.scenario.rules.base import Hit, Rule, Shown


def _check(shown: Shown) -> Iterator[Hit]:
    for at, prefix in enumerate(shown.question.workload.prefixes):
        if prefix.version is None:
            yield Hit(
                f"The prefix {prefix.name!r} has no version: after an edit the old and the new"
                " one are resident together, and no hit rate measured before still holds.",
                'Write version: "1" and count it up with every edit.',
                ("workload", "prefixes", at, "name"),
            )


RULE = Rule("KV103", "prefix-without-version", "warning", "A prefix has no version.", _check)
