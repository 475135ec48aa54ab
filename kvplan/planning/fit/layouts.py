"""How an engine may spread a model of experts over its ranks, and what each way asks it for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kvplan.models.spec import ModelSpec

# vLLM splits experts over the ranks of all replicas (docs/serving/data_parallel_deployment.md).
EXPERTS_ACROSS_REPLICAS = ("vllm",)


@dataclass(frozen=True, slots=True)
class Layout:
    """One way.

    Attributes:
        name: ``tensor``: every rank has a part of everything. ``expert``: experts whole on their
            ranks. ``attention``: besides, each rank's attention serves requests of its own.
        options: The engine's options for it at a tensor parallel size.
        splits_attention: Whether ranks share each request.
    """

    name: str
    options: Callable[[int], Mapping[str, Any]]
    splits_attention: bool = True


def _nothing(tp: int) -> Mapping[str, Any]:  # noqa: ARG001 - the same for every size
    return {}


PLAIN = Layout("tensor", _nothing)
_OF_EXPERTS: Mapping[str, tuple[Layout, ...]] = {
    "vllm": (Layout("expert", lambda _: {"enable_expert_parallel": True}),),
    "sglang": (
        Layout("expert", lambda tp: {"ep_size": tp}),
        Layout(
            "attention",
            lambda tp: {"ep_size": tp, "enable_dp_attention": True, "dp_size": tp},
            splits_attention=False,
        ),
    ),
    "tensorrt-llm": (
        Layout("expert", lambda tp: {"moe_expert_parallel_size": tp}),
        Layout(
            "attention",
            lambda tp: {"moe_expert_parallel_size": tp, "enable_attention_dp": True},
            splits_attention=False,
        ),
    ),
}


def layouts_of(engine: str, model: ModelSpec) -> tuple[Layout, ...]:
    """The plain one, and for a model of experts the engine's others."""
    return (PLAIN, *_OF_EXPERTS.get(engine, ())) if model.experts else (PLAIN,)


def is_distinct(layout: Layout, tp: int, engine: str) -> bool:
    """Whether it differs from the plain one at that size.

    One rank has nothing to spread, but where replicas share their experts.
    """
    return layout is PLAIN or tp > 1 or engine in EXPERTS_ACROSS_REPLICAS
