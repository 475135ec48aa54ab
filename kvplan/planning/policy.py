"""Policies that drop entries of the cache: what remains of a request, and who implements them.

All of them trade recall for memory: what is dropped can't be attended to any more, and which
later question needs it nobody knows. The figures are memory; quality is not modelled.

Only layers that keep every token lose entries. Windows, chunks and states have their own limit.

Sources:
- StreamingLLM (arXiv 2309.17453): the first tokens and the last ones at all times;
  mit-han-lab/streaming-llm, streaming_llm/kv_cache.py.
- H2O (arXiv 2306.14048): heavy hitters and recent tokens, together a budget at all times;
  FMInference/H2O, h2o_hf/utils_hh/modify_llama.py.
- SnapKV (arXiv 2404.14469): prompts of at least the budget are cut to it once, what is generated
  comes on top; FasterDecoding/SnapKV, snapkv/monkeypatch/snapkv_utils.py.
- kvpress: a share of the prompt is dropped once, after it was computed; NVIDIA/kvpress,
  kvpress/presses/scorer_press.py and base_press.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from kvplan.errors import UsageError, nearest, shown
from kvplan.models.caches import FullCache, LatentCache, LayerCache
from kvplan.models.formats import Dtype, KvFormat
from kvplan.models.spec import ModelSpec
from kvplan.units import parse_tokens

RECALL = (
    "It trades recall for memory: what it drops can't be attended to any more. Measure the quality"
    " on your own requests."
)


@dataclass(frozen=True, slots=True)
class Streaming:
    """The first ``sinks`` tokens and the last ``window``."""

    sinks: int
    window: int

    def kept(self, prompt: int, generated: int) -> int:
        """Entries that remain of a request's tokens in a layer that keeps them all."""
        return min(prompt + generated, self.sinks + self.window)


@dataclass(frozen=True, slots=True)
class HeavyHitters:
    """H2O: the tokens that were attended to most, and the last ones, together ``budget``."""

    budget: int

    def kept(self, prompt: int, generated: int) -> int:
        """Entries that remain of a request's tokens in a layer that keeps them all."""
        return min(prompt + generated, self.budget)


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """SnapKV: ``budget`` entries of the prompt; all that is generated is kept."""

    budget: int

    def kept(self, prompt: int, generated: int) -> int:
        """Entries that remain of a request's tokens in a layer that keeps them all."""
        return min(prompt, self.budget) + generated


@dataclass(frozen=True, slots=True)
class PromptRatio:
    """kvpress: a share ``ratio`` of the prompt is dropped; all that is generated is kept."""

    ratio: float

    def kept(self, prompt: int, generated: int) -> int:
        """Entries that remain of a request's tokens in a layer that keeps them all."""
        return max(1, int(prompt * (1 - self.ratio))) + generated


Rule: TypeAlias = Streaming | HeavyHitters | PromptBudget | PromptRatio


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy as it was asked for.

    Attributes:
        text: Its words.
        name: Its name.
        rule: What remains.
    """

    text: str
    name: Literal["streaming", "h2o", "snapkv", "kvpress"]
    rule: Rule


_NUMBER = re.compile(r"0(?:\.\d{1,6})?", re.ASCII)
_USUAL_SINKS = "4"
_SETTINGS = {
    "streaming": ("sinks", "window"),
    "h2o": ("budget",),
    "snapkv": ("budget",),
    "kvpress": ("ratio",),
}
_HINT = "Write streaming:sinks=4,window=4096, h2o:budget=2k, snapkv:budget=2k or kvpress:ratio=0.5."


def parse_policy(text: str) -> Policy:
    """Reads a policy: see the example; `Streaming` takes ``sinks`` and ``window``, H2O a budget.

    >>> parse_policy("snapkv:budget=2k").rule
    PromptBudget(budget=2048)

    Raises:
        UsageError: not such words.
    """
    name, _, rest = text.strip().partition(":")
    if name not in _SETTINGS:
        raise UsageError(
            f"There is no policy {shown(name)}.", hint=nearest(name, _SETTINGS) or _HINT
        )
    given = dict(_setting(name, part) for part in rest.split(","))
    match name:
        case "streaming":
            sinks, window = given.get("sinks", _USUAL_SINKS), given.get("window", "")
            return Policy(text, "streaming", Streaming(_tokens(sinks, least=0), _tokens(window)))
        case "h2o":
            return Policy(text, "h2o", HeavyHitters(_tokens(given.get("budget", ""))))
        case "snapkv":
            return Policy(text, "snapkv", PromptBudget(_tokens(given.get("budget", ""))))
    return Policy(text, "kvpress", PromptRatio(_ratio(given.get("ratio", ""))))


def _setting(policy: str, text: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or name not in _SETTINGS[policy]:
        raise UsageError(f"{shown(text)} is no setting of {policy}.", hint=_HINT)
    return name, value


def _tokens(text: str, least: int = 1) -> int:
    if not text:
        raise UsageError("The policy lacks a number of tokens.", hint=_HINT)
    count = int(text) if text == "0" else parse_tokens(text)
    if count < least:
        raise UsageError("The policy keeps at least one token.", hint=_HINT)
    return count


def _ratio(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise UsageError(
            f"{shown(text)} is no share from 0 to below 1.",
            hint="kvpress:ratio=0.5 drops half of the prompt.",
        )
    return float(text)


_KVPRESS = "the kvpress library, on transformers"
_BY = {
    "streaming": _KVPRESS + " (StreamingLLMPress, once after the prompt)",
    "h2o": _KVPRESS + " (ObservedAttentionPress, once after the prompt)",
    "snapkv": _KVPRESS + " (SnapKVPress)",
    "kvpress": _KVPRESS,
}


def implemented_by(policy: Policy) -> str:
    """What implements the policy, in words."""
    return _BY[policy.name]


def not_in(engine: str, policy: Policy) -> str | None:
    """Why an engine has no such policy; None where it can be had with it.

    vLLM: block tables are shared by all heads of a layer, so nothing is dropped head by head
    (https://github.com/vllm-project/vllm/issues/10646 and 12254); attention sinks of 2024 were
    not merged (https://github.com/vllm-project/vllm/pull/3515). TensorRT-LLM: StreamingLLM was
    taken out (https://github.com/NVIDIA/TensorRT-LLM/pull/14275). SGLang: asked for and closed
    (https://github.com/sgl-project/sglang/issues/2510).
    """
    if engine == "transformers":
        return None
    return (
        f"{engine} does not implement {policy.name}; that is {implemented_by(policy)}. All other"
        " figures are without it."
    )


def cache_bytes(
    cache: LayerCache, rule: Rule, size: tuple[int, int], kv: KvFormat, dtype: Dtype, *, tp: int
) -> int:
    """Bytes that a layer's cache holds on one rank of a request of (prompt, generated) tokens.

    Only what keeps every token loses entries.
    """
    prompt, generated = size
    whole = isinstance(cache, FullCache | LatentCache)
    tokens = rule.kept(prompt, generated) if whole else prompt + generated
    return cache.request_bytes(tokens, kv, dtype, tp=tp)


def request_bytes(
    model: ModelSpec, rule: Rule, size: tuple[int, int], kv: KvFormat, *, tp: int = 1
) -> int:
    """The same over all layers of a model, unpaged."""
    return sum(
        cache_bytes(cache, rule, size, kv, model.dtype, tp=tp)
        for layer in model.layers
        for cache in layer.caches
    )
