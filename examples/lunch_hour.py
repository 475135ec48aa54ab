"""A 70B model fits on load and runs out at lunch: 32k context, 50 users.

    python examples/lunch_hour.py

Five plans, each changing one thing. Runs offline, from the bundled specs.
"""

from __future__ import annotations

from typing import Any

import kvplan
from kvplan.plan import Plan
from kvplan.units import format_bytes
from kvplan.workloads.prefixes import share_prefix

MODEL, GPU = "meta-llama/Llama-3.1-70B-Instruct", "H100-SXM-80GB"
CONTEXT, USERS = 32 * 1024, 50
# Of each request's 32k tokens, the first 12k are the same instructions and documents for all.
PREFIX = 12 * 1024


def plan(**changes: Any) -> Plan:
    """A plan for 4 GPUs and 32k tokens a request, with some arguments changed."""
    arguments: dict[str, Any] = {"tp": 4, "context": CONTEXT, "offline": True, "advice": False}
    return kvplan.size(MODEL, GPU, **(arguments | changes))


def held(planned: Plan) -> int:
    """Whole requests that the deployment holds."""
    if planned.capacity is None:
        raise SystemExit(planned.reasons[0].message)
    return planned.capacity.requests


def report(step: str, requests: int, note: str) -> None:
    """Prints one line of the story."""
    answer = "holds" if requests >= USERS else "FAILS"
    print(f"{step:<34} {answer} {requests:>4} of {USERS} users   {note}")


def contiguous(paged: Plan) -> int:
    """Requests if each reserved the model's whole context up front, as engines once did."""
    if paged.kv is None:
        return 0
    reserved = plan(context=None).kv
    return paged.kv.budget_bytes // reserved.bytes_per_request if reserved else 0


def with_prefix(planned: Plan, prefix_tokens: int) -> int:
    """Requests if the first ``prefix_tokens`` of all of them are the same and held once."""
    capacity = planned.capacity
    if capacity is None:
        return 0
    prefix = share_prefix(
        request_blocks=capacity.groups[0].blocks_per_request,
        block_size=capacity.block_size,
        prefix_tokens=prefix_tokens,
    )
    # One block is vLLM's null block, which holds nobody.
    return prefix.requests_in(capacity.blocks - 1)


def main() -> None:
    """Tells the story."""
    morning = plan(context=1024, concurrency=USERS)
    report("Morning: 1k tokens a request", held(morning), "it loads, it answers, all is well")

    lunch = plan(concurrency=USERS)
    report("Lunch: 32k, reserved in one piece", contiguous(lunch), "every request owns 128k")
    note = f"a request holds {format_bytes(lunch.kv.bytes_per_request) if lunch.kv else '?'} a GPU"
    report("+ paging (what vLLM does)", held(lunch), note)

    fp8 = plan(kv_dtype="fp8")
    report("+ FP8 KV cache", held(fp8), "half the bytes a token")
    shared = with_prefix(fp8, PREFIX)
    report("+ the 12k prefix shared", shared, "held once instead of once a user")

    eight = plan(kv_dtype="fp8", tp=8)
    report("FP8 KV cache on 8 GPUs", held(eight), "twice the GPUs, weights split in eight")
    report("+ the 12k prefix shared", with_prefix(eight, PREFIX), "headroom for a bad day")


if __name__ == "__main__":
    main()
