"""Plans made by hand, one for each thing a report has to show.

The figures are those of a 70B model with grouped-query attention on 80 GB cards; they are
consistent (the ledger sums to the card) but made up: no test may take them for facts.
"""

from __future__ import annotations

from typing import Any

from kvplan.ledger import Confidence, LedgerLine, Section, ledger_line, total
from kvplan.plan import (
    Advice,
    CacheGroup,
    Capacity,
    EnginePart,
    Gain,
    GpuPart,
    KvPart,
    ModelPart,
    Parallelism,
    Plan,
    Reason,
    Workload,
)
from kvplan.units import GIB, MIB

H100_BYTES = 85_017_493_504
_HIDDEN, _WIDE, _VOCAB, _LAYERS, _TP = 8192, 28672, 128256, 80, 4


def _line(
    name: str,
    section: Section,
    formula: str,
    inputs: dict[str, int | float],
    *,
    source: str = "made up for the tests",
    confidence: Confidence = "exact",
    spread: float = 0.0,
) -> LedgerLine:
    point = ledger_line(name, section, formula, inputs, source=source, confidence=confidence)
    low, high = int(point.bytes * (1 - spread)), int(point.bytes * (1 + spread))
    return point.model_copy(update={"low": min(low, high), "high": max(low, high)})


def _weight_lines() -> tuple[LedgerLine, ...]:
    source = "config.json; shapes as transformers' LlamaForCausalLM states them"
    shared: dict[str, int | float] = {
        "layers": _LAYERS, "hidden": _HIDDEN, "tp": _TP, "element_bytes": 2,
    }  # fmt: skip
    return (
        _line(
            "weights.embedding", "budget", "vocab * hidden // tp * element_bytes",
            {"vocab": _VOCAB, "hidden": _HIDDEN, "tp": _TP, "element_bytes": 2}, source=source,
        ),
        _line(
            "weights.attention", "budget",
            "layers * (2 * hidden * hidden + 2 * hidden * kv_heads * head_dim) // tp"
            " * element_bytes",
            {**shared, "kv_heads": 8, "head_dim": 128}, source=source,
        ),
        _line(
            "weights.mlp", "budget",
            "layers * 3 * hidden * intermediate // tp * element_bytes",
            {**shared, "intermediate": _WIDE}, source=source,
        ),
        _line(
            "weights.norms", "budget", "(2 * layers + 1) * hidden * element_bytes",
            {"layers": _LAYERS, "hidden": _HIDDEN, "element_bytes": 2}, source=source,
        ),
        _line(
            "weights.lm_head", "budget", "vocab * hidden // tp * element_bytes",
            {"vocab": _VOCAB, "hidden": _HIDDEN, "tp": _TP, "element_bytes": 2}, source=source,
        ),
    )  # fmt: skip


def _runtime_lines() -> tuple[LedgerLine, ...]:
    source = "fitted to measured starts of vLLM 0.20 to 0.33 (n = 38)"
    return (
        _line(
            "runtime.activations", "budget",
            "ceil(logit_bytes * requests * vocab + tokens * (6 * intermediate / tp + 6 * hidden))",
            {
                "logit_bytes": 14, "requests": 1024, "vocab": _VOCAB, "tokens": 8192,
                "intermediate": _WIDE, "tp": _TP, "hidden": _HIDDEN,
            },
            source=source, confidence="calibrated", spread=0.1,
        ),
        _line(
            "runtime.non_torch", "budget", "non_torch", {"non_torch": 2_254_857_830},
            source=source, confidence="calibrated", spread=0.15,
        ),
        _line(
            "runtime.cuda_graphs", "budget", "graphs", {"graphs": 966_367_641},
            source=source, confidence="calibrated", spread=0.6,
        ),
    )  # fmt: skip


def _card_lines(card: int, utilization: float) -> tuple[LedgerLine, ...]:
    """The whole ledger of one card whose budget is what weights and runtime leave."""
    spent = (*_weight_lines(), *_runtime_lines())
    inputs: dict[str, int | float] = {
        "card": card, "utilization": utilization, "spent": total(spent), "block": 1_310_720,
    }  # fmt: skip
    pool = _line(
        "kv.pool", "pool", "(ceil(card * utilization) - spent) // block * block", inputs,
        source="vLLM 0.33.0, gpu_worker.py: requested memory less what profiling found",
        confidence="calibrated", spread=0.02,
    )  # fmt: skip
    rest = _line(
        "kv.rounding", "free", "(ceil(card * utilization) - spent) - (ceil(card * utilization)"
        " - spent) // block * block", inputs,
    )  # fmt: skip
    context = _line(
        "outside.cuda_context", "outside", "context", {"context": 525 * MIB},
        source="CUDA context and NCCL, made before the first snapshot", confidence="assumed",
        spread=0.3,
    )  # fmt: skip
    left = _line(
        "unused", "free", "card - ceil(card * utilization) - context",
        {"card": card, "utilization": utilization, "context": context.bytes},
    )  # fmt: skip
    return (*spent, pool, context, rest, left)


