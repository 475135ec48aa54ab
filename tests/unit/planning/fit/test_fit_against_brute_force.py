"""`fit` finds what trying every configuration with `kvplan.size` finds, on small spaces."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import kvplan
from kvplan.errors import KvplanError
from kvplan.fit_prices import PriceList
from kvplan.fit_result import FitPlan, FitResult
from kvplan.fitting import fit

LAYOUTS: dict[str, dict[str, dict[str, Any]]] = {
    "vllm": {"tensor": {}, "expert": {"enable_expert_parallel": True}},
    "sglang": {
        "tensor": {},
        "expert": {"ep_size": "tp"},
        "attention": {"ep_size": "tp", "enable_dp_attention": True, "dp_size": "tp"},
    },
    "tensorrt-llm": {
        "tensor": {},
        "expert": {"moe_expert_parallel_size": "tp"},
        "attention": {"moe_expert_parallel_size": "tp", "enable_attention_dp": True},
    },
    "llama.cpp": {"tensor": {}},
}
EXPERTS = {"Qwen/Qwen3-30B-A3B", "openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V3"}


@dataclass(frozen=True)
class Small:
    """A small space."""

    model: str
    gpus: tuple[str, ...]
    context: int
    concurrency: int
    engines: tuple[str, ...] = ("vllm",)
    weights: tuple[str, ...] = ("auto",)
    kv_dtypes: tuple[str, ...] = ("auto", "fp8")
    tp: tuple[int, ...] = (1, 2)
    pp: tuple[int, ...] = (1, 2)
    most: int = 8
    machines: dict[str, tuple[str, int, float]] = field(default_factory=dict)
    prices: dict[str, float] = field(default_factory=dict)


LLAMA, QWEN, SMALL = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-8B"
BIG = "meta-llama/Llama-3.1-70B-Instruct"
H100, L40S, L4, A100 = "H100-SXM-80GB", "L40S-48GB", "L4-24GB", "A100-SXM-40GB"
SPACES = [
    Small(LLAMA, (H100, L40S), 8192, 40),
    Small(LLAMA, (L4,), 8192, 40, weights=("auto", "fp8", "awq")),
    Small(LLAMA, (L4, A100), 32768, 9, tp=(1, 2, 4), pp=(1,), prices={L4: 0.8, A100: 2.7}),
    Small(LLAMA, (H100,), 131072, 3, prices={H100: 2.0}, pp=(1, 3)),
    Small(
        LLAMA, (L40S, L4), 4096, 200, most=6, machines={L40S: ("four", 4, 6.0), L4: ("one", 1, 0.7)}
    ),
    Small(LLAMA, (L4,), 8192, 100, most=12, machines={L4: ("eight", 8, 9.0)}),
    Small(SMALL, (L4, L40S), 40960, 7, engines=("vllm", "sglang"), kv_dtypes=("auto",)),
    Small(SMALL, (L40S,), 16384, 60, engines=("sglang",), kv_dtypes=("auto", "fp8_e4m3")),
    Small(SMALL, (L4,), 16384, 10, engines=("tensorrt-llm",), kv_dtypes=("auto", "fp8"), most=6),
    Small(SMALL, (L4,), 8192, 5, engines=("llama.cpp",), kv_dtypes=("auto", "q8_0"), tp=(1,)),
    Small(BIG, (H100, L40S), 32768, 20, weights=("auto", "awq"), tp=(2, 4, 8), pp=(1,), most=16),
    Small(BIG, (L4,), 32768, 5, tp=(4, 8), pp=(1, 2)),
    Small(BIG, (H100,), 32768, 500, tp=(8,), pp=(1,), most=16),
    Small(QWEN, (L40S, H100), 32768, 30, tp=(1, 2)),
    Small(QWEN, (L4,), 16384, 12, tp=(1, 2, 4), pp=(1,), kv_dtypes=("auto",), most=12),
    Small(QWEN, (L40S,), 32768, 40, engines=("sglang",), kv_dtypes=("auto",), most=6),
    Small(QWEN, (L40S,), 32768, 40, engines=("tensorrt-llm",), kv_dtypes=("auto",), most=6),
    Small("openai/gpt-oss-20b", (L4, L40S), 16384, 25, tp=(1, 2), pp=(1,), prices={L4: 1, L40S: 2}),
    Small("openai/gpt-oss-20b", (L4,), 131072, 4, weights=("auto", "fp8"), most=4),
    Small("deepseek-ai/DeepSeek-V3", ("H200-SXM-141GB",), 65536, 8, tp=(1, 8), pp=(1, 2), most=20),
]


def prices_of(space: Small) -> PriceList | None:
    if not space.prices and not space.machines:
        return None
    machines = [
        {"name": name, "gpu": gpu, "gpus": count, "per_hour": price}
        for gpu, (name, count, price) in space.machines.items()
    ]
    return PriceList.model_validate(
        {
            "schema": "kvplan.prices/1",
            "date": "2026-11-01",
            "source": "a test",
            "gpus": space.prices,
            "instances": machines,
        }
    )


def found_by_fit(space: Small) -> FitResult:
    return fit(
        space.model,
        context=space.context,
        concurrency=space.concurrency,
        gpus=space.gpus,
        engines=space.engines,
        weights=space.weights,
        kv_dtypes=space.kv_dtypes,
        tp=space.tp,
        pp=space.pp,
        max_gpus=space.most,
        prices=prices_of(space),
        offline=True,
    )


Key = tuple[str, str, str, str, str, int, int, int, int, float | None]


def bill(space: Small, gpu: str, tp: int, groups: int) -> tuple[float | None, int] | None:
    """Price and GPUs of what is bought; None: it can't be."""
    if gpu in space.machines:
        _, count, price = space.machines[gpu]
        if tp > count:
            return None
        number = math.ceil(groups / (count // tp))
        return (number * price, number * count) if number * count <= space.most else None
    price = space.prices.get(gpu, 0.0)
    return (price * tp * groups if price else None), tp * groups


def found_by_force(space: Small) -> Iterator[Key]:
    for gpu, engine, weights, kv, tp, pp in itertools.product(
        space.gpus, space.engines, space.weights, space.kv_dtypes, space.tp, space.pp
    ):
        layouts = LAYOUTS[engine] if space.model in EXPERTS else {"tensor": {}}
        for layout, options in layouts.items():
            if layout != "tensor" and tp == 1 and engine != "vllm":
                continue
            filled = {name: tp if value == "tp" else value for name, value in options.items()}
            for dp in range(1, space.most // (tp * pp) + 1):
                try:
                    plan = kvplan.size(
                        space.model, gpu, engine=engine, tp=tp, pp=pp, dp=dp, weights=weights,
                        kv_dtype=kv, context=space.context, concurrency=space.concurrency,
                        engine_options=filled, offline=True, advice=False,
                    )  # fmt: skip
                except KvplanError:
                    continue
                if plan.verdict == "fits" and plan.capacity is not None:
                    paid = bill(space, gpu, tp, pp * dp)
                    if paid is not None:
                        held = plan.capacity.requests
                        yield (gpu, engine, weights, kv, layout, tp, pp, dp, held, paid[0])
                    break


def key_of(plan: FitPlan) -> Key:
    parallel = plan.parallelism
    return (
        plan.gpu, plan.engine, plan.weights, plan.kv_dtype, plan.layout,
        parallel.tp, parallel.pp, parallel.dp, plan.held, plan.per_hour,
    )  # fmt: skip


def figures(plan: FitPlan) -> tuple[float, ...]:
    """Price, GPUs, requests, time, machines a replica and changed formats: the less the better."""
    assert plan.speed is not None
    price = math.inf if plan.per_hour is None else plan.per_hour
    gpus = plan.bought.gpus if plan.bought else plan.gpus
    changed = (plan.weights != "auto", plan.kv_dtype != "auto")
    return price, gpus, -plan.held, plan.speed.tpot_s, plan.machines, *changed


def no_worse(one: FitPlan, other: FitPlan) -> bool:
    """Whether one is nowhere worse than another."""
    return all(a <= b for a, b in zip(figures(one), figures(other), strict=True))


@pytest.mark.parametrize("space", SPACES, ids=lambda s: f"{s.model}-{'+'.join(s.gpus)}-{s.context}")
def test_it_finds_what_trying_everything_finds(space: Small) -> None:
    found = found_by_fit(space)
    rounded = {(*key[:-1], key[-1] and round(key[-1], 6)) for key in found_by_force(space)}
    assert {key_of(plan) for plan in found.plans} == rounded
    order = [
        (
            math.inf if plan.per_hour is None else plan.per_hour,
            plan.bought.gpus if plan.bought else plan.gpus,
            -plan.held,
        )
        for plan in found.plans
    ]
    assert order == sorted(order)
    for plan in found.plans:
        others = [one for one in found.plans if one is not plan and no_worse(one, plan)]
        if plan.frontier:
            assert all(figures(one) == figures(plan) and not one.frontier for one in others)
        else:
            assert any(one.frontier for one in others)


def test_the_spaces_have_winners_and_losers_of_every_kind() -> None:
    reasons: set[str] = set()
    winners = 0
    for space in SPACES[:14]:
        found = found_by_fit(space)
        winners += len(found.plans)
        reasons |= {loser.why for loser in found.losers}
    assert winners > 50
    assert {"dominated", "holds_too_few", "request", "weights", "not_sold"} <= reasons
