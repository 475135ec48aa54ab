"""KV112: the longest request reserved for everybody, where paging would hold what is used."""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.scenario.rules.base import Hit, Rule, Shown

_STATIC = frozenset(("StaticCache", "static", "SlidingWindowCache", "HybridCache"))


def _check(shown: Shown) -> Iterator[Hit]:
    question, options = shown.question, shown.question.options
    several = (question.concurrency or 1) > 1
    if shown.engine == "transformers" and options.get("cache") in _STATIC and several:
        yield Hit(
            f"{options['cache']} reserves the longest request for each of"
            f" {question.concurrency:,} sequences, used or not.",
            "Serve with a paging engine (engine: vllm), or use DynamicCache.",
            ("options", "cache"),
        )
    if shown.engine == "llama.cpp" and options.get("kv_unified") is False and several:
        yield Hit(
            "Without a unified cache each slot reserves an equal part of n_ctx, used or not.",
            "Write options: {kv_unified: true}.",
            ("options", "kv_unified"),
        )


RULE = Rule(
    "KV112",
    "contiguous-reservation",
    "warning",
    "Contiguous reservation where paging is available.",
    _check,
)