def _capacity(pool: int, *, dp: int, groups: tuple[CacheGroup, ...]) -> Capacity:
    blocks = pool // 1_310_720
    held = sum(group.blocks_per_request for group in groups)
    return Capacity(
        blocks=blocks,
        block_size=16,
        bytes_per_block=1_310_720,
        groups=groups,
        tokens=blocks * 16,
        tokens_low=blocks * 16 * 98 // 100,
        tokens_high=blocks * 16 * 102 // 100,
        max_concurrency=blocks / held,
        max_context=131_072,
        requests=(blocks - 1) // held * dp,
    )


def _group(context: int) -> CacheGroup:
    return CacheGroup(
        kind="full", layers=80, page_bytes=16_384, block_size=16,
        blocks_per_request=-(-context // 16), padding_bytes=0,
    )  # fmt: skip


MODEL = ModelPart(
    id="meta-llama/Llama-3.1-70B-Instruct",
    revision="1605565b47bb9346c5515c34102e054115b4f98b",
    architecture="LlamaForCausalLM",
    source="model_specs/meta-llama--Llama-3.1-70B-Instruct.yaml (offline)",
    parameters_total=70_553_706_496,
    parameters_active=70_553_706_496,
)
OPTIONS: dict[str, Any] = {
    "gpu_memory_utilization": 0.92, "max_num_seqs": 1024, "max_num_batched_tokens": 8192,
    "block_size": 16, "enforce_eager": False, "enable_prefix_caching": True,
}  # fmt: skip
ENGINE = EnginePart(name="vllm", version="0.33.0", options=OPTIONS, assumed=tuple(OPTIONS))
ADVICE = (
    Advice(
        action="Store the KV cache in 8 bits",
        change={"kv_dtype": "fp8"},
        gain=Gain(requests=14, tokens=448_960),
        cost="A little accuracy; measure it on your own prompts.",
        note="Halves the bytes of every token.",
    ),
    Advice(
        action="Use 8 GPUs instead of 4",
        change={"tp": 8},
        gain=Gain(requests=38, tokens=1_254_400),
        cost="Four more H100-SXM-80GB.",
        note="Weights a GPU halve as well.",
    ),
    Advice(
        action="Let the engine use more of the card",
        change={"engine_options": {"gpu_memory_utilization": 0.95}},
        gain=Gain(requests=0, tokens=31_120),
        cost="Less room for a spike outside the budget.",
        note="",
    ),
)


def _plan(
    *, concurrency: int | None, verdict: str, dp: int = 1, reasons: tuple[Reason, ...] = (),
    advice: tuple[Advice, ...] = (), context: int = 32_768,
) -> Plan:  # fmt: skip
    ledger = _card_lines(H100_BYTES, 0.92)
    pool = total(ledger, "pool")
    capacity = _capacity(pool, dp=dp, groups=(_group(context),))
    return Plan(
        verdict=verdict,  # type: ignore[arg-type]
        reasons=reasons,
        model=MODEL,
        gpu=GpuPart(
            id="H100-SXM-80GB", count=4 * dp, total_bytes=H100_BYTES,
            source="torch's own total in 12 measured starts",
        ),
        engine=ENGINE,
        parallelism=Parallelism(tp=4, dp=dp),
        workload=Workload(context=context, concurrency=concurrency),
        ledger=ledger,
        kv=KvPart(
            dtype="bfloat16", bytes_per_token=81_920.0,
            bytes_per_request=-(-context // 16) * 1_310_720,
            budget_bytes=pool + 911_344, budget_low=pool * 98 // 100, budget_high=pool * 102 // 100,
            allocated_bytes=pool,
        ),
        capacity=capacity,
        advice=advice,
    )  # fmt: skip


def fits() -> Plan:
    """A 70B on four cards, with room for what is asked."""
    return _plan(concurrency=10, verdict="fits", advice=ADVICE[:2])


def fits_unasked() -> Plan:
    """The same, nothing asked: capacity only."""
    return _plan(concurrency=None, verdict="fits")


def does_not_fit() -> Plan:
    """The same at lunch: 50 requests."""
    reason = Reason(
        code="kv_cache",
        message="50 requests of 32,768 tokens need 125.00 GiB of KV cache a GPU; 34.57 are left.",
        hint="Shorten the context, store the cache in fewer bits, or add GPUs.",
    )
    return _plan(concurrency=50, verdict="does_not_fit", reasons=(reason,), advice=ADVICE)


def two_replicas() -> Plan:
    """Data parallel: figures for a replica and for the deployment differ."""
    return _plan(concurrency=20, verdict="fits", dp=2)


def one_too_long() -> Plan:
    """Not even one request of that context."""
    plan = _plan(concurrency=None, verdict="does_not_fit", context=1_048_576)
    capacity = plan.capacity.model_copy(  # type: ignore[union-attr]
        update={"requests": 0, "max_context": 443_904}
    )
    reason = Reason(
        code="context_above_maximum",
        message="The model's own maximum is 131,072 tokens.",
        hint="Beyond it the positions must be scaled (RoPE scaling), which the model was not"
        " trained for.",
    )
    return plan.model_copy(update={"capacity": capacity, "reasons": (reason,)})


def too_big() -> Plan:
    """The weights alone are more than the card."""
    card = 22 * GIB
    spent = (*_weight_lines(), *_runtime_lines())
    lack = _line("lack", "free", "card - spent", {"card": card, "spent": total(spent)})
    plan = _plan(concurrency=8, verdict="does_not_fit")
    gpu = GpuPart(id="L4-24GB", count=4, total_bytes=card, source="measured starts")
    kv = plan.kv.model_copy(  # type: ignore[union-attr]
        update={"budget_bytes": 0, "budget_low": 0, "budget_high": 0, "allocated_bytes": 0}
    )
    capacity = plan.capacity.model_copy(  # type: ignore[union-attr]
        update={
            "blocks": 0, "tokens": 0, "tokens_low": 0, "tokens_high": 0, "max_concurrency": 0.0,
            "max_context": 0, "requests": 0,
        }
    )  # fmt: skip
    return plan.model_copy(
        update={"gpu": gpu, "kv": kv, "capacity": capacity, "ledger": (*spent, lack)}
    )


def refused() -> Plan:
    """The engine would not start, whatever the memory."""
    reason = Reason(
        code="engine_refuses",
        message="vLLM would not start: 64 attention heads can't be divided among 3 GPUs (TP 3).",
        hint="Use a tensor-parallel size that divides 64: 1, 2, 4 or 8.",
    )
    plan = _plan(concurrency=10, verdict="refused", reasons=(reason,))
    return plan.model_copy(
        update={
            "ledger": (), "kv": None, "capacity": None,
            "gpu": plan.gpu.model_copy(update={"count": 3}), "parallelism": Parallelism(tp=3),
        }
    )  # fmt: skip


def assumed() -> Plan:
    """Window and full layers in groups; a card of which only the nominal size is known."""
    plan = _plan(concurrency=4, verdict="fits")
    ledger = tuple(
        line.model_copy(update={"confidence": "assumed", "low": line.bytes // 2,
                                "high": line.bytes * 3 // 2})
        if line.section != "budget" else line
        for line in plan.ledger
    )  # fmt: skip
    groups = (
        CacheGroup(kind="full", layers=10, page_bytes=65_536, block_size=16,
                   blocks_per_request=2048, padding_bytes=0),
        CacheGroup(kind="window 1024", layers=9, page_bytes=65_536, block_size=16,
                   blocks_per_request=1089, padding_bytes=65_536),
    )  # fmt: skip
    reasons = (
        Reason(
            code="approximate",
            message="The groups of this architecture are counted approximately in this version.",
        ),
        Reason(
            code="nominal_memory",
            message="No source states what torch sees of this card; 98.5 % of the driver's figure"
            " is taken.",
            hint="Run `kvplan gpus detect` on the machine.",
        ),
    )
    capacity = plan.capacity.model_copy(update={"groups": groups})  # type: ignore[union-attr]
    return plan.model_copy(update={"ledger": ledger, "capacity": capacity, "reasons": reasons})


def kv_budget() -> Plan:
    """The bytes of the cache were given: no ledger of the card, no intervals."""
    budget = 40 * GIB + 512 * MIB
    inputs: dict[str, int | float] = {"kv_budget": budget, "block": 1_310_720}
    pool = _line("kv.pool", "pool", "kv_budget // block * block", inputs, source="--kv-budget")
    rest = _line("kv.rounding", "free", "kv_budget - kv_budget // block * block", inputs)
    plan = _plan(concurrency=10, verdict="fits")
    kv = plan.kv.model_copy(  # type: ignore[union-attr]
        update={
            "budget_bytes": budget, "budget_low": None, "budget_high": None,
            "allocated_bytes": pool.bytes,
        }
    )  # fmt: skip
    capacity = _capacity(pool.bytes, dp=1, groups=(_group(32_768),))
    capacity = capacity.model_copy(update={"tokens_low": None, "tokens_high": None})
    return plan.model_copy(update={"ledger": (pool, rest), "kv": kv, "capacity": capacity})


SAMPLES = {
    "fits": fits,
    "fits_unasked": fits_unasked,
    "does_not_fit": does_not_fit,
    "two_replicas": two_replicas,
    "one_too_long": one_too_long,
    "too_big": too_big,
    "refused": refused,
    "assumed": assumed,
    "kv_budget": kv_budget,
}
