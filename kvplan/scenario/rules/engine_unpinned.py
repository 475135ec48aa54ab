"""KV111: whichever release is newest decides, and defaults move between releases."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.scenario.rules.base import Hit, Rule, Shown


def _check(shown: Shown) -> Iterator[Hit]:
    question = shown.question
    if "==" in question.engine or question.pinned_by_command:
        return
    version = f"{shown.engine}=={shown.plan.engine.version}" if shown.plan else "vllm==0.33.0"
    yield Hit(
        f"The engine is not pinned ({question.engine}): its newest release is planned for.",
        f"Write engine: {version}.",
        ("engine",),
    )


RULE = Rule("KV111", "engine-unpinned", "warning", "The engine is not pinned.", _check)
