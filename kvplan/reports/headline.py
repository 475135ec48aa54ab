"""The verdict in one sentence that needs no knowledge of caches."""

from __future__ import annotations

from kvplan.ledger import total
from kvplan.plan import Capacity, KvPart, Plan, Reason
from kvplan.reports.device_rows import hardware
from kvplan.reports.figures import counted, parameters
from kvplan.units import format_bytes, format_count


def headline(plan: Plan) -> str:
    """The verdict first, then what it rests on."""
    capacity = plan.capacity
    if plan.verdict == "refused" or capacity is None:
        return f"{_VERDICTS[plan.verdict]}: {_first_reason(plan)}"
    if plan.verdict == "fits":
        return f"Fits: {_holding(plan, capacity)}{_wish(plan)}."
    if capacity.requests == 0:
        return f"Does not fit: {_not_even_one(plan, capacity)}"
    if capacity.requests >= (plan.workload.concurrency or 1):
        return f"Does not fit: {_first_reason(plan)}"
    return f"Does not fit: {_holding(plan, capacity)}{_shortage(plan)}"


def subject(plan: Plan) -> str:
    """What was planned: model, engine, parallel sizes, cache format."""
    sizes = plan.parallelism.model_dump()
    parts = [
        plan.model.id,
        parameters(plan.model.parameters_total),
        f"{plan.engine.name} {plan.engine.version}",
        " ".join(f"{name.upper()} {size}" for name, size in sizes.items() if size > 1),
        f"KV cache in {plan.kv.dtype}" if plan.kv else "",
    ]
    return " · ".join(part for part in parts if part)


def requests_per_replica(plan: Plan) -> int | None:
    """Requests asked of one replica, the fullest one; None if nothing was asked."""
    if plan.workload.concurrency is None:
        return None
    return -(-plan.workload.concurrency // plan.parallelism.dp)


def limited_by_requests(plan: Plan) -> bool:
    """Whether the engine's own limit on requests binds although the memory would do."""
    asked = requests_per_replica(plan)
    if asked is None or plan.kv is None or plan.capacity is None:
        return False
    # An engine may keep one block for itself.
    usable = plan.kv.allocated_bytes - plan.capacity.bytes_per_block
    return asked * plan.kv.bytes_per_request <= usable


def taken_up(plan: Plan) -> tuple[Reason, ...]:
    """The reasons whose sentence is in the headline already."""
    said = headline(plan)
    return tuple(reason for reason in plan.reasons if reason.message in said)


def given_batch(plan: Plan) -> int:
    """Requests that run as one piece because the user said so; 1 where they come and go."""
    batch = plan.engine.options.get("batch_size")
    return batch if isinstance(batch, int) and "batch_size" not in plan.engine.assumed else 1


def context_text(plan: Plan) -> str:
    """The length that was planned for: ``32,768 tokens``."""
    context = plan.workload.context
    return "an unknown number of tokens" if context is None else counted(context, "token")


_VERDICTS = {"fits": "Fits", "does_not_fit": "Does not fit", "refused": "Refused"}


def _first_reason(plan: Plan) -> str:
    return plan.reasons[0].message if plan.reasons else "no reason was given."


def _holding(plan: Plan, capacity: Capacity) -> str:
    verb = "holds" if plan.gpu.count == 1 else "hold"
    requests = counted(capacity.requests, "request")
    held = f"{hardware(plan)} {verb} {requests} of {context_text(plan)} at once"
    return held + _start(plan, capacity)


def _start(plan: Plan, capacity: Capacity) -> str:
    """What holds so many, where the engine is started with slots and fewer were planned."""
    slots = plan.engine.options.get("n_seq_max")
    needed = capacity.requests // plan.parallelism.dp
    if not isinstance(slots, int) or needed <= slots:
        return ""
    return f" if started with n_seq_max {needed} and n_ctx {format_count(capacity.tokens)}"


def _wish(plan: Plan) -> str:
    asked = plan.workload.concurrency
    return "" if asked is None else f"; you asked for {format_count(asked)}"


def _shortage(plan: Plan) -> str:
    asked = format_count(plan.workload.concurrency or 1)
    limit = "KV cache runs out first."
    slots = plan.reasons and plan.reasons[0].code in ("slots_full", "too_many_sequences")
    if limited_by_requests(plan) or slots:
        limit = f"The engine's own limit on requests{_limit_option(plan)} binds, not memory."
    elif plan.reasons and plan.reasons[0].code in ("max_num_seqs", "batch_size"):
        full = any(reason.code == "kv_cache_full" for reason in plan.reasons)
        order = "binds first, then memory" if full else "binds, not memory"
        limit = f"The engine's own limit on requests{_limit_option(plan)} {order}."
    return f"; {asked} were asked for. {limit}"


def _limit_option(plan: Plan) -> str:
    for name in (
        "max_num_seqs",
        "max_running_requests",
        "max_batch_size",
        "num_parallel",
        "n_seq_max",
        "batch_size",
    ):
        if name in plan.engine.options:
            return f" ({name} {plan.engine.options[name]})"
    return ""


def _not_even_one(plan: Plan, capacity: Capacity) -> str:
    if " + " in plan.gpu.id and plan.reasons and plan.reasons[0].code == "device_full":
        return _first_reason(plan)  # which of unlike devices it is
    if capacity.max_context <= 0:
        return f"{hardware(plan)} {_overfull(plan, capacity)}"
    if capacity.max_context >= (plan.workload.context or 1):
        return _first_reason(plan)  # there is room, and yet the engine does not come up
    longest = counted(capacity.max_context, "token")
    slots = plan.engine.options.get("n_seq_max")
    if isinstance(slots, int) and slots > 1:
        return (
            f"{hardware(plan)} cannot hold {slots} slots of {context_text(plan)}; the longest"
            f" slots that fit have {longest}. KV cache runs out first."
        )
    batch = given_batch(plan)
    held = "one request" if batch == 1 else f"a batch of {counted(batch, 'request')}"
    return (
        f"{hardware(plan)} cannot hold {held} of {context_text(plan)}; the longest that fits"
        f" has {longest}. KV cache runs out first."
    )


def _overfull(plan: Plan, capacity: Capacity) -> str:
    weights = sum(line.bytes for line in plan.ledger if line.name.startswith("weights"))
    whole = total(plan.ledger)
    verb = "has" if plan.gpu.count == 1 else "have"
    if weights > whole:
        return (
            f"{verb} {format_bytes(whole)} a GPU; the model's weights alone need"
            f" {format_bytes(weights)}."
        )
    if plan.kv is not None and plan.kv.budget_bytes > 0:
        return f"{verb} {_too_small_pool(plan.kv, capacity)}"
    return (
        f"{verb} no room for a KV cache: weights ({format_bytes(weights)} a GPU) and the engine's"
        " own memory take all that it may use."
    )


def _too_small_pool(kv: KvPart, capacity: Capacity) -> str:
    """There is room for a cache, by the sizes that were given or left, and too little of it."""
    block = format_bytes(capacity.bytes_per_block)
    if kv.budget_bytes < capacity.bytes_per_block:
        return f"{format_bytes(kv.budget_bytes)} a GPU for the KV cache; one block takes {block}."
    blocks = counted(capacity.blocks, "block")
    return f"a KV cache of {blocks} ({block} each) a GPU; no request fits in that."
