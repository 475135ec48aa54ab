"""EngineComparison: plans of several engines for one model, GPU and load, side by side.

The JSON form (`kvplan.engines/1`) is this, dumped.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from kvplan._version import __version__
from kvplan.plan import Parallelism, Plan, Verdict, Workload


class _Part(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")


class Spent(_Part):
    """Where the bytes of one GPU go; they sum to ``total``.

    Attributes:
        weights: The model's.
        runtime: What else the engine takes before the cache.
        cache: The KV cache and recurrent states.
        outside: What the engine's budget leaves alone.
        unused: What is left of the budget.
    """

    total: int
    weights: int
    runtime: int
    cache: int
    outside: int
    unused: int


class MemorySetting(_Part):
    """The option that says how much an engine may take.

    Attributes:
        meaning: What its value is a share of, or an amount of.
    """

    name: str
    value: Any
    meaning: str


class Compared(_Part):
    """One engine.

    Attributes:
        spent: None where the engine refuses.
        setting: None where an engine has no such option.
        why: What sets it apart from the engine that holds most, the largest effect first; the
            reason of a refusal.
        plan: None where the engine cannot even be asked (an argument it does not know).
    """

    engine: str
    version: str
    verdict: Verdict
    spent: Spent | None
    setting: MemorySetting | None
    why: tuple[str, ...]
    plan: Plan | None


class EngineComparison(_Part):
    """What each engine makes of the same model, GPU and load.

    Attributes:
        best: The engine that holds most requests (then most tokens), or None if none holds any.
        engines: In the order in which they were asked.

    Example:
        >>> from kvplan import compare
        >>> both = compare(
        ...     "Qwen/Qwen3-8B", "H100", engines=["vllm", "sglang"], context=8192, offline=True
        ... )
        >>> [one.engine for one in both.engines], both.best in ("vllm", "sglang")
        (['vllm', 'sglang'], True)
    """

    schema_: Literal["kvplan.engines/1"] = Field("kvplan.engines/1", alias="schema")
    kvplan_version: str = __version__
    model: str
    gpu: str
    parallelism: Parallelism
    workload: Workload
    best: str | None
    engines: tuple[Compared, ...]

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True
    )
