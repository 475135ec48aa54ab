"""From bytes to tokens, windows, state slots and requests, as SGLang's configurators do it.

Source: SGLang 0.5.23, sglang/srt/model_executor/pool_configurator.py and
sglang/srt/mem_cache/kv_cache_configurator.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvplan.engines.sglang import pools
from kvplan.engines.sglang.history import Rules
from kvplan.engines.sglang.layers import Rows
from kvplan.models.formats import ceil_div, round_up

# SGLANG_SWA_EVICTION_INTERVAL: steps between two clean-ups of what has left the windows.
EVICTION_INTERVAL = 128
_FEWEST_REQUESTS, _MOST_REQUESTS = 2048, 4096
_REQUESTS_BY_CONTEXT = 512


@dataclass(frozen=True, slots=True)
class Sizing:
    """What decides the sizes beside the bytes.

    Attributes:
        stages: Rows of each pipeline stage.
        context: context_length.
        window: Tokens that a window layer looks back; 0 without a pool of windows.
        window_ratio: swa_full_tokens_ratio.
        state_ratio: mamba_full_memory_ratio.
        slots_per_request: State slots of a running request; 0 without states.
        slots: max_mamba_cache_size for one group, or None.
        cached: The prefix cache is on.
        asked_requests: max_running_requests for one group, or None.
        most_tokens: max_total_tokens, or None.
        chunk: Tokens of a prefill chunk in one group, or None without chunks.
        batches: Batches in flight.
        draft_layers: Layers of the draft; 0 without one.
        draft_token_bytes: What the draft keeps of a token on the last stage.
        draft_tokens: Tokens drafted for a step.
        decode_tokens: Tokens that a drafting step allocates.
    """

    stages: tuple[Rows, ...]
    rules: Rules
    page: int
    context: int
    window: int
    window_ratio: float
    state_ratio: float
    slots_per_request: int
    slots: int | None
    cached: bool
    asked_requests: int | None
    most_tokens: int | None
    chunk: int | None
    batches: int
    draft_layers: int = 0
    draft_token_bytes: int = 0
    draft_tokens: int = 0
    decode_tokens: int = 1

    @property
    def slot_bytes(self) -> int:
        """Bytes of a state slot on the stage that has most of them; all ranks pay for that."""
        return max(rows.slot_bytes for rows in self.stages)

    @property
    def capped_by_requests(self) -> bool:
        """Whether the pool of windows is sized by the requests instead of the ratio."""
        given = self.asked_requests is not None and self.chunk is not None
        whole = all(rows.full.indices for rows in self.stages)
        return self.rules.window_cap and not self.cached and given and whole

    @property
    def live_window_tokens(self) -> int:
        """Tokens of windows that a running request holds at most."""
        decoded = self.page if not self.draft_tokens else 2 * self.decode_tokens
        late = EVICTION_INTERVAL * max(1, self.draft_tokens)
        return self.window + late + self.page + decoded


@dataclass(frozen=True, slots=True)
class Sizes:
    """The pools of one group of ranks.

    Attributes:
        tokens: max_total_num_tokens.
        window_tokens: Tokens of the pool of windows.
        slots: State slots that requests get.
        drafted_slots: Copies of states that a drafting step keeps.
        requests: max_running_requests of one group.
    """

    tokens: int
    window_tokens: int
    slots: int
    drafted_slots: int
    requests: int


def solve(sizing: Sizing, available: int) -> Sizes:
    """The pools that ``available`` bytes a rank give."""
    slots, drafted, rest = _state_slots(sizing, available)
    found = [_stage_tokens(sizing, rows, rest) for rows in sizing.stages]
    tokens = min(found)
    if sizing.most_tokens is not None:
        tokens = min(tokens, sizing.most_tokens)
    tokens = tokens // sizing.page * sizing.page
    windows = _window_tokens(sizing, tokens)
    return Sizes(tokens, windows, slots, drafted, _requests(sizing, tokens, slots))


def token_range(sizing: Sizing, low: int, high: int) -> tuple[int, int]:
    """Fewest and most tokens that any number of bytes from ``low`` to ``high`` gives.

    Tokens do not grow with bytes all the way: where one slot of states more is cut, it is taken
    from them. The fewest lie at the first such step or the low end, the most before the last step
    or at the high end.
    """
    ends = [low, high]
    if sizing.slot_bytes:
        first = _step(sizing, solve(sizing, low).slots, low, high)
        last = _step(sizing, solve(sizing, high).slots - 1, low, high)
        ends += [first, max(low, last - 1)]
    found = [solve(sizing, available).tokens for available in ends]
    return min(found), max(found)


def _step(sizing: Sizing, slots: int, low: int, high: int) -> int:
    """The fewest bytes up to ``high`` that give more than ``slots``, or ``high``."""
    while low < high:
        middle = (low + high) // 2
        if _state_slots(sizing, middle)[0] > slots:
            high = middle
        else:
            low = middle + 1
    return high


def _state_slots(sizing: Sizing, available: int) -> tuple[int, int, int]:
    """Slots, copies for drafts, and the bytes that are left for tokens."""
    per_slot, padding = sizing.slot_bytes, sizing.rules.state_padding
    if not per_slot:
        return 0, 0, available
    drafts, asked = sizing.draft_tokens, sizing.asked_requests
    copies = 0
    if sizing.slots is not None:
        slots = sizing.slots
    elif not sizing.cached and asked is not None:
        slots = asked
    else:
        budget = available * sizing.state_ratio / (1 + sizing.state_ratio)
        share = 1 + (drafts / sizing.slots_per_request if drafts else 0)
        slots = int((budget - per_slot * (padding + drafts)) // (per_slot * share))
    slots = max(0, slots)
    if drafts:
        running = min(max(1, asked or 1), slots // sizing.slots_per_request)
        copies = (running + 1) * drafts
    return slots, copies, available - (slots + padding + copies) * per_slot


def _stage_tokens(sizing: Sizing, rows: Rows, rest: int) -> int:
    drafts = sizing.draft_layers
    if rows.window.indices and rows.full.indices:
        full = rows.full_bytes + rows.full.each * drafts
        if sizing.capped_by_requests:
            return max(0, (rest - _window_cap(sizing) * rows.window.token_bytes) // full)
        return max(0, int(rest // (full + sizing.window_ratio * rows.window.token_bytes)))
    if rows.window.indices:
        return max(0, rest // (rows.window.each * (len(rows.window.indices) + drafts)))
    cell = rows.full_bytes
    if not cell:
        return sizing.most_tokens or sizing.context
    return max(0, rest // (cell + _draft_cell(rows, drafts)))


def _draft_cell(rows: Rows, drafts: int) -> int:
    """What the budget takes a draft's token for: layers like the model's own."""
    layers = len(rows.full.indices)
    full = rows.full.token_bytes * drafts // layers
    return full + rows.index.each * drafts


def _window_tokens(sizing: Sizing, tokens: int) -> int:
    if not any(rows.window.indices for rows in sizing.stages):
        return 0
    if not any(rows.full.indices for rows in sizing.stages):
        return tokens
    if sizing.capped_by_requests:
        return min(_window_cap(sizing), tokens) if sizing.most_tokens else _window_cap(sizing)
    return int(tokens * sizing.window_ratio) // sizing.page * sizing.page


def _window_cap(sizing: Sizing) -> int:
    requests = max(1, sizing.asked_requests or 1)
    chunks = sizing.batches * (sizing.chunk or 0)
    return round_up(sizing.live_window_tokens * requests + chunks + sizing.page, sizing.page)


def _requests(sizing: Sizing, tokens: int, slots: int) -> int:
    """max_running_requests of one group."""
    estimated = int(tokens / sizing.context * _REQUESTS_BY_CONTEXT)
    estimated = max(min(estimated, _MOST_REQUESTS), _FEWEST_REQUESTS)
    requests = estimated if sizing.asked_requests is None else max(1, sizing.asked_requests)
    if sizing.rules.half_tokens:
        requests = min(requests, tokens // 2)
    if sizing.slots_per_request:
        requests = min(requests, slots // sizing.slots_per_request)
    return max(0, requests)


@dataclass(frozen=True, slots=True)
class Need:
    """What one request of a length holds.

    Attributes:
        pages: Pages of the pool of all tokens.
        window_tokens: Tokens of the pool of windows.
        slots: State slots.
    """

    pages: int
    window_tokens: int
    slots: int


def need_of(sizing: Sizing, length: int) -> Need:
    """What a request of ``length`` tokens holds at most while it decodes."""
    windows = 0
    if sizing.window:
        live = round_up(sizing.live_window_tokens, sizing.page)
        windows = min(round_up(length, sizing.page), live)
    return Need(ceil_div(length, sizing.page), windows, sizing.slots_per_request)


def held(sizing: Sizing, sizes: Sizes, length: int) -> int:
    """Requests of ``length`` tokens that one group holds at once."""
    return min(sizes.requests, by_memory(sizing, sizes, length))


def by_memory(sizing: Sizing, sizes: Sizes, length: int) -> int:
    """Requests of ``length`` tokens that the pools of one group hold."""
    if length > longest(sizing, sizes, length):
        return 0
    need = need_of(sizing, length)
    fits = [sizes.tokens // sizing.page // need.pages]
    if need.window_tokens:
        fits.append(sizes.window_tokens // need.window_tokens)
    if need.slots:
        fits.append(sizes.slots // need.slots)
    return min(fits)


def concurrency(sizing: Sizing, sizes: Sizes, length: int) -> float:
    """Requests of ``length`` tokens by memory, not rounded."""
    need = need_of(sizing, length)
    shares = [sizes.tokens / (need.pages * sizing.page)]
    if need.window_tokens:
        shares.append(sizes.window_tokens / need.window_tokens)
    if need.slots:
        shares.append(sizes.slots / need.slots)
    return min(shares)


def longest(sizing: Sizing, sizes: Sizes, at_most: int) -> int:
    """The longest request that one group takes, or 0.

    One token fewer than the pool has, as the scheduler keeps one back
    (sglang/srt/managers/tp_worker.py, max_req_len).
    """
    if sizes.requests == 0 or not windows_hold_one(sizing, sizes):
        return 0
    kept_back = 1 if any(rows.full.indices or rows.window.indices for rows in sizing.stages) else 0
    return max(0, min(at_most, sizes.tokens - kept_back))


def windows_hold_one(sizing: Sizing, sizes: Sizes) -> bool:
    """Whether the pool of windows takes a request at all; SGLang refuses to start otherwise."""
    if not sizing.window:
        return True
    return sizing.window + sizing.page < sizes.window_tokens


def allocated(sizing: Sizing, sizes: Sizes, stage: int) -> int:
    """Bytes of all pools of a rank of ``stage``."""
    return sum(value for _, value in pool_parts(sizing, sizes, stage))


def pool_parts(sizing: Sizing, sizes: Sizes, stage: int) -> Sequence[tuple[str, int]]:
    """Names and bytes of the pools of a rank of ``stage``."""
    rows, page = sizing.stages[stage], sizing.page
    last = stage == len(sizing.stages) - 1
    parts = [
        ("full", pools.pool_bytes(sizes.tokens, page, rows.full_bytes)),
        ("window", pools.pool_bytes(sizes.window_tokens, page, rows.window.token_bytes)),
        ("draft", pools.pool_bytes(sizes.tokens, page, sizing.draft_token_bytes) if last else 0),
        ("states", pools.state_pool_bytes(sizes.slots + sizes.drafted_slots, rows.slot_bytes)),
    ]
    return [(name, size) for name, size in parts if size]
