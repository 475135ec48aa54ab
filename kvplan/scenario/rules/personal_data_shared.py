"""KV102: data about a person in blocks that other people's requests reuse."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.scenario.rules.base import Hit, Rule, Shown


def _check(shown: Shown) -> Iterator[Hit]:
    for at, prefix in enumerate(shown.question.workload.prefixes):
        if prefix.personal_data and prefix.scope in ("global", "tenant"):
            yield Hit(
                f"The prefix {prefix.name!r} holds personal data and is shared by every user of"
                f" its scope ({prefix.scope}).",
                "Write scope: user or scope: session, or move the personal part behind the prefix.",
                ("workload", "prefixes", at, "personal_data"),
            )


RULE = Rule(
    "KV102",
    "personal-data-in-shared-prefix",
    "error",
    "A shared prefix holds personal data.",
    _check,
)
